"""A user in Python: PyPI's shmem4py, built with our oshcc, runs a program of many operations under our oshrun."""

import hashlib
import os
import subprocess
import venv
from pathlib import Path

import pytest

BUILD = Path(os.environ["HEDDLE_BUILD"])
HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def python():
    """An interpreter that has shmem4py; made once for each state of the headers, whose functions it has inlined."""
    headers = hashlib.sha256(b"".join(file.read_bytes() for file in sorted((BUILD / "include").rglob("*.h"))))
    place = BUILD / "tests/python" / headers.hexdigest()[:12]
    interpreter = place / "bin/python"
    if (place / "ready").exists():
        return interpreter
    venv.create(place, with_pip=True, clear=True)
    # shmem4py knows five implementations by their headers; "Sandia" is its name for one that lacks nothing.
    environment = {**os.environ, "OSHCC": str(BUILD / "bin/oshcc"), "CFLAGS": "-DPySHMEM_VENDOR_Sandia=1"}
    install = [interpreter, "-m", "pip", "install", "--quiet", "--no-cache-dir", "-r", HERE / "requirements.txt"]
    done = subprocess.run(install, env=environment, capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr:
        pytest.exit("skipped: no package index can be reached", returncode=77)
    assert done.returncode == 0, done.stdout + done.stderr
    (place / "ready").touch()
    return interpreter


@pytest.mark.parametrize("pes", [1, 2, 3, 4, 8])
def test_program(python, pes):
    done = subprocess.run([BUILD / "bin/oshrun", "-n", str(pes), python, HERE / "shmem4py_program.py"],
                          capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"shmem4py: pass on {pes} PEs" in done.stdout
