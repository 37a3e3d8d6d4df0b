"""A user in Python: PyPI's shmem4py, built with our oshcc, runs a program of all kinds of operations under our oshrun.

shmem4py knows the features of five implementations by name and takes any other for one that lacks everything; the
PySHMEM_HAVE_ definitions tell it otherwise (docs/guide.md).
"""

import os
import subprocess
import venv
from pathlib import Path

import pytest

BUILD = Path(os.environ["HEDDLE_BUILD"])
HERE = Path(__file__).resolve().parent
PLACE = BUILD / "tests/python/venv"
FEATURES = """malloc_with_hints team_t amo_nbi put_signal signal_fetch signal_wait_until broadcast collect fcollect
    alltoall alltoalls broadcastmem collectmem fcollectmem alltoallmem alltoallsmem reduce wait_test_many
    pcontrol""".split()


@pytest.fixture(scope="module")
def python():
    """An interpreter that has shmem4py; made once a build folder."""
    interpreter = PLACE / "bin/python"
    if interpreter.exists() and not subprocess.run([interpreter, "-c", "import shmem4py"], check=False).returncode:
        return interpreter
    venv.create(PLACE, with_pip=True)
    definitions = [f"-DPySHMEM_HAVE_shmem_{name}=1" for name in FEATURES] + ["-DPySHMEM_HAVE_SHMEM_CTX_INVALID=1"]
    done = subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "--no-cache-dir", "-r", HERE / "requirements.txt"],
                          env={**os.environ, "OSHCC": " ".join([str(BUILD / "bin/oshcc"), *definitions])},
                          capture_output=True, text=True, check=False)
    if "No matching distribution" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    return interpreter


@pytest.mark.parametrize("pes", [1, 2, 3, 4, 8])
def test_program(python, pes):
    done = subprocess.run([BUILD / "bin/oshrun", "-n", str(pes), python, HERE / "shmem4py_program.py"],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"shmem4py: pass on {pes} PEs" in done.stdout
