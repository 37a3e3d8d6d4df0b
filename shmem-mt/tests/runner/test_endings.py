"""Nothing of a run is left when it ends, however it ends and whatever launcher it uses. A mark in the environment tells
its processes, wherever in the tree they are."""

import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import uuid

import pytest
from conftest import read_results
from shmem_mt import supervisor
from shmem_mt.runner import process

SUITE = pathlib.Path(__file__).resolve().parents[2]
MARK = "SHMEM_MT_TEST_MARK"
LIMIT_S = 300
POINT = (
    '{"event": "point", "benchmark": "bandwidth", "metric": "bandwidth", "unit": "bytes/s", "samples": [1.0], '
    '"valid": true, "params": {"op": "put", "pes": 2, "threads": 1, "size_bytes": 64, "oversubscribed": false}}'
)
DONE = '{"event": "done", "points": 0}'

# PEs that never look at their launcher again.
PROGRAM = f"""
#include <shmem.h>
#include <stdio.h>
static volatile long turns;
int main(void) {{
    shmem_init();
    shmem_barrier_all();
    if (shmem_my_pe() == 0) puts({json.dumps(POINT)});
    fflush(stdout);
    for (;;) ++turns;
}}
"""

# A launcher whose processes have sessions of their own, have lost their parents and hear no SIGTERM; nor does it.
DAEMONS = f"""
[ "$1" = --version ] && {{ echo 1.0; exit; }}
trap "" TERM HUP INT
(setsid sh -c '(setsid sleep 6000 &); exec sleep 6000' &)
sleep 6000 &
echo '{POINT}'
wait
"""

# Copies a program, in place of compiling one.
WRAPPER = """
while [ $# -gt 0 ]; do
    [ "$1" = -o ] && {{ cp {program} "$2"; exit; }}
    shift
done
echo 1.0
"""


def script(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def alive(mark):
    """The numbers of the processes with that mark; those that have ended and wait for their parent have none."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in pathlib.Path(path).read_bytes().split(b"\0"):
                found.append(int(path.split("/")[2]))
        except OSError:  # gone, or of another user
            continue
    return found


def wait_until(condition, what):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {LIMIT_S} s"
        time.sleep(0.02)


@pytest.fixture
def mark():
    """A mark; what has it is ended at last, also where a test fails."""
    made = uuid.uuid4().hex
    yield made
    while left := alive(made):
        for pid in left:
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(params=["daemons", "own", "Open MPI"])
def launched(request, tmp_path):
    """(launcher, a program that it starts)"""
    if request.param == "daemons":
        return script(tmp_path / "launcher", DAEMONS), "/bin/true"
    if request.param == "own":
        oshcc, oshrun = request.getfixturevalue("wrappers")
    else:
        oshcc, oshrun = "/usr/bin/oshcc", "/usr/bin/oshrun"
        if not shutil.which(oshcc) or not shutil.which(oshrun):
            pytest.skip("no Open MPI with OpenSHMEM in /usr/bin")
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM)
    subprocess.run([oshcc, source, "-o", program], check=True, timeout=LIMIT_S)
    return oshrun, str(program)


def start(tmp_path, mark, oshcc, oshrun, around=()):
    """`shmem-mt run` of one program, with the signals' default actions; stderr is in a file."""
    reset = ["env", "--default-signal=HUP,INT,TERM"]
    command = [sys.executable, "-m", "shmem_mt", "run", "--oshcc", oshcc, "--oshrun", oshrun, "--label", "A"]
    command += ["--only", "bandwidth", "--sizes", "64", "--pes", "2", "--threads", "1", "--rounds", "1"]
    with open(tmp_path / "stderr", "w", encoding="utf-8") as stderr:
        return subprocess.Popen(
            [*reset, *around, *command, "--out", tmp_path / "run"],
            env={**os.environ, MARK: mark, "PYTHONPATH": str(SUITE), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )


# how it ends -> (what the command begins with, the signal that the first process gets, its exit status)
ENDINGS = {
    "SIGTERM": ([], signal.SIGTERM, 128 + signal.SIGTERM),
    "SIGKILL": ([], signal.SIGKILL, -signal.SIGKILL),
    "timeout -s KILL": (["timeout", "-s", "KILL", "6000"], signal.SIGALRM, -signal.SIGKILL),  # SIGALRM: time is over
    "timeout": (["timeout", "6000"], signal.SIGALRM, 124),
    "SIGHUP": ([], signal.SIGHUP, 128 + signal.SIGHUP),
    "SIGINT": ([], signal.SIGINT, 128 + signal.SIGINT),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_that_is_ended_leaves_nothing_behind(ending, launched, tmp_path, mark):
    around, number, status = ENDINGS[ending]
    oshrun, program = launched
    wrapper = script(tmp_path / "oshcc", WRAPPER.format(program=program))
    raw = tmp_path / "run" / "raw.jsonl"
    driver = start(tmp_path, mark, wrapper, oshrun, around)
    wait_until(lambda: driver.poll() is not None or (raw.exists() and raw.read_text()), "a point")
    assert driver.poll() is None, (tmp_path / "stderr").read_text()
    assert len(alive(mark)) > 2
    driver.send_signal(number)
    assert driver.wait(LIMIT_S) == status
    wait_until(lambda: not alive(mark), f"the end of all {len(alive(mark))} processes")
    if "KILL" not in ending:
        assert len(read_results(tmp_path / "run")) == 1
        assert "interrupted; run the same command" in (tmp_path / "stderr").read_text()


def test_a_program_that_takes_too_long_leaves_nothing_behind(launched, tmp_path, mark, monkeypatch):
    monkeypatch.setenv(MARK, mark)
    points = []
    flags = [] if launched[1] == "/bin/true" else ["-n", "2"]
    flags += ["--allow-run-as-root", "--oversubscribe"] if launched[0] == "/usr/bin/oshrun" else []
    outcome = process.run_program([launched[0], *flags, launched[1]], str(tmp_path / "log"), 5, points.append, True)
    assert "took longer than 5 s" in outcome.problem
    assert alive(mark) == []


@pytest.mark.parametrize("ending", ["SIGTERM", "SIGKILL"])
def test_a_compiler_ends_with_the_run(ending, tmp_path, mark):
    _, number, status = ENDINGS[ending]
    hangs = 'case "$*" in *probes*) exit 1 ;; *-o*) sleep 6000 & touch {0}; wait ;; *) echo 1.0 ;; esac\n'
    driver = start(tmp_path, mark, script(tmp_path / "oshcc", hangs.format(tmp_path / "began")), "/bin/true")
    wait_until(lambda: driver.poll() is not None or (tmp_path / "began").exists(), "a compilation")
    driver.send_signal(number)
    assert driver.wait(LIMIT_S) == status
    wait_until(lambda: not alive(mark), "the end of the compiler")


def test_what_a_launcher_leaves_behind_ends_with_it(tmp_path, mark, monkeypatch):
    monkeypatch.setenv(MARK, mark)
    leaves = script(tmp_path / "leaves", f"(setsid sleep 6000 &)\necho '{DONE}'\n")
    outcome = process.run_program([leaves], str(tmp_path / "log"), LIMIT_S, lambda point: None, True)
    assert outcome.ok
    assert alive(mark) == []


@pytest.mark.parametrize(
    "text,words",
    [
        ("exit 7", "exit status 7"),
        ("kill -SEGV $$", f"signal {signal.SIGSEGV:d}"),
        ("kill -KILL $$", f"signal {signal.SIGKILL:d}"),
        ("kill -TERM 0", f"signal {signal.SIGTERM:d}"),  # its process group, of which the supervisor is none
    ],
)
def test_a_supervisor_ends_as_the_launcher_did(text, words, tmp_path):
    ends = script(tmp_path / "ends", text + "\n")
    outcome = process.run_program([ends], str(tmp_path / "log"), LIMIT_S, lambda point: None, True)
    assert outcome.problem == f"ended early with {words}"


def test_a_launcher_that_cannot_be_started_is_named(tmp_path):
    log = str(tmp_path / "log")
    outcome = process.run_program([str(tmp_path / "none")], log, LIMIT_S, lambda point: None, True)
    assert outcome.problem == "ended early with exit status 127"
    assert process.last_lines(log) == [f"shmem-mt: cannot start {tmp_path}/none: No such file or directory"]


def test_a_launcher_has_its_signals_as_they_were(tmp_path):
    """Blocked and ignored ones are inherited: a launcher that heard no SIGTERM or no SIGPIPE would not end."""

    def signals(*around):
        shown = subprocess.run([*around, "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"], stdout=subprocess.PIPE)
        return shown.stdout

    assert signals(*supervisor.command([])) == signals() != b""


def test_a_launcher_dies_with_its_supervisor(tmp_path, mark):
    waits = script(tmp_path / "waits", "echo ready\nexec sleep 6000\n")
    with subprocess.Popen(
        supervisor.command([waits]),
        env={**os.environ, MARK: mark},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as supervising:
        assert supervising.stdout.readline() == b"ready\n"
        assert len(alive(mark)) == 2
        supervising.kill()
    wait_until(lambda: not alive(mark), "the launcher's end")
