"""Halo and alltoallv: every ghost cell and every block is right for all shapes of grids and shares of threads, and
faults are caught."""

import pytest
from conftest import compiled_without, run_points
from shmem_mt.catalogue import catalogue, plan

HALO = ["--sizes", "8,800"]
ALLTOALLV = ["--sizes", "8,4096"]


def keys(points, *names):
    return {tuple(p["params"][name] for name in names): p["valid"] for p in points}


def syncs_of(implementation):
    if not implementation.features["SHMEM_MT_HAVE_PUT_SIGNAL"]:
        return {"quiet_barrier"}
    return {"quiet_barrier", "put_signal"} | of_collectives(implementation, "request_merged")


def of_collectives(implementation, *names):
    """names, where the library has Heddle's extensions; exchanges as collectives go by the default context alone."""
    return set(names) if implementation.features["SHMEM_MT_HAVE_SHMEMX"] else set()


@pytest.mark.parametrize(
    "pes,threads,grid,remote",
    [
        (1, 3, "1x1x1", 0),
        (2, 1, "2x1x1", 2),
        (2, 6, "2x1x1", 2),
        (3, 2, "3x1x1", 2),
        (4, 4, "2x2x1", 4),
        (8, 1, "2x2x2", 6),
    ],
)
def test_every_ghost_cell_is_right(implementation, tmp_path, pes, threads, grid, remote):
    points, _ = run_points(implementation, tmp_path, "halo", pes, threads, *HALO)
    wanted = {
        (sync, context, size)
        for sync in syncs_of(implementation)
        for context in ("default", "shared", "private")
        for size in (8, 800)
    } | {
        (sync, "default", size)
        for sync in of_collectives(implementation, "neighbor_alltoallv", "plan")
        for size in (8, 800)
    }
    assert keys(points, "sync", "context", "size_bytes") == dict.fromkeys(wanted, True)
    assert keys(points, "grid", "remote_faces", "threads") == {(grid, remote, threads): True}
    assert {(p["metric"], p["unit"]) for p in points} == {("time", "s"), ("rate", "faces/s")}


def test_time_and_rate_are_of_the_same_exchanges(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "halo", 2, 1, "--sizes", "800", "--contexts", "default")
    for sync in syncs_of(implementation) | of_collectives(implementation, "neighbor_alltoallv", "plan"):
        time, rate = (p["samples"][0] for p in points if p["params"]["sync"] == sync)
        assert rate * time == pytest.approx(6 * 2, rel=1e-6)


@pytest.mark.parametrize("pes,threads", [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3), (8, 1)])
def test_every_block_is_right(implementation, tmp_path, pes, threads):
    points, _ = run_points(implementation, tmp_path, "alltoallv", pes, threads, *ALLTOALLV)
    wanted = {
        (op, context, size)
        for op in ("put", "put_nbi")
        for context in ("default", "shared", "private")
        for size in (8, 4096)
    } | {
        (op, "default", size)
        for op in of_collectives(implementation, "alltoallv", "alltoallv_nbe", "plan")
        for size in (8, 4096)
    }
    assert keys(points, "op", "context", "size_bytes") == dict.fromkeys(wanted, True)
    assert {(p["metric"], p["unit"]) for p in points} == {("time", "s"), ("bandwidth", "bytes/s")}


def test_the_seed_draws_the_blocks(implementation, tmp_path):
    def totals(seed):
        arguments = ["--sizes", "4096", "--ops", "put", "--contexts", "default", "--seed", seed]
        points, _ = run_points(implementation, tmp_path, "alltoallv", 4, 1, *arguments)
        assert {p["valid"] for p in points} == {True}
        time, bandwidth = (p["samples"][0] for p in points)
        (total,) = {p["params"]["total_bytes"] for p in points}
        assert time * bandwidth == pytest.approx(total, rel=1e-6)
        return total

    first, again, other = totals("1"), totals("1"), totals("7")
    assert first == again != other
    assert all(total % 8 == 0 and 0 < total <= 16 * 2 * 4096 for total in (first, other))


FAULTS = [
    ("rank-as-size", 2),
    ("peer-list-ignored", 4),
    ("one-pe-reduction", 2),
    ("check-never-runs", 2),
    ("get-named-put", 2),
    ("skipped-operation", 2),
    ("stale-result", 2),
    ("last-element-missing", 2),
]


@pytest.mark.parametrize("program", ["halo", "alltoallv"])
@pytest.mark.parametrize("fault,pes", FAULTS)
def test_faults_are_caught(implementation, tmp_path, program, fault, pes):
    points, _ = run_points(implementation, tmp_path, program, pes, 2, "--sizes", "4096", "--plant-fault", fault)
    assert {p["valid"] for p in points} == {False}


@pytest.mark.long
def test_what_cannot_be_measured_is_skipped_by_name(implementation, tmp_path):
    without = compiled_without(implementation, tmp_path, "halo", "SHMEM_MT_HAVE_PUT_SIGNAL")
    points, skipped = run_points(without, tmp_path, "halo", 2, 1, "--sizes", "8", "--contexts", "default")
    collectives = of_collectives(implementation, "neighbor_alltoallv", "plan")
    assert keys(points, "sync") == dict.fromkeys({("quiet_barrier",), *((sync,) for sync in collectives)}, True)
    assert skipped == {"put_signal", "request_merged", "neighbor_alltoallv", "plan"} - collectives
    without = compiled_without(implementation, tmp_path, "halo", "SHMEM_MT_HAVE_SHMEMX")
    points, skipped = run_points(without, tmp_path, "halo", 2, 1, "--sizes", "8", "--contexts", "default")
    assert keys(points, "sync") == {(sync,): True for sync in syncs_of(implementation) - {"request_merged"}}
    assert {"request_merged", "neighbor_alltoallv", "plan"} <= skipped
    assert run_points(without, tmp_path, "halo", 2, 7) == ([], {"threads=7"})
    assert run_points(implementation, tmp_path, "alltoallv", 2, 3) == ([], {"threads=3"})
    arguments = ["--sizes", "64,4096", "--buffer-bytes", "1000", "--contexts", "default", "--ops", "put"]
    points, skipped = run_points(implementation, tmp_path, "alltoallv", 2, 1, *arguments)
    assert keys(points, "size_bytes") == {(64,): True} and skipped == {"4096 bytes"}


def test_plan_takes_any_number_of_pes():
    chosen = plan.Choices(pes=(3,), threads=(1, 3))
    both = catalogue.select(["halo", "alltoallv"])
    catalogue.check_pes(both, chosen.pes)
    starts = plan.starts(plan.PROFILES["quick"], both, chosen, cores=2)
    assert [(start.program, start.pes, start.threads) for start in starts] == [
        ("halo", 3, 1),
        ("halo", 3, 3),
        ("alltoallv", 3, 1),
        ("alltoallv", 3, 3),
    ]
