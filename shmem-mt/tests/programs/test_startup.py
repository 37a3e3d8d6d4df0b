"""Startup: what a start costs in time and memory is told by all PEs, and kept when a library ends in finalize."""

import pytest
from conftest import run_points
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.runner.points import describe
from shmem_mt.runner.process import run_program
from shmem_mt.targets import fabrics
from shmem_mt.targets.libraries import OpenMpi

TIMES = {"init", "first_barrier", "finalize"}
MEMORIES = {"before_init", "after_init", "after_barrier"}


def by_name(points):
    return {(p["params"]["op"], p["params"].get("pe"), p["metric"], p["unit"]): p for p in points}


@pytest.mark.parametrize("pes", [1, 3])
def test_times_and_memory_of_any_number_of_pes(implementation, tmp_path, pes):
    points, skipped = run_points(implementation, tmp_path, "startup", pes, 1)
    found = by_name(points)
    times = TIMES - ({"finalize"} if isinstance(implementation, OpenMpi) else set())  # 4.1 crashes in it
    assert {name for name in found if name[0] != "finalize" or name[0] in times} == {
        *((op, None, "time", "s") for op in times),
        *((op, pe, "memory", "bytes") for op in MEMORIES for pe in ("median", "largest")),
    }
    assert not skipped and len(found) == len(points)
    for point in points:
        (value,) = point["samples"]
        assert point["valid"] and value > 0 and point["params"]["pes"] == pes
        assert value < 60 if point["metric"] == "time" else value % 4096 == 0
    for op in MEMORIES:
        largest, median = (found[op, pe, "memory", "bytes"]["samples"][0] for pe in ("largest", "median"))
        assert largest >= median


def test_only_what_is_asked_for_is_printed(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "startup", 2, 1, "--ops", "init,after_init")
    assert {p["params"]["op"] for p in points} == {"init", "after_init"} and len(points) == 3


def test_a_pe_that_is_not_heard_makes_the_points_invalid(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "startup", 2, 1, "--plant-fault", "one-pe-reduction")
    assert {p["valid"] for p in points} == {False}


def test_plan_takes_any_number_of_pes_and_one_thread():
    chosen = plan.Choices(pes=(1, 3, 256), threads=(1, 2), sizes=(8, 64))
    only = catalogue.select(["startup"])
    catalogue.check_pes(only, chosen.pes)
    for fabric in (fabrics.ON_NODE, fabrics.TCP):
        starts = plan.starts_over(fabric, "quick", only, chosen, cores=2)
        assert [(s.program, s.pes, s.threads, s.fabric) for s in starts] == [
            ("startup", pes, 1, fabric) for pes in (1, 3, 256)
        ]


@pytest.mark.parametrize("behind,points", [("echo '{\"event\": \"point\"}'", 2), ("kill -11 $$", 1)])
def test_what_comes_behind_the_last_line_counts_and_need_not_come(tmp_path, behind, points):
    lines = "echo '{\"event\": \"point\"}'; echo '{\"event\": \"done\"}'; sleep 0.2; " + behind
    outcome = run_program(["sh", "-c", lines], str(tmp_path / "log"), 60, lambda point: None, False)
    assert outcome.ok and outcome.points == points


def test_describe_says_whose_memory_it_is():
    params = {"op": "after_init", "pe": "largest", "pes": 2, "threads": 1, "fabric": "tcp"}
    assert describe("startup", params) == "startup, after_init, largest PE, tcp, 2 PEs"
