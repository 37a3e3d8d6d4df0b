"""A PE that crashed, was killed or has left is what is said, not that its neighbours miss it: over a network too."""

import os
import re
import subprocess
import time

import pytest
from conftest import BUILD, LIMIT_S, Result
from processes import alive, await_end

# The way of ends.c -> the status, and what has to be said of it; mpirun has words of its own.
WAYS = {"signal": (137, "PE 2 .*was killed by signal 9"), "exit": (3, "PE 2 .*exited with status 3"),
        "crash": (139, r"heddle \[pe 2\] signal 11 \(Segmentation fault\): address 0x8, of a null pointer; at "
                       r"ends\+0x"),
        "fatal": (1, r"heddle \[pe 2\] shmem_long_p: pe 3 is out of range.* \(called at ends\+0x")}
# What the one that has left says of one that waits for it, and the other way round; it may be another node's control
# message that tells. mpirun ends the others by a signal, and a PE that still waits then says where, and for whom.
EARLY = (r"heddle \[pe \d\] "
         r"(shmem_finalize: PE \d is in shmem_barrier_all and waits for this PE, which is in shmem_finalize"
         r"|shmem_finalize: PEs of other nodes are in another collective"
         r"|shmem_barrier_all: PEs of another node leave"
         r"|SIGTERM: (the job ends|PE \d ))")
ways = pytest.mark.parametrize("way", WAYS)


def on_pretended_nodes(programs, *program):
    """By oshrun, on this machine alone."""
    begin = time.monotonic()
    done = subprocess.run([str(BUILD / "bin" / "oshrun"), "-n", "3", *program], cwd=programs, capture_output=True,
                          text=True, timeout=LIMIT_S, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, "HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp"})
    return Result(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)


def first_sound(run):
    """The first run in which UCX (1.13) has not failed an assertion of its own: it sometimes does where a process ends
    while it connects to it, which is over before Heddle hears of it."""
    for _ in range(5):
        result = run()
        if not re.search(r"ucp_\w+\.c:\d+ +Assertion", result.err + result.out):
            break
    return result


def own_lines(result):
    return [line for line in result.err.splitlines() if line.startswith(("heddle", "oshrun"))]


@ways
def test_by_oshrun(programs, way):
    result = first_sound(lambda: on_pretended_nodes(programs, "./ends", way, "3"))
    status, words = WAYS[way]
    assert result.status == status and not any(map(alive, result.pids())), result
    assert re.search(words, own_lines(result)[0]), result
    assert " network: " not in result.err, result


@ways
def test_by_mpirun(here, way):
    """It takes a second and more to say what it knows; until then the others wait."""
    result = first_sound(lambda: here.run("3", "./ends", way, "3", settings={"HEDDLE_TEST_PES_PER_NODE": 1}))
    assert result.status == WAYS[way][0], result
    assert await_end(result.pids()), result  # mpirun does not wait for those that it ends
    assert " network: " not in result.err, result
    for line in own_lines(result):
        assert re.search(WAYS[way][1], line), result


@pytest.mark.parametrize("way", ["signal", "exit"])
def test_on_several_hosts(apart, way):
    result = first_sound(lambda: apart.run("1+2", "./ends", way, "3"))
    assert result.status == WAYS[way][0] and not any(map(alive, result.pids())), result
    assert " network: " not in result.err, result


def test_a_pe_that_leaves_early(programs):
    """It is there, and waits: no network is to blame."""
    result = on_pretended_nodes(programs, "./ends", "early")
    assert result.status == 1 and all(re.match(EARLY, line) for line in own_lines(result)), result


def test_a_pe_that_leaves_early_on_another_host(apart):
    result = apart.run("1+1+1", "./ends", "early")
    assert result.status != 0 and own_lines(result), result
    assert all(re.match(EARLY, line) for line in own_lines(result)), result
