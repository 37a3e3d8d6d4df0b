"""Links that are slow, and links that lose packets: a token bucket on the way out of each host, which delays what is
above its rate, and drops what is above its room."""

import contextlib

import pytest
from conftest import BUILD

CONFORMANCE = BUILD / "tests" / "conformance"
SMALL = {"SHMEM_SYMMETRIC_SIZE": "64m", "HEDDLE_TEST_OPERATIONS": "1000", "HEDDLE_TEST_STEPS": "20"}
PROGRAMS = {"puts": "./data", "requests": CONFORMANCE / "conformance_schedules",
            "collectives": CONFORMANCE / "conformance_reductions_inline", "stress": CONFORMANCE / "conformance_stress"}


@contextlib.contextmanager
def shaped(hosts, *words):
    for host in hosts.all:
        host.shape(*words)
    try:
        yield
    finally:
        for host in hosts.all:
            host.shape()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_slow_link(oshrun, hosts, program):
    """20 Mbit/s and room for all that is under way: nothing is lost, all comes late."""
    with shaped(hosts, "rate", "20mbit", "burst", "16kb", "limit", "8mb"):
        result = oshrun.run("1+1", PROGRAMS[program], settings=SMALL)
        assert result.status == 0, result
        assert not any(host.dropped() for host in hosts.all)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_link_that_loses_packets(oshrun, hosts, program):
    """Room for a few packets: TCP sends again what did not fit, and slows down."""
    with shaped(hosts, "rate", "200mbit", "burst", "8kb", "limit", "12kb"):
        result = oshrun.run("1+1+1", PROGRAMS[program], settings=SMALL)
        assert result.status == 0, result
        assert sum(host.dropped() for host in hosts.all) >= 10
