"""Collectives by all threads: every thread finds every result right, faults are caught, and libraries without them are
skipped by name."""

import pytest
from conftest import compiled_without, run_points
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.targets import mpi

BARRIERS = {"team_sync", "team_barrier"}
SIZED = {"broadcast", "collect", "fcollect", "alltoall", "sum_reduce", "max_reduce", "copy"}


@pytest.fixture
def threaded(implementation):
    if not implementation.features["SHMEM_MT_HAVE_SHMEMX"]:
        pytest.skip("the library has no collectives by all threads (shmemx.h)")
    return implementation


def measure(implementation, tmp_path, pes, threads, *arguments):
    return run_points(implementation, tmp_path, "collectives_mt", pes, threads, *arguments)


def verdicts(points):
    names = ("team", "op", "size_bytes")
    return {tuple(p["params"][name] for name in names): p["valid"] for p in points}


@pytest.mark.parametrize("pes,threads", [(2, 1), (2, 2), (3, 2), (4, 3)])
def test_all_are_valid(threaded, tmp_path, pes, threads):
    points, _ = measure(threaded, tmp_path, pes, threads, "--sizes", "8,1000,65536")
    teams = {"world", "strided"} if pes > 2 else {"world"}
    wanted = {(team, op, size) for team in teams for op in SIZED for size in (8, 1000, 65536)}
    assert verdicts(points) == dict.fromkeys(wanted | {("world", op, 0) for op in BARRIERS}, True)
    assert {p["benchmark"] for p in points} == {"collectives-mt"}
    for point in points:
        assert point["metric"] == ("bandwidth" if point["params"]["op"] == "copy" else "latency")
        assert (point["params"]["pes"], point["params"]["threads"]) == (pes, threads)


@pytest.mark.parametrize("fault", ["skipped-operation", "stale-result", "last-element-missing"])
def test_faults_are_caught(threaded, tmp_path, fault):
    points, _ = measure(threaded, tmp_path, 2, 2, "--sizes", "1024", "--plant-fault", fault)
    found = verdicts(points)
    no_elements = fault == "last-element-missing"
    assert found == {key: no_elements and key[1] in BARRIERS for key in found}


@pytest.mark.parametrize("fault", ["one-pe-reduction", "check-never-runs"])
def test_faults_that_touch_everything(threaded, tmp_path, fault):
    points, _ = measure(threaded, tmp_path, 2, 2, "--sizes", "1024", "--plant-fault", fault)
    assert set(verdicts(points).values()) == {False}


@pytest.mark.long
def test_without_them_they_are_skipped_by_name(implementation, tmp_path):
    without = compiled_without(implementation, tmp_path, "collectives_mt", "SHMEM_MT_HAVE_SHMEMX")
    assert measure(without, tmp_path, 2, 2) == ([], {"everything"})


def test_plan():
    profile = plan.PROFILES["quick"]
    starts = plan.starts(profile, catalogue.select(["collectives-mt"]), plan.Choices(), cores=2)
    assert [(start.program, start.pes, start.threads) for start in starts] == [("collectives_mt", 2, 2)]
    chosen = plan.Choices(pes=(3,), threads=(4,), sizes=(64,))
    starts = plan.starts(profile, catalogue.select(["collectives-mt"]), chosen, cores=2)
    assert [(start.pes, start.threads) for start in starts] == [(3, 4)]
    assert "collectives_mt" not in mpi.SOURCES
