"""Overlap: the parts are there and right, the formula is what it says, one PE is enough, and faults are caught."""

import pytest
from conftest import compiled_without, read_results, run_points

from shmem_mt import catalogue, plan

METRICS = {
    ("overlap", "overlap", "%"),
    ("slowdown", "compute", "x"),
    ("time", "communication", "s"),
    ("time", "compute", "s"),
    ("time", "total", "s"),
    ("time", "post", "s"),
}


def measure(implementation, tmp_path, pes, *arguments):
    return run_points(implementation, tmp_path, "overlap", pes, 1, "--sizes", "65536", *arguments)


def syncs_of(implementation):
    return ("quiet", "request_each") if implementation.features["SHMEM_MT_HAVE_SHMEMX"] else ("quiet",)


def samples_of(points, op, sync, metric, part):
    """Those of the one point with these names."""
    found = [p for p in points if p["metric"] == metric and p["params"]["part"] == part]
    (one,) = [p for p in found if (p["params"]["op"], p["params"]["sync"]) == (op, sync)]
    return one["samples"]


@pytest.mark.parametrize("pes", [1, 2, 4])
def test_all_parts_are_valid(implementation, tmp_path, pes):
    points, skipped = measure(implementation, tmp_path, pes)
    wanted = {(op, sync, *what) for op in ("put", "get") for sync in syncs_of(implementation) for what in METRICS}
    assert {
        (p["params"]["op"], p["params"]["sync"], p["metric"], p["params"]["part"], p["unit"]): p["valid"]
        for p in points
    } == dict.fromkeys(wanted, True)
    assert all(p["params"]["pes"] == pes for p in points)
    assert bool(skipped) != implementation.features["SHMEM_MT_HAVE_SHMEMX"]


def test_the_formula_holds_for_every_sample(implementation, tmp_path):
    points, _ = measure(implementation, tmp_path, 2, "--samples", "5", "--ops", "put", "--syncs", "quiet")
    parts = [samples_of(points, "put", "quiet", "time", part) for part in ("communication", "compute", "total")]
    percent = samples_of(points, "put", "quiet", "overlap", "overlap")
    assert len(percent) == 5
    for overlap, communication, compute, total in zip(percent, *parts):
        assert overlap == pytest.approx(100 * max(0, 1 - (total - compute) / communication), rel=1e-4, abs=1e-4)


def test_the_computation_is_as_long_as_asked(implementation, tmp_path):
    """Within a factor that only a wrong calibration exceeds, whoever else uses the cores."""
    arguments = ["--samples", "5", "--sample-ms", "2", "--ops", "put", "--syncs", "quiet", "--compute-ratio", "20"]
    points, _ = measure(implementation, tmp_path, 1, *arguments)
    communication = samples_of(points, "put", "quiet", "time", "communication")
    compute = samples_of(points, "put", "quiet", "time", "compute")
    assert 4 < sorted(compute)[2] / sorted(communication)[2] < 100
    assert {p["params"]["compute_ratio"] for p in points} == {20}


FAULTS = {
    "rank-as-size": 2,
    "peer-list-ignored": 4,
    "one-pe-reduction": 2,
    "check-never-runs": 1,
    "skipped-operation": 1,
    "stale-result": 2,
    "last-element-missing": 2,
    "skipped-computation": 2,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_caught(implementation, tmp_path, fault):
    points, _ = measure(implementation, tmp_path, FAULTS[fault], "--plant-fault", fault)
    assert {p["valid"] for p in points} == {False}


def test_get_named_put_is_caught(implementation, tmp_path):
    points, _ = measure(implementation, tmp_path, 2, "--plant-fault", "get-named-put")
    assert {(p["params"]["op"], p["valid"]) for p in points} == {("put", False), ("get", True)}


def test_what_cannot_be_measured_is_skipped_by_name(implementation, tmp_path):
    without = compiled_without(implementation, tmp_path, "overlap", "SHMEM_MT_HAVE_SHMEMX")
    _, skipped = run_points(without, tmp_path, "overlap", 2, 1, "--sizes", "12")
    assert skipped == {"put with request_each", "get with request_each", "12 bytes"}
    points, skipped = run_points(without, tmp_path, "overlap", 2, 2)
    assert (points, skipped) == ([], {"threads=2"})


def test_plan_has_one_thread_whatever_is_asked_for():
    chosen = plan.Choices(pes=(1,), threads=(2, 4), sizes=(65536,))
    starts = plan.starts(plan.PROFILES["quick"], catalogue.select(["overlap"]), chosen, cores=2)
    assert [(start.program, start.pes, start.threads) for start in starts] == [("overlap", 1, 1)]


def test_the_driver_measures_with_one_pe(shmem_mt, wrappers, tmp_path):
    arguments = ["--only", "overlap", "--pes", "1", "--sizes", "65536", "--rounds", "1", "--compute-ratio", "2"]
    status, _, stderr = shmem_mt(
        "run", "--oshcc", wrappers[0], "--oshrun", wrappers[1], "--out", tmp_path / "run", *arguments
    )
    assert status == 0, stderr
    results = read_results(tmp_path / "run")
    assert {r["metric"] for r in results} == {"overlap", "slowdown", "time"}
    assert {(r["params"]["pes"], r["params"]["compute_ratio"]) for r in results} == {(1, 2)}
    assert shmem_mt("compare", tmp_path / "run", tmp_path / "run")[0] in (0, 1)
