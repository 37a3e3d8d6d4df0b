"""The programs themselves: options, and where the installed command finds them."""

import os
import subprocess

import pytest
from conftest import compiled_without, run_points
from shmem_mt import sources
from shmem_mt.catalogue import catalogue
from shmem_mt.errors import UserError
from shmem_mt.runner.process import run_program
from shmem_mt.targets import build, mpi, ucx


def test_programs_are_found():
    beside = {*mpi.SOURCES.values(), *ucx.SOURCES.values()}
    for name in {benchmark.program for benchmark in catalogue.BENCHMARKS} | beside:
        assert os.path.exists(sources.source_of(name))
    for name in build.PROBES:
        assert os.path.exists(sources.probe(name))
    with pytest.raises(UserError, match="has 0 sources of the program teleport"):
        sources.source_of("teleport")


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--ops", "teleport"], "unknown operation teleport"),
        (["--sizes", "0"], "not a number between"),
        (["--sizes", "8x"], "not a number between"),
        (["--threads", "1000"], "not a number between"),
        (["--placements", "moon"], "unknown placement"),
        (["--contexts", "odd"], "unknown context"),
        (["--teams", "red"], "unknown team"),
        (["--partner", "next"], "unknown partner next; there are near, far"),
        (["--buffer-bytes", "1"], "not a number between"),
        (["--compute-ratio", "0"], "not a number between"),
        (["--plant-fault", "x"], "no fault is called x"),
        (["extra"], "unexpected argument extra"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_bad_options_end_with_status_2(implementation, arguments, words):
    done = subprocess.run(
        [implementation.binaries["message_rate"], *arguments], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 2
    assert words in done.stderr


def test_an_odd_number_of_pes_is_refused(implementation, tmp_path):
    log = tmp_path / "log"
    command = implementation.launch_command("message_rate", 3, 1, [])
    outcome = run_program(command, str(log), 60, lambda point: None, False)
    assert not outcome.ok
    assert "must be even" in log.read_text()


def test_contexts_missing_are_skipped_by_name(implementation, tmp_path):
    """A library without contexts: the same program, compiled as the probe would have it."""
    without = compiled_without(
        implementation, tmp_path, "latency", "SHMEM_MT_HAVE_CTX", "SHMEM_MT_HAVE_PUT_SIGNAL"
    )
    points = []
    arguments = ["--ops", "put_signal_round_trip,p_quiet", "--samples", "1", "--sample-ms", "0.1"]
    outcome = run_program(
        without.launch_command("latency", 2, 1, arguments), str(tmp_path / "log"), 60, points.append, False
    )
    assert outcome.ok, outcome.problem
    assert {p["params"]["context"] for p in points} == {"default"}
    assert any("shmem_ctx_create" in skip["reason"] for skip in outcome.skips)
    assert any(skip["what"] == "put_signal_round_trip" for skip in outcome.skips)


@pytest.mark.parametrize("program", ["bandwidth", "ordering"])
def test_partners_that_are_not_there_are_no_points(implementation, tmp_path, program):
    """With the fault every PE is a host for itself, and has no partner on it."""
    told = ("--sizes", "64", "--plant-fault", "foreign-clocks", "--partner")
    assert run_points(implementation, tmp_path, program, 2, 1, *told, "near") == ([], {"all"})
    (point, *_), _ = run_points(implementation, tmp_path, program, 4, 1, *told, "far")
    assert (point["params"]["hosts"], point["params"]["partner"]) == (4, "far")
    assert run_points(implementation, tmp_path, program, 2, 1, *told[:2], "--partner", "far") == ([], {"all"})
    (point, *_), _ = run_points(implementation, tmp_path, program, 2, 1, *told[:2], "--partner", "near")
    assert not {"hosts", "partner"} & set(point["params"])  # of one host nothing is said
