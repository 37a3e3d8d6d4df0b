"""The collectives: every result is right with both interfaces and with MPI, faults are caught, and the plan, the driver
and the MPI reference do what they say."""

import os

import pytest
from conftest import compiled_without, read_results, run_points
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.targets import libraries, mpi

SIZED = {"broadcast", "collect", "fcollect", "alltoall", "alltoalls", "sum_reduce", "max_reduce", "sum_inscan", "copy"}
EVERYTHING = SIZED | {"barrier_all", "sync_all"}
MISSING_IN_MPI = {"sync_all", "alltoalls"}


def measure(implementation, tmp_path, pes, *arguments):
    """(points, names of what was skipped)."""
    return run_points(implementation, tmp_path, "collectives", pes, 1, *arguments)


def verdicts(points):
    return {(p["params"]["team"], p["params"]["op"]): p["valid"] for p in points}


def expected(op, members, size):
    """The bytes that each PE must have written."""
    if op in ("barrier_all", "sync_all"):
        return 0
    return size * (members if op in ("collect", "fcollect", "alltoall", "alltoalls") else 1)


@pytest.mark.parametrize("pes", [2, 8])
def test_all_are_valid(implementation, tmp_path, pes):
    points, skipped = measure(implementation, tmp_path, pes, "--sizes", "8,1000,65536")
    missing = {"sum_inscan"} & skipped
    teams = {"world", "strided"} if pes == 8 else {"world"}
    names = {(team, op) for team in teams for op in SIZED - missing} | {("world", op) for op in EVERYTHING - SIZED}
    assert verdicts(points) == dict.fromkeys(names, True)
    for point in points:
        params = point["params"]
        members = pes if params["team"] == "world" else pes // 2
        assert params["copied_bytes"] == expected(params["op"], members, params["size_bytes"])
        assert point["metric"] == ("bandwidth" if params["op"] == "copy" else "latency")
        assert params["oversubscribed"] == (pes > libraries.usable_cpus())


def test_active_sets_are_valid(implementation, tmp_path):
    """The same program, compiled as the probe would have it for a library without teams."""
    older = compiled_without(implementation, tmp_path, "collectives", "SHMEM_MT_HAVE_TEAM_COLLECTIVES")
    points, skipped = measure(older, tmp_path, 4, "--sizes", "8,65536", "--sample-ms", "1")
    assert "sum_inscan" in skipped
    assert set(verdicts(points).values()) == {True}
    assert {op for _, op in verdicts(points)} == EVERYTHING - {"sum_inscan"}


@pytest.mark.parametrize("pes", [2, 8])
def test_all_of_mpi_are_valid(mpi_reference, tmp_path, pes):
    points, skipped = measure(mpi_reference, tmp_path, pes, "--sizes", "8,65536")
    assert skipped >= MISSING_IN_MPI
    assert set(verdicts(points).values()) == {True}
    assert {op for _, op in verdicts(points)} == EVERYTHING - MISSING_IN_MPI


def schemes(points):
    return {(p["params"]["op"], p["params"]["scheme"]) for p in points}


def test_each_scheme_by_itself(implementation, tmp_path):
    """Windows that a busy machine spoils are left out by name."""
    ops = ["--ops", "barrier_all,broadcast,copy", "--sizes", "64", "--teams", "world"]
    points, skipped = measure(implementation, tmp_path, 2, *ops, "--schemes", "back-to-back")
    every = {("barrier_all", "back-to-back"), ("broadcast", "back-to-back"), ("copy", "back-to-back")}
    assert schemes(points) == every and not skipped
    points, skipped = measure(implementation, tmp_path, 2, *ops, "--schemes", "window", "--samples", "20")
    left_out = {("barrier_all", "window"), ("broadcast", "window")} - schemes(points)
    assert skipped <= {"scheme=window"} | {f"scheme=window, {op}" for op, _ in left_out} and (skipped or not left_out)
    for point in points:
        assert point["windows"] == sum(count for _, count in point["durations_ns"]) and point["late_windows"] >= 0
        assert point["valid"] is True and point["operations_per_sample"] == 1


def test_windows_want_a_core_for_each_thread(implementation, tmp_path):
    pes = 2 * (os.cpu_count() or 1)
    points, skipped = measure(implementation, tmp_path, pes, "--ops", "sync_all", "--teams", "world", "--sizes", "8")
    assert schemes(points) == {("sync_all", "back-to-back")} and skipped == {"scheme=window"}


@pytest.mark.parametrize("fault", ["skipped-operation", "stale-result", "last-element-missing"])
def test_faults_are_caught(implementation, tmp_path, fault):
    points, _ = measure(implementation, tmp_path, 4, "--sizes", "1024", "--plant-fault", fault)
    barriers = {("world", op): fault == "last-element-missing" for op in EVERYTHING - SIZED}  # they have no elements
    assert verdicts(points) == dict.fromkeys(verdicts(points), False) | barriers


@pytest.mark.parametrize("fault", ["skipped-operation", "stale-result", "one-pe-reduction", "check-never-runs"])
def test_faults_are_caught_with_mpi(mpi_reference, tmp_path, fault):
    points, _ = measure(mpi_reference, tmp_path, 4, "--sizes", "1024", "--plant-fault", fault)
    assert set(verdicts(points).values()) == {False}


def test_what_does_not_fit_is_skipped_by_name(implementation, tmp_path):
    arguments = ["--ops", "broadcast,fcollect", "--sizes", "12,64,128", "--buffer-bytes", "128", "--teams", "world"]
    arguments += ["--schemes", "back-to-back"]
    points, skipped = measure(implementation, tmp_path, 2, *arguments)
    assert {(p["params"]["op"], p["params"]["size_bytes"]) for p in points} == {
        ("broadcast", 64),
        ("broadcast", 128),
        ("fcollect", 64),
    }
    assert skipped == {"12 bytes", "128 bytes, 2 PEs, in part"}


def test_plan():
    profile = plan.PROFILES["quick"]
    starts = plan.starts(profile, catalogue.select(["collectives"]), plan.Choices(), cores=2)
    def teams(of):
        return [(start.pes, start.arguments[start.arguments.index("--teams") + 1]) for start in of]
    assert teams(starts) == [(2, "world"), (8, "world")]
    every = plan.starts(plan.PROFILES["full"], catalogue.select(["collectives"]), plan.Choices(), cores=2)
    assert (8, "strided") in teams(every)
    assert {start.rounds for start in starts} == {profile.collective_rounds}
    chosen = plan.Choices(pes=(4,), sizes=(64, 128), rounds=7)
    for start in plan.starts(profile, catalogue.select(["collectives"]), chosen, cores=2):
        assert (start.pes, start.rounds) == (4, 7)
        assert start.arguments[start.arguments.index("--sizes") + 1] == "64,128"


@pytest.mark.long
def test_the_driver_measures_mpi_beside(shmem_mt, wrappers, mpi_reference, tmp_path):
    arguments = ["--only", "collectives", "--pes", "2", "--sizes", "64", "--rounds", "1", "--out", tmp_path / "run"]
    status, _, stderr = shmem_mt("run", "--oshcc", wrappers[0], "--oshrun", wrappers[1], "--label", "A", *arguments)
    assert status == 0, stderr
    assert {r["label"] for r in read_results(tmp_path / "run")} == {"A", mpi_reference.label}
    assert f"{mpi_reference.label}: collectives alltoalls skipped" in stderr


@pytest.mark.long
def test_without_mpi_it_is_skipped_by_name(shmem_mt, wrappers, tmp_path, monkeypatch):
    monkeypatch.setattr(mpi, "find", lambda *_: (None, "no mpicc here"))
    arguments = ["--only", "collectives", "--pes", "2", "--sizes", "64", "--rounds", "1", "--out", tmp_path / "run"]
    status, _, stderr = shmem_mt("run", "--oshcc", wrappers[0], "--oshrun", wrappers[1], "--label", "A", *arguments)
    assert status == 0, stderr
    assert "the MPI reference skipped: no mpicc here" in stderr
    assert {r["label"] for r in read_results(tmp_path / "run")} == {"A"}


def test_no_mpi_on_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert mpi.find() == (None, "no mpicc with mpirun or mpiexec on PATH")


def test_an_mpi_that_does_not_compile(tmp_path):
    for name, text in (("mpicc", "echo broken >&2; exit 1"), ("mpirun", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    found, missing = mpi.find(str(tmp_path / "mpicc"), str(tmp_path / "mpirun"))
    assert found is None and "broken" in missing


@pytest.mark.parametrize(
    "text,name",
    [
        ("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI 4.1.4"),
        ("MPICH Version:\t4.0.2\nMPICH Release date:\tunreleased", "MPICH 4.0.2"),
        ("MVAPICH2 Version      :\t2.3.7", "MVAPICH2 2.3.7"),
        ("Intel(R) MPI Library 2021.9 for Linux* OS", "Intel(R) MPI 2021.9"),
        ("", "unknown"),
    ],
)
def test_names_of_mpi_libraries(text, name):
    assert mpi.short_name(text) == name
