"""Two processes never write one run folder."""

import os
import signal
import subprocess
import sys

import pytest
from shmem_mt.errors import UserError
from shmem_mt.runner.results import RunFolder

HOLDS = """
import sys, time
from shmem_mt.runner.results import RunFolder
folder = RunFolder.open(sys.argv[1])
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that has opened the run folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("arguments", [[], ["--set-aside"]])
def test_a_folder_that_another_process_writes_is_left_alone(shmem_mt, tmp_path, holder, arguments):
    """The holder is named; nothing is renamed or added."""
    out = tmp_path / "run"
    before = sorted(path.name for path in tmp_path.rglob("*"))
    pair = ["--oshcc", "true", "--oshrun", "true"]
    status, _, stderr = shmem_mt("run", *pair, "--only", "bandwidth", "--out", out, *arguments)
    assert status == 2 and f"{out} is being written by process {holder.pid} of " in stderr and stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_lock_ends_with_its_process(tmp_path, holder, number):
    out = str(tmp_path / "run")
    with pytest.raises(UserError, match=f"process {holder.pid} of"):
        RunFolder.read(out)
    os.kill(holder.pid, number)
    holder.wait()
    mine = RunFolder.open(out)
    assert f"process {os.getpid()} of" in (tmp_path / "run" / "lock").read_text()
    again = RunFolder.open(out)  # of this process, which is one writer
    del mine
    assert subprocess.run([sys.executable, "-c", HOLDS, out], capture_output=True).returncode == 1
    del again


def test_a_folder_that_cannot_be_locked(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(UserError, match="cannot lock the run folder"):
        RunFolder.read(str(tmp_path))
