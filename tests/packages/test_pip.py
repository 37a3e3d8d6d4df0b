"""pip's package in an empty Debian 12: from nothing to a Python program of 4 PEs, by the commands of
docs/user/python.md, with the time of each part printed: that is what is counted."""

import os
import re
import shutil
import time
from pathlib import Path

import pytest

PACKAGES = Path(os.environ["HEDDLE_PACKAGES"])
PAGE = (Path(__file__).resolve().parents[2] / "docs/user/python.md").read_text()
HELLO = re.search(r"^```python hello\.py\n(.*?)^```$", PAGE, re.S | re.M).group(1)
INSTALL, START = re.search(r"^    (pip install .*)\n    (oshrun .*)$", PAGE, re.M).groups()


def test_from_nothing_to_four_pes(fresh):
    wheels = list(PACKAGES.glob("heddle-*.whl"))
    if not wheels:
        pytest.skip("no wheel in build/packages: make wheel")
    folder = fresh.root / "root/work"
    (folder / "build/packages").mkdir(parents=True)
    shutil.copy(wheels[0], folder / "build/packages")
    (folder / "hello.py").write_text(HELLO)
    parts, answer = [], ""
    inside = "cd ~/work && . venv/bin/activate && "
    for what, command in (("apt-get update", "apt-get update -qq"),
                          ("apt-get install", "apt-get install -y -qq --no-install-recommends python3-venv"),
                          ("python3 -m venv", "cd ~/work && python3 -m venv venv"),
                          (f"{INSTALL}, with NumPy from PyPI", inside + INSTALL), (START, inside + START)):
        before = time.monotonic()
        answer = fresh.run("sh", "-c", command)
        parts.append((what, time.monotonic() - before))
    assert sorted(answer.splitlines()) == [f"PE {pe} of 4: {(pe + 3) % 4} is to my left" for pe in range(4)]
    print(f"\nfrom an empty Debian 12 to hello.py of 4 PEs: {sum(seconds for _, seconds in parts):.1f} s ("
          + ", ".join(f"{what} {seconds:.1f} s" for what, seconds in parts) + ")")
