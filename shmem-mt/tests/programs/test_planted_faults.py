"""The five faults of known public benchmark code, planted one by one: each must be reported as invalid.

A fault is planted with the hidden option ``--plant-fault NAME`` of the programs (and of ``shmem-mt run``):
    rank-as-size        the rank is used where the number of PEs belongs
    peer-list-ignored   everybody sends to its neighbour, whatever the pairing says (seen with 4 PEs)
    one-pe-reduction    a value of one PE is divided by the number of PEs
    check-never-runs    the comparison returns "equal" without looking
    get-named-put       the operation reported as put gets

test_collectives.py has those that only collectives can have.
"""

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
    points = []
    arguments = [
        *EVERY_PROGRAM[program],
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
    return {
        (p["benchmark"], "consumed" if p["metric"] == "consumed_rate" else p["params"]["op"]): p["valid"]
        for p in points
    }


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
    assert "the bytes are wrong" in stderr
    assert any(r["valid"] is False and r["params"]["op"] == "put" for r in read_results(out))
