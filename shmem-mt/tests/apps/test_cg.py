"""CG: every form finds the published zeta, with the same bits where it should, and a wrong answer is seen as one."""

import os
import subprocess

import pytest
from conftest import app_events, app_verdicts, compiled_without, make_point, run_points
from shmem_mt.catalogue import catalogue
from shmem_mt.runner.points import describe

FORMS = catalogue.select(["cg"])[0].ops
SHORT = ["--class", "S", "--point-ms", "1"]


def events(implementation, pes, threads, *arguments):
    return app_events(implementation, "cg", pes, threads, "--class", "S", *arguments)


def verdicts(implementation, pes, threads, *arguments):
    return app_verdicts(implementation, "cg", pes, threads, "--class", "S", *arguments)


def possible(implementation):
    """The forms that must be there. Not every machine can monitor a cache line."""
    every = FORMS if implementation.features["SHMEM_MT_HAVE_PROGRESS"] else ("blocking",)
    return set(every) - {"thread:monitor"}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("pes", [1, 2, 3, 4])
def test_every_form_finds_the_published_zeta(implementation, pes, threads):
    found = verdicts(implementation, pes, threads, "--pieces", "3")
    assert possible(implementation) <= set(found) <= set(FORMS)
    for form, verdict in found.items():
        assert verdict["verdict"] == "pass", form
        assert abs(float(verdict["zeta"]) - 8.5971775078648) <= 1e-10
        assert float(verdict["residual"]) < 1e-11
    # The residual is all rounding: it differs when a single operation does.
    numbers = {form: (v["zeta"], v["residual"]) for form, v in found.items()}
    pipelined = numbers.pop("pipelined", None)
    assert set(numbers.values()) == {numbers["blocking"]}
    assert pipelined != numbers["blocking"]


def test_neither_threads_nor_pieces_nor_polls_change_a_bit(implementation):
    if "manual" not in possible(implementation):
        pytest.skip("the library has no non-blocking collectives")
    found = set()
    for threads, pieces, rows in ((1, 1, 1), (2, 4, 7), (3, 64, 1000)):
        more = ("--form", "manual", "--pieces", str(pieces), "--poll-rows", str(rows))
        (verdict,) = verdicts(implementation, 2, threads, *more).values()
        found.add((verdict["zeta"], verdict["residual"]))
    assert len(found) == 1


def test_active_sets_lead_to_the_same_bits(implementation, tmp_path):
    old = compiled_without(implementation, tmp_path, "cg", "SHMEM_MT_HAVE_TEAM_COLLECTIVES")
    numbers = [
        (verdict["zeta"], verdict["residual"])
        for which in (implementation, old)
        for verdict in verdicts(which, 3, 1, "--form", "blocking").values()
    ]
    assert len(numbers) == 2 and numbers[0] == numbers[1]


def test_points_add_up(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "cg", 2, 1, *SHORT, "--samples", "3")
    by_name = {(p["params"]["op"], p["metric"], p["params"]["part"], p["unit"]): p for p in points}
    assert len(by_name) == len(points)
    for form in possible(implementation):
        rate = by_name[form, "rate", "total", "iterations/s"]
        parts = [by_name[form, "time", part, "s"] for part in ("total", "compute", "wait")]
        for each in (rate, *parts):
            assert each["valid"] is True and each["params"]["class"] == "S" and each["params"]["pes"] == 2
        for r, total, compute, wait in zip(*(p["samples"] for p in (rate, *parts))):
            assert 0 < wait < total and compute == pytest.approx(total - wait, rel=1e-6)
            assert r == pytest.approx(25 * 15 / total, rel=1e-6)
        # A run of class S is 66.7 million operations by NPB's count: 2 * 15 * 1400 rows, 7 * 8 entries a row.
        merit = by_name[form, "figure_of_merit", "total", "Mop/s"]["samples"]
        operations = 2e-6 * 15 * 1400 * (3 + 56 + 25 * (5 + 56) + 3)
        assert merit == pytest.approx([operations / seconds for seconds in parts[0]["samples"]], rel=1e-6)
        share = by_name[form, "communication", "communication", "%"]
        for percent, total, wait in zip(*(p["samples"] for p in (share, parts[0], parts[2]))):
            assert percent == pytest.approx(100 * wait / total, rel=1e-6)


def test_the_verdict_says_where_the_time_goes(implementation):
    (verdict,) = verdicts(implementation, 2, 1, "--form", "blocking").values()
    seconds = verdict["seconds"]
    assert seconds.keys() == {"total", "compute", "wait"}
    assert 0 < seconds["wait"] < seconds["total"] and 0 < verdict["communication_percent"] < 100


def test_a_zeta_that_is_no_number_fails(implementation):
    """Without the product every factor is a division by zero."""
    (verdict,) = verdicts(implementation, 1, 1, "--form", "blocking", "--plant-fault", "skipped-computation").values()
    assert verdict["verdict"] == "fail" and verdict["zeta"] in ("nan", "-nan")


def test_polls_are_placed_by_trying(implementation):
    if "manual" not in possible(implementation):
        pytest.skip("the library has no non-blocking collectives")
    found = events(implementation, 2, 1, "--form", "manual")
    (tuned,) = [event["poll_rows"] for event in found if event["event"] == "tuned"]
    assert tuned in (8, 32, 128, 512, 2048)
    found = events(implementation, 2, 1, "--form", "manual", "--poll-rows", "77")
    assert [event["poll_rows"] for event in found if event["event"] == "tuned"] == [77]


def test_forms_missing_are_skipped_by_name(implementation, tmp_path):
    without = compiled_without(implementation, tmp_path, "cg", "SHMEM_MT_HAVE_PROGRESS")
    points, skipped = run_points(without, tmp_path, "cg", 2, 1, *SHORT)
    assert {p["params"]["op"] for p in points} == {"blocking"}
    assert skipped == set(FORMS) - {"blocking"}


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--class", "E"], "--class: there is no class E; there are S, W, A, B, C, D"),
        (["--size", "7"], "--size 7: there are tiny (class S), small (W), medium (A) and large (C)"),
        (["--size", "huge"], "--size: 'huge' is not a number between 1 and"),
        (["--form", "odd"], "unknown operation odd; there are blocking, manual,"),
        (["--pieces", "0"], "--pieces: '0' is not a number between 1 and 64"),
        (["--poll-rows", "-3"], "--poll-rows: '-3' is not a number between"),
    ],
)
def test_bad_options_end_with_status_2(implementation, arguments, words):
    done = subprocess.run([implementation.binaries["cg"], *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert words in done.stderr


def test_what_does_not_fit_into_the_machine_is_refused(implementation):
    """Ahead of the matrix, which no test has the time for."""
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 25 << 30:
        pytest.skip("this machine has room for class D")
    command = implementation.launch_command("cg", 2, 1, ["--class", "D", "--point-ms", "1"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert "--class D needs" in done.stderr and "GiB of memory here, and the machine has" in done.stderr


def test_describe_names_the_class():
    point = make_point(benchmark="cg", op="auto", **{"class": "A", "fabric": "tcp", "part": "wait"})
    assert describe("cg", point["params"]).startswith("cg, auto, class A, ")
