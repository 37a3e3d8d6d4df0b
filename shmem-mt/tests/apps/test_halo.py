"""Halo's solvers: in step they have a serial run's field bit for bit, asynchronous ones the known solution, and faults
are caught. test_exchanges.py has the exchange alone."""

import contextlib
import subprocess

import pytest
from conftest import app_events, compiled_without, make_point, read_results, run_points
from shmem_mt.runner.points import describe
from shmem_mt.runner.process import run_program
from shmem_mt.targets import fabrics, hosts

IN_STEP, ASYNC = ("jacobi7", "jacobi7-overlapped", "jacobi27"), ("async7", "async27")
ITERATIONS = {"jacobi7": 384, "jacobi7-overlapped": 384, "jacobi27": 192}
FORMS = (*IN_STEP, *ASYNC)
SOLVERS = ("--form", ",".join(FORMS))


def verdicts(implementation, pes, threads, *arguments):
    """{(form, context): its verdict} of a start that must go well."""
    found = app_events(implementation, "halo", pes, threads, *SOLVERS, *arguments)
    return {(event["form"], event["context"]): event for event in found if event["event"] == "verdict"}


@pytest.mark.parametrize(
    "pes,threads,grid",
    [
        (1, 1, "1x1x1"),
        (1, 3, "1x1x3"),
        (2, 1, "1x1x2"),
        (3, 2, "1x1x6"),
        (4, 1, "1x2x2"),
        (6, 3, "1x2x9"),
        (1, 8, "2x2x2"),
    ],
)
def test_every_form_finds_the_solution(implementation, pes, threads, grid):
    found = verdicts(implementation, pes, threads)
    assert set(found) == {(form, context) for form in FORMS for context in ("default", "private")}
    for (form, _), verdict in found.items():
        assert verdict["verdict"] == "pass", form
        assert verdict["grid"] == grid and verdict["edge"] == 12
        assert 0 < verdict["error"] < verdict["tolerance"] == 1e-4
        if form in IN_STEP:
            assert verdict["compared_with"] == "a serial run, bit for bit"
            assert verdict["iterations"] == ITERATIONS[form]
        else:
            assert verdict["rounds"] >= 1 and verdict["iterations"] > 100


@pytest.mark.parametrize(
    "pes,threads,edge,grid",
    [
        (2, 2, 1, "1x1x1"),  # one cell
        (6, 2, 2, "1x2x2"),  # more workers than there is work
        (7, 1, 5, "1x2x3"),
        (3, 2, 7, "1x1x6"),  # boxes of one and two cells
        (4, 2, 13, "1x2x4"),
        (8, 1, 9, "2x2x2"),
    ],
)
def test_odd_edges(implementation, pes, threads, edge, grid):
    found = verdicts(implementation, pes, threads, "--size", edge, "--contexts", "private")
    seen = {(form, v["verdict"], v["grid"]) for (form, _), v in found.items()}
    assert seen == {(form, "pass", grid) for form in FORMS}


def test_larger_grids_are_compared_with_the_known_solution_alone(implementation):
    found = verdicts(implementation, 1, 1, "--size", "65", "--form", "jacobi27", "--contexts", "default")
    (verdict,) = found.values()
    assert verdict["verdict"] == "pass" and verdict["compared_with"] == "the known solution"


@pytest.mark.parametrize("fabric", [fabrics.TCP, fabrics.NAMESPACES])
def test_over_a_network(implementation, tmp_path, fabric):
    """With 3 PEs on two hosts some neighbours are near and some are not."""
    why = implementation.unable(fabric) or fabric.missing()
    if why:
        pytest.skip(why)
    points = []
    arguments = ["--samples", "1", "--sample-ms", "0.1", "--point-ms", "1", "--threads", "2", *SOLVERS]
    with hosts.made(2) if fabric.hosts > 1 else contextlib.nullcontext() as made:
        command = implementation.launch_command("halo", 3, 2, arguments, fabric, hosts=made)
        outcome = run_program(command, str(tmp_path / "log.txt"), 120, points.append, implementation.exit_status_counts)
    assert outcome.ok, outcome.problem
    assert {(p["params"]["op"], p["valid"]) for p in points} == {(form, True) for form in FORMS}


def test_points_add_up(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "halo", 2, 2, *SOLVERS, "--contexts", "private", "--samples", "3")
    by_name = {(p["params"]["op"], p["metric"], p["params"]["part"], p["unit"]): p for p in points}
    assert len(by_name) == len(points)
    for form in FORMS:
        rate = by_name[form, "rate", "total", "cell updates/s"]
        parts = [by_name[form, "time", part, "s"] for part in ("total", "compute", "exchange", "pack")]
        for each in (rate, *parts):
            assert each["valid"] is True and each["params"]["edge"] == 12 and each["params"]["context"] == "private"
        for total, compute, exchange, pack in zip(*(p["samples"] for p in parts)):
            assert exchange > 0 and pack > 0 and compute == pytest.approx(total - exchange - pack, rel=1e-6)
    for form in IN_STEP:
        rate, time = by_name[form, "rate", "total", "cell updates/s"], by_name[form, "time", "total", "s"]
        for r, seconds in zip(rate["samples"], time["samples"]):
            assert r * seconds == pytest.approx(12**3 * ITERATIONS[form], rel=1e-6)


def test_without_put_with_signal_and_contexts(implementation, tmp_path):
    features = ("SHMEM_MT_HAVE_PUT_SIGNAL", "SHMEM_MT_HAVE_CTX", "SHMEM_MT_HAVE_TEAM_COLLECTIVES")
    old = compiled_without(implementation, tmp_path, "halo", *features)
    found = verdicts(old, 3, 2)
    assert set(found) == {(form, "default") for form in FORMS}
    assert {verdict["verdict"] for verdict in found.values()} == {"pass"}


def test_the_exchange_is_what_is_measured_unless_told(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "halo", 2, 1, "--sizes", "8")
    assert {p["params"]["op"] for p in points} == {"exchange"}


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--size", "257"], "--size 257: the edge of the grid is 1 to 256 cells"),
        (["--size", "0"], "--size: '0' is not a number between 1 and"),
        (["--form", "odd"], "unknown operation odd; there are exchange, jacobi7, jacobi7-overlapped, jacobi27,"),
    ],
)
def test_bad_options_end_with_status_2(implementation, arguments, words):
    done = subprocess.run([implementation.binaries["halo"], *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert words in done.stderr


def test_the_driver_measures_it(shmem_mt, wrappers, tmp_path):
    run = tmp_path / "run"
    implementation = ["--oshcc", wrappers[0], "--oshrun", wrappers[1]]
    chosen = ["--only", "halo", "--pes", "2", "--threads", "2", "--rounds", "1"]
    status, _, stderr = shmem_mt("run", *implementation, *chosen, "--out", run)
    assert status == 0, stderr
    results = read_results(run)
    assert {r["params"]["op"] for r in results} == {"exchange", *FORMS} and all(r["valid"] for r in results)
    assert shmem_mt("report", run)[0] == 0
    page = (run / "report.html").read_text(encoding="utf-8")
    assert '<section id="halo">' in page and '<section id="halo-forms">' in page


def test_describe_names_the_edge():
    told = {"edge": 12, "fabric": "tcp", "part": "total", "sync": "put_signal"}
    point = make_point(benchmark="halo", op="async7", **told)
    assert describe("halo", point["params"]).startswith("halo, async7, edge 12, ")
