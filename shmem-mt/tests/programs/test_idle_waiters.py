"""Idle-waiters: every number of waiters is measured and right, and what goes wrong is caught."""

import pytest
from conftest import run_points
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.runner.points import describe

WAITERS = (0, 1, 17)


def measure(implementation, tmp_path, pes, *arguments):
    waiters = ",".join(map(str, WAITERS))
    more = ("--waiters", waiters, "--samples", "2", *arguments)
    return run_points(implementation, tmp_path, "idle_waiters", pes, 1, *more)


@pytest.mark.parametrize("pes", [2, 4])
def test_every_number_is_there_and_valid(implementation, tmp_path, pes):
    points, skipped = measure(implementation, tmp_path, pes)
    if not points and skipped == {"waiters"}:
        pytest.skip("the library does not give SHMEM_THREAD_MULTIPLE")
    found = {(p["params"]["waiters"], p["metric"]): p["valid"] for p in points}
    assert found == {(waiters, metric): True for waiters in WAITERS for metric in ("time", "cpu_time")}
    assert all(value > 0 for p in points for value in p["samples"])
    assert {len(p["samples"]) for p in points} == {2}


@pytest.mark.parametrize("fault", ["skipped-operation", "stale-result", "check-never-runs", "one-pe-reduction"])
def test_faults_are_caught(implementation, tmp_path, fault):
    points, skipped = measure(implementation, tmp_path, 2, "--plant-fault", fault)
    assert {p["valid"] for p in points} == {False} or skipped == {"waiters"}


def test_it_is_planned_once_whatever_the_threads():
    choices = plan.Choices(pes=(2,), threads=(1, 4))
    for profile in plan.PROFILES.values():
        starts = plan.starts(profile, catalogue.select(["idle-waiters"]), choices, cores=2)
        assert [(start.program, start.threads) for start in starts] == [("idle_waiters", 1)]
        assert "--waiters" in starts[0].arguments


def test_describe_tells_the_numbers_apart():
    params = dict(op="round_trip", size_bytes=8, waiters=64, fabric="tcp", pes=2)
    assert describe("idle-waiters", params) == "idle-waiters, round_trip, 8 B, beside 64 waiters, tcp, 2 PEs"
