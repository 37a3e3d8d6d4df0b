"""Faults planted one by one, among them the five of known public benchmark code: each must be reported as invalid.

A fault is planted with the hidden option ``--plant-fault NAME`` of the programs (and of ``shmem-mt run``):
    rank-as-size        the rank is used where the number of PEs belongs
    peer-list-ignored   everybody sends to its neighbour, whatever the pairing says (seen with 4 PEs)
    one-pe-reduction    a value of one PE is divided by the number of PEs
    check-never-runs    the comparison returns "equal" without looking
    get-named-put       the operation reported as put gets
    idle-timed-pass     the loop that is timed does nothing; the validating pass is right
    idle-thread         the same of the last thread of each PE alone
    early-barrier       barriers and syncs return at once
    foreign-clocks      every PE counts as a host, and the clock of PE i is i * 1000 s ahead: nothing may be wrong, for
                        clocks are compared, and the point says how well
    late-sender         PE 1 stamps the start and the end of each sample 100 s later than they are: the rate must be
                        that of the common window, and the point says that it is staggered

test_collectives.py has those that only collectives can have.
"""

import os

import pytest
from conftest import read_results
from shmem_mt.runner.process import run_program

EVERY_PROGRAM = {
    "message_rate": ["--ops", "p,g,put,put_nbi,atomic_add,consumed", "--sizes", "8", "--placements", "heap"],
    "bandwidth": ["--ops", "put,get,put_both_ways", "--sizes", "1024"],
    "latency": ["--ops", "put_round_trip,put_quiet,get,barrier_all", "--sizes", "64"],
    "collectives": ["--sizes", "64", "--teams", "world"],
}


def measure(implementation, tmp_path, program, fault, pes=2, threads=1):
    points = run_faulty(implementation, tmp_path, program, fault, EVERY_PROGRAM[program], pes, threads)
    return {
        (p["benchmark"], "consumed" if p["metric"] == "consumed_rate" else p["params"]["op"]): p["valid"]
        for p in points
    }


def run_faulty(implementation, tmp_path, program, fault, options, pes=2, threads=1):
    """The points of a short start with that fault."""
    return start_faulty(implementation, tmp_path, program, fault, options, pes, threads)[0]


def start_faulty(implementation, tmp_path, program, fault, options, pes=2, threads=1):
    """(the points of a short start with that fault, what it skipped)"""
    points = []
    arguments = [
        *options,
        "--contexts",
        "default",
        "--samples",
        "1",
        "--sample-ms",
        "0.1",
        "--threads",
        str(threads),
        "--plant-fault",
        fault,
    ]
    command = implementation.launch_command(program, pes, threads, arguments)
    outcome = run_program(command, str(tmp_path / "log.txt"), 60, points.append, implementation.exit_status_counts)
    assert outcome.ok, outcome.problem
    assert points
    return points, {skip["what"] for skip in outcome.skips}


@pytest.mark.parametrize("program", EVERY_PROGRAM)
def test_without_a_fault_everything_is_valid(implementation, tmp_path, program):
    assert set(measure(implementation, tmp_path, program, "none").values()) == {True}


def test_four_pes_are_valid(implementation, tmp_path):
    assert set(measure(implementation, tmp_path, "message_rate", "none", pes=4).values()) == {True}


def test_two_threads_are_valid(implementation, tmp_path):
    assert set(measure(implementation, tmp_path, "bandwidth", "none", threads=2).values()) == {True}


@pytest.mark.parametrize("program", EVERY_PROGRAM)
@pytest.mark.parametrize("fault", ["one-pe-reduction", "check-never-runs"])
def test_faults_that_touch_everything(implementation, tmp_path, program, fault):
    assert set(measure(implementation, tmp_path, program, fault).values()) == {False}


@pytest.mark.parametrize("fault,pes", [("rank-as-size", 2), ("rank-as-size", 4), ("peer-list-ignored", 4)])
def test_wrong_peer(implementation, tmp_path, fault, pes):
    valid = measure(implementation, tmp_path, "message_rate", fault, pes)
    for op in ("p", "g", "put", "put_nbi", "atomic_add"):
        assert valid["message-rate", op] is False, op
    assert valid["message-rate", "plain_store"] is False


@pytest.mark.parametrize("program", ["bandwidth", "latency"])
def test_wrong_peer_in_the_other_programs(implementation, tmp_path, program):
    valid = measure(implementation, tmp_path, program, "rank-as-size")
    ops = {"bandwidth": ("put", "get"), "latency": ("put_quiet", "get")}[program]
    for op in ops:
        assert valid[program, op] is False, op


@pytest.mark.parametrize(
    "program,benchmark,op",
    [
        ("message_rate", "message-rate", "put"),
        ("bandwidth", "bandwidth", "put"),
        ("bandwidth", "bibandwidth", "put"),
        ("latency", "latency", "put_quiet"),
    ],
)
def test_get_named_put(implementation, tmp_path, program, benchmark, op):
    assert measure(implementation, tmp_path, program, "get-named-put")[benchmark, op] is False


# Every loop that is timed, by program.
TIMED = {
    "message_rate": ["--ops", "p,g,put,get,put_nbi,get_nbi,atomic_add,atomic_fetch_add", "--sizes", "8,100"],
    "bandwidth": ["--ops", "put,get,put_both_ways", "--sizes", "100,1024", "--caches", "hot,cold"],
    "latency": [
        *("--ops", "put_round_trip,put_signal_round_trip,put_quiet,g,get,atomic_add_quiet,atomic_fetch_add"),
        *("--sizes", "64", "--caches", "hot,cold"),
    ],
    "collectives": ["--sizes", "64,1000", "--teams", "world"],
    "collectives_mt": ["--sizes", "64,1000", "--teams", "world"],
    "alltoallv": ["--sizes", "512"],
    "halo": ["--form", "exchange", "--sizes", "512"],
    "overlap": ["--sizes", "4096", "--policies", "manual", "--ops", "put,get,sum_reduce"],
    "ordering": ["--sizes", "64", "--outstanding", "8"],
    "wait": ["--ops", "barrier_cost"],
}


def told(points):
    names = ("op", "sync", "touch", "cache", "owner", "size_bytes")
    return [{name: p["params"][name] for name in names if name in p["params"]} | {"valid": p["valid"]} for p in points]


@pytest.mark.parametrize("program", TIMED)
def test_a_timed_loop_that_does_nothing(implementation, tmp_path, program):
    points = run_faulty(implementation, tmp_path, program, "idle-timed-pass", TIMED[program])
    assert [point for point in told(points) if point["valid"] is not False] == []
    outstanding = 8 if program == "ordering" else 1  # of which a sample is a multiple
    assert all(point["operations_per_sample"] <= outstanding << 27 for point in points)


@pytest.mark.parametrize("program", ["message_rate", "bandwidth", "latency", "alltoallv", "ordering"])
def test_a_thread_that_does_nothing(implementation, tmp_path, program):
    points = run_faulty(implementation, tmp_path, program, "idle-thread", TIMED[program], threads=2)
    assert [point for point in told(points) if point["valid"] is not False] == []
    assert all("wrong values" in point["why"] for point in points)


@pytest.mark.parametrize("program", TIMED)
def test_timed_loops_are_valid(implementation, tmp_path, program):
    points = run_faulty(implementation, tmp_path, program, "none", TIMED[program])
    assert [point for point in told(points) if point["valid"] is not True] == []
    assert all("CPU" in point["binding"] for point in points)


def test_a_barrier_that_returns_at_once(implementation, tmp_path):
    options = ["--ops", "barrier_all,sync_all", "--sizes", "8"]
    points = run_faulty(implementation, tmp_path, "latency", "early-barrier", options)
    assert [point["valid"] for point in points] == [False, False]


def test_who_had_the_line_and_who_reads_are_axes(implementation, tmp_path):
    points, skipped = start_faulty(implementation, tmp_path, "latency", "none", TIMED["latency"])
    owners = {(p["params"]["op"], p["params"]["owner"]) for p in points if "owner" in p["params"]}
    every = ("warm", "handed-over", "contended", "false-sharing")
    assert owners == {(op, owner) for op in ("g", "get", "atomic_add_quiet", "atomic_fetch_add") for owner in every}
    read = {(p["params"]["touch"], p["params"]["cache"]) for p in points if p["params"]["sync"] == "fence_flag"}
    caches = ("hot",) if "cache=cold" in skipped else ("hot", "cold")  # a last cache of 128 MiB is too large
    assert read == {(touch, cache) for touch in ("read", "write-only") for cache in caches}


@pytest.mark.parametrize("program,windows", [("bandwidth", {64 << 10}), ("message_rate", {8 << 10, 16 << 10})])
def test_points_say_what_their_messages_rotate_through(implementation, tmp_path, program, windows):
    options = ["--ops", "put,put_both_ways,get" if program == "bandwidth" else "p,put,consumed", "--sizes", "1024"]
    options += ["--placements", "heap", "--caches", "hot,cold"]
    params = [point["params"] for point in run_faulty(implementation, tmp_path, program, "none", options)]
    assert {one["window_bytes"] for one in params if one["cache"] == "hot"} == windows
    assert all(one["window_bytes"] > max(windows) for one in params if one["cache"] == "cold")


@pytest.mark.parametrize("program,op", [("latency", "put_round_trip"), ("bandwidth", "put")])
def test_cold_points_that_the_heap_has_no_room_for_are_skipped(implementation, tmp_path, monkeypatch, program, op):
    monkeypatch.setenv("SHMEM_SYMMETRIC_SIZE", "16M")
    options = ["--ops", op, "--sizes", "64", "--caches", "hot,cold", "--touches", "read"]
    points, skipped = start_faulty(implementation, tmp_path, program, "none", options)
    assert {(point["params"]["cache"], point["valid"]) for point in points} == {("hot", True)}
    assert skipped == {"cache=cold"}


@pytest.mark.parametrize("fault", ["get-named-put", "rank-as-size"])
@pytest.mark.parametrize("program", ["latency", "bandwidth"])
def test_payload_that_does_not_come_with_its_flag(implementation, tmp_path, program, fault):
    names = {"latency": "put_round_trip,put_signal_round_trip", "bandwidth": "put"}
    options = ["--ops", names[program], "--sizes", "64", "--touches", "read"]
    points = run_faulty(implementation, tmp_path, program, fault, options)
    flagged = [p for p in points if p["params"]["sync"] in ("fence_flag", "put_signal")]
    assert flagged and {p["valid"] for p in flagged} == {False}


def test_consumed_messages_that_go_elsewhere(implementation, tmp_path):
    options = ["--ops", "consumed", "--batches", "8,512"]
    points = run_faulty(implementation, tmp_path, "message_rate", "rank-as-size", options)
    assert [point["valid"] for point in points] == [False, False]


@pytest.mark.parametrize(
    "program,options", [("message_rate", ["--ops", "put,consumed"]), ("bandwidth", ["--ops", "put"])]
)
def test_rates_are_those_of_the_common_window(implementation, tmp_path, program, options):
    options = [*options, "--sizes", "64", "--placements", "heap"]
    for point in run_faulty(implementation, tmp_path, program, "late-sender", options, pes=4):
        if point["params"]["op"] in ("plain_store", "memcpy"):
            continue
        moved = 2 * point["operations_per_sample"] * (64 if point["metric"] == "bandwidth" else 1)
        assert all(moved / rate >= 90 for rate in point["samples"]), told([point])
        assert point["staggered"] is True


@pytest.mark.parametrize(
    "fault,words",
    [
        ("one-pe-reduction", "a mean over the PEs was wrong"),
        ("check-never-runs", "the check compared 0 of "),
        ("get-named-put", "the validating pass found wrong values"),
        ("idle-timed-pass", "a sample was faster than the machine's limit"),
    ],
)
def test_an_invalid_point_says_why(implementation, tmp_path, fault, words):
    points = run_faulty(implementation, tmp_path, "bandwidth", fault, EVERY_PROGRAM["bandwidth"])
    told = {p["params"]["op"]: p["why"] for p in points if not p["valid"]}
    assert words in told["put"]
    assert "faster" not in told["put"] or fault == "idle-timed-pass"


FOREIGN = {
    "message_rate": ["--ops", "put,g,consumed", "--placements", "heap", "--sizes", "64"],
    "bandwidth": ["--ops", "put,get", "--sizes", "64"],
    "latency": ["--ops", "put_round_trip,barrier_all", "--sizes", "64"],
    "collectives": ["--sizes", "64", "--teams", "world"],
    "ordering": ["--sizes", "64", "--outstanding", "8"],
}


@pytest.mark.parametrize("program", FOREIGN)
def test_clocks_of_several_hosts_are_compared(implementation, tmp_path, program):
    """And the error is told; hours that clocks are apart are in no sample."""
    points = run_faulty(implementation, tmp_path, program, "foreign-clocks", FOREIGN[program], pes=2)
    assert [point for point in told(points) if point["valid"] is not True] == []
    for point in points:
        assert 0 < point["clock_error_s"] < 100, told([point])
        assert point.get("start_spread_s", 0) < 100
        moved = {"rate": 1, "consumed_rate": 1, "bandwidth": 64}.get(point["metric"])
        count = point["operations_per_sample"]
        seconds = [moved * count / value if moved else count * value for value in point["samples"]]
        assert 0 < max(seconds) < 100


def test_one_host_has_one_clock(implementation, tmp_path):
    points = run_faulty(implementation, tmp_path, "latency", "none", FOREIGN["latency"])
    assert not any("clock_error_s" in point for point in points)


@pytest.mark.parametrize(
    "program,fault,threads,few",
    [
        ("message_rate", "none", 1, True),
        ("startup", "none", 1, True),
        ("message_rate", "foreign-clocks", 1, False),  # every PE counts as a host, and so has a core of its own
        ("message_rate", "foreign-clocks", 2, True),
    ],
)
def test_cores_are_those_that_a_pe_may_use(implementation, tmp_path, program, fault, threads, few):
    """Two PEs that may use one core, however many the machine has."""
    options = ["--ops", "p", "--placements", "heap"] if program == "message_rate" else []
    usable = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(usable)})
        points = run_faulty(implementation, tmp_path, program, fault, options, threads=threads)
    finally:
        os.sched_setaffinity(0, usable)
    assert {point["params"]["oversubscribed"] for point in points} == {few}
    if program != "startup" and fault == "none":  # threads that spin on one core are preempted
        assert sum(point["preempted"] for point in points) > 0
    if program == "message_rate":  # a PE has one core, however many threads
        assert all(0 < point[half] <= 1.1 for point in points for half in ("origin_cores", "target_cores"))


def test_operations_are_stamped_where_they_are_long_enough(implementation, tmp_path):
    options = ["--ops", "put_round_trip,put_quiet,get,atomic_fetch_add,barrier_all", "--sizes", "8,262144"]
    points = run_faulty(implementation, tmp_path, "latency", "none", options)
    long = [point for point in points if min(point["samples"]) >= 200e-9]
    assert {point["params"]["op"] for point in long} >= {"put_round_trip", "put_quiet", "get"}
    for point in points:
        assert ("durations_ns" in point) == (point in long), told([point])
        if point in long:
            counts = dict(point["durations_ns"])
            assert sum(counts.values()) >= 8 and max(counts) <= 1e9 * point["longest_s"] + 1


@pytest.mark.long
def test_the_driver_reports_it_and_fails(shmem_mt, wrappers, tmp_path):
    out = tmp_path / "run"
    status, _, stderr = shmem_mt(
        "run",
        "--oshcc",
        wrappers[0],
        "--oshrun",
        wrappers[1],
        "--only",
        "bandwidth",
        "--sizes",
        "1024",
        "--threads",
        "1",
        "--rounds",
        "1",
        "--out",
        out,
        "--plant-fault",
        "get-named-put",
    )
    assert status == 1
    assert "invalid: the validating pass found wrong values" in stderr
    assert any(r["valid"] is False and r["params"]["op"] == "put" for r in read_results(out))
