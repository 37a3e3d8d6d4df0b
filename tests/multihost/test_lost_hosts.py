"""A lost host: every PE on every host ends within seconds, the launcher fails, and somebody says who is gone."""

import itertools
import time

import pytest
from conftest import finish
from processes import alive

LIMIT_S = 120  # far less than a job that went on


def start(launcher, shape, way):
    """The job, when all of its PEs have told their numbers; and these."""
    process = launcher.start(shape, "./lost", way)
    pids = []
    for line in itertools.islice(process.stdout, sum(map(int, shape.split("+")))):
        pids.append(int(line.split()[1]))
    time.sleep(0.3)  # they are in the middle of it
    return process, pids


def check_end(process, pids, begin):
    """The PEs end in time, and the launcher, which waits for what it has on other hosts, soon behind them."""
    while any(map(alive, pids)) and time.monotonic() < begin + LIMIT_S:
        time.sleep(0.02)
    left = [pid for pid in pids if alive(pid)]
    result = finish(process, limit=LIMIT_S)
    assert not left and result.status != 0, (left, result)
    return result


@pytest.fixture
def last_host(hosts, request):
    """Of a job with that shape; nothing of the job is left on any host when the test ends, cut off or not."""
    def host(shape):
        return hosts.all[shape.count("+")]
    yield host
    for each in hosts.all:
        each.kill_all()


@pytest.mark.parametrize("shape,way", [pytest.param("1+1", "exchange", marks=pytest.mark.every), ("1+1", "barrier"),
                                       ("1+1+2", "compute")])
def test_all_processes_of_a_host_are_killed(oshrun, last_host, shape, way):
    process, pids = start(oshrun, shape, way)
    begin = time.monotonic()
    lost = last_host(shape)
    lost.kill_all()
    check_end(process, pids, begin)


@pytest.mark.parametrize("shape,way", [pytest.param("1+1", "compute", marks=pytest.mark.every), ("1+1", "exchange"),
                                       pytest.param("1+1+2", "exchange", marks=pytest.mark.every),
                                       ("1+1+2", "barrier")])
def test_a_host_is_cut_off(oshrun, last_host, shape, way):
    """Nothing says so: it is only silent, and for it all others are."""
    process, pids = start(oshrun, shape, way)
    begin = time.monotonic()
    lost = last_host(shape)
    lost.do("ip", "link", "set", "eth0", "down")
    try:
        result = check_end(process, pids, begin)
    finally:
        lost.do("ip", "link", "set", "eth0", "up")
    first_lost = len(pids) - int(shape.split("+")[-1])
    assert f"PE {first_lost} does not answer" in result.err or lost.name in result.err, result
