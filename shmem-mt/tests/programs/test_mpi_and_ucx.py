"""MPI between two PEs and bare UCX: each synchronization and way is measured and right, and planted faults are seen."""

import os
import subprocess

import pytest
from shmem_mt.catalogue import catalogue
from shmem_mt.runner.process import run_program
from shmem_mt.targets import fabrics, mpi, ucx

ONE_SIDED = {"flush", "lock", "fence", "pscw"}
EPOCHS = {"fence", "pscw"}
OF_MPI = {
    "message_rate": {
        "put_nbi": ONE_SIDED,
        "send": {"waitall"},
        "get_nbi": ONE_SIDED,
        "atomic_add": ONE_SIDED,
        "atomic_fetch_add_nbi": ONE_SIDED,
    },
    "latency": {
        "put_round_trip": EPOCHS,
        "send_round_trip": {"waitall"},
        "p_quiet": ONE_SIDED,
        "put_quiet": ONE_SIDED,
        "get": ONE_SIDED,
        "atomic_add_quiet": ONE_SIDED,
        "atomic_fetch_add": ONE_SIDED,
    },
    "bandwidth": {"put": ONE_SIDED, "send": {"waitall"}, "get": ONE_SIDED},
}
OF_UCX = {
    "message_rate": {
        "put_nbi": {("put", 0), ("message", 0), ("packed", 4096), ("packed", 16384), ("packed", 65536)},
        "get_nbi": {("get", 0), ("message", 0), ("packed", 4096), ("packed", 16384), ("packed", 65536)},
    },
    "latency": {
        "put_round_trip": {("message", 0)},
        "p_quiet": {("put", 0), ("message", 0)},
        "put_quiet": {("put", 0), ("message", 0)},
        "get": {("get", 0), ("message", 0)},
    },
    "bandwidth": {"put": {("put", 0), ("message", 0)}, "get": {("get", 0), ("message", 0)}},
}


def measured(reference, tmp_path, program, *arguments, pes=2, threads=1, fabric=fabrics.ON_NODE, sizes="8"):
    """The points of a short start that must go well."""
    points = []
    quick = ["--samples", "1", "--sample-ms", "0.1", "--point-ms", "1", "--sizes", sizes, "--threads", str(threads)]
    command = reference.launch_command(program, pes, threads, [*quick, *arguments], fabric)
    patient = {**os.environ, "OMPI_MCA_mpi_yield_when_idle": "1"}  # other tests have the cores, too
    log = str(tmp_path / "log.txt")
    outcome = run_program(command, log, 120, points.append, reference.exit_status_counts, patient)
    assert outcome.ok, outcome.problem
    return points


def syncs_of(points):
    found = {}
    for point in points:
        found.setdefault(point["params"]["op"], set()).add(point["params"]["sync"])
    return found


def ways_of(points):
    found = {}
    for point in points:
        params = point["params"]
        found.setdefault(params["op"], set()).add((params["mechanism"], params.get("pack_bytes", 0)))
    return found


@pytest.mark.parametrize("program", OF_MPI)
def test_every_synchronization_of_mpi_is_measured(mpi_reference, tmp_path, program):
    points = measured(mpi_reference, tmp_path, program, sizes="8,5000")
    assert syncs_of(points) == OF_MPI[program]
    assert all(point["valid"] and point["checked_bytes"] > 0 for point in points)
    assert {point["params"]["api"] for point in points} == {"MPI"}
    assert {size for point in points for size in [point["params"]["size_bytes"]]} == {8, 5000}
    assert all("origin_cores" in point and "target_cores" in point for point in points)
    assert {point["params"]["sync"] for point in points} <= set(catalogue.SYNCS)


@pytest.mark.parametrize("pes,fabric", [(4, fabrics.ON_NODE), (2, fabrics.TCP)], ids=["on-node", "tcp"])
def test_threads_of_mpi_have_a_window_each(mpi_reference, tmp_path, pes, fabric):
    points = measured(mpi_reference, tmp_path, "message_rate", pes=pes, threads=2, fabric=fabric)
    assert syncs_of(points) == OF_MPI["message_rate"]
    assert all(point["valid"] and point["params"]["context"] == "private" for point in points)


# A fault, and the operations that it breaks; the others have no message that it touches.
EVERY = {"put_nbi", "send", "get_nbi", "atomic_add", "atomic_fetch_add_nbi"}
FAULTS = {
    "lost-message": EVERY,
    "skipped-operation": EVERY,
    "idle-timed-pass": EVERY,
    "check-never-runs": EVERY,
    "get-named-put": {"put_nbi"},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_messages_of_mpi_are_seen(mpi_reference, tmp_path, fault):
    points = measured(mpi_reference, tmp_path, "message_rate", "--plant-fault", fault)
    assert {(p["params"]["op"], p["valid"]) for p in points} == {(op, op not in FAULTS[fault]) for op in EVERY}


@pytest.mark.parametrize("fault", ["lost-message", "skipped-operation", "idle-timed-pass"])
def test_faults_in_latencies_of_mpi_are_seen(mpi_reference, tmp_path, fault):
    asked = ["--ops", "put_round_trip,p_quiet,get", "--syncs", "fence,waitall", "--plant-fault", fault]
    points = measured(mpi_reference, tmp_path, "latency", *asked)
    assert len(points) == 4 and not any(point["valid"] for point in points)


@pytest.mark.parametrize("program", OF_UCX)
def test_every_way_of_bare_ucx_is_measured(bare_ucx, tmp_path, program):
    points = measured(bare_ucx, tmp_path, program, sizes="8,3000", fabric=fabrics.TCP)
    assert ways_of(points) == OF_UCX[program]
    assert all(point["valid"] and point["checked_bytes"] > 0 for point in points)
    assert {point["params"]["api"] for point in points} == {"UCX"}
    assert all("origin_cores" in point and "target_cores" in point for point in points)
    assert {point["params"]["sync"] for point in points} <= set(catalogue.SYNCS)


@pytest.mark.parametrize("name", ["tcp", "ucx:sysv", "ucx:posix,cma"])
def test_bare_ucx_over_other_transports_and_with_threads(bare_ucx, tmp_path, name):
    fabric = fabrics.named(name)
    for program, sizes in (("message_rate", "8"), ("bandwidth", "300000")):
        points = measured(bare_ucx, tmp_path, program, pes=4, threads=2, sizes=sizes, fabric=fabric)
        assert points and all(point["valid"] and point["params"]["threads"] == 2 for point in points)


@pytest.mark.parametrize("fault", ["lost-message", "skipped-operation", "idle-timed-pass", "check-never-runs"])
def test_faults_in_bare_ucx_are_seen(bare_ucx, tmp_path, fault):
    for program, least in (("message_rate", 10), ("latency", 7)):
        points = measured(bare_ucx, tmp_path, program, "--plant-fault", fault, fabric=fabrics.TCP)
        assert len(points) >= least and not any(point["valid"] for point in points)


def test_a_get_that_is_called_a_put_is_seen(bare_ucx, tmp_path):
    points = measured(bare_ucx, tmp_path, "message_rate", "--plant-fault", "get-named-put", fabric=fabrics.TCP)
    assert {(p["params"]["op"], p["valid"]) for p in points} == {("put_nbi", False), ("get_nbi", True)}


def test_transports_that_are_none_end_in_words(bare_ucx, tmp_path):
    log = tmp_path / "log.txt"
    command = bare_ucx.launch_command("latency", 2, 1, ["--sizes", "8", "--transports", "teleport"])
    outcome = run_program(command, str(log), 60, lambda point: None, True)
    assert not outcome.ok and "bare UCX: ucp_" in log.read_text()


def test_a_source_has_the_operations_that_the_plan_gives_it(mpi_reference, bare_ucx):
    """The programs refuse others, so each must have all that it is asked for."""
    for reference, sources, of_program in ((mpi_reference, mpi, OF_MPI), (bare_ucx, ucx, OF_UCX)):
        for program, ops in sources.OPS.items():
            assert set(ops) == {op for op in of_program[program] if not op.startswith("send")}
            asked = ("--ops", f"teleport,{','.join(ops)}", "--sizes", "8")
            told = ("--ops", ",".join(ops), "--sizes", "8", "--benchmark", program.replace("_", "-"))
            assert reference.arguments_of(program, asked) == told


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--benchmark", "teleport"], "--benchmark teleport: there are message-rate, latency, bandwidth"),
        (["--ops", "teleport"], "unknown operation teleport"),
    ],
)
def test_bad_options_of_references(mpi_reference, arguments, words):
    done = subprocess.run([mpi_reference.binaries["latency"], *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and words in done.stderr
