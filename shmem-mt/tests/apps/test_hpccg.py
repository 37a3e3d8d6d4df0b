"""HPCCG: every form follows a serial run to the solution that is known, however the planes lie, and a wrong answer is
seen as one."""

import os
import subprocess

import pytest
from conftest import app_events, app_verdicts, compiled_without, make_point, run_points
from shmem_mt.catalogue import catalogue
from shmem_mt.runner.points import describe

FORMS = catalogue.select(["hpccg"])[0].ops
STANDARD = ("blocking", "overlapped")  # without extensions
SHORT = ("--poll-rows", "100")


def possible(implementation):
    """The forms that must be there. Not every machine can monitor a cache line."""
    every = FORMS if implementation.features["SHMEM_MT_HAVE_PROGRESS"] else STANDARD
    return set(every) - {"thread:monitor"}


@pytest.mark.parametrize(
    "pes,threads,size",
    [(1, 1, "tiny"), (1, 3, "5"), (2, 1, "tiny"), (2, 2, "24"), (3, 1, "9"), (3, 2, "tiny"), (4, 2, "6"), (6, 1, "5")],
)
def test_every_form_follows_the_serial_run(implementation, pes, threads, size):
    found = app_verdicts(implementation, "hpccg", pes, threads, "--size", size, *SHORT)
    assert possible(implementation) <= set(found) <= set(FORMS)
    edge = 12 if size == "tiny" else int(size)
    for _form, verdict in found.items():
        assert verdict["verdict"] == "pass", verdict
        assert verdict["edge"] == edge and verdict["rows"] == 4 * edge**3
        assert verdict["deviation"] < 1e-12 and verdict["drift"] < 1e-13 and verdict["error"] < 1e-6
        assert verdict["residual"] == pytest.approx(found["blocking"]["residual"], rel=1e-2)


@pytest.mark.parametrize("pes,threads,size", [(6, 3, "1"), (5, 2, "1"), (3, 3, "2")])
def test_there_may_be_less_to_do_than_there_are_pes_and_threads(implementation, pes, threads, size):
    """4 planes of 1 point for 6 PEs: some have none, others a neighbour on both sides and no interior. So small a
    problem is solved to the last bit long before the last iteration."""
    found = app_verdicts(implementation, "hpccg", pes, threads, "--size", size, *SHORT)
    assert possible(implementation) <= set(found)
    for verdict in found.values():
        assert verdict["verdict"] == "pass" and verdict["error"] < 1e-13


def test_threads_and_polls_change_no_bit(implementation):
    form = "manual" if "manual" in possible(implementation) else "blocking"
    numbers = set()
    for threads, rows in ((1, 1), (2, 7), (3, 1000)):
        more = ("--size", "9", "--form", form, "--poll-rows", str(rows))
        (verdict,) = app_verdicts(implementation, "hpccg", 2, threads, *more).values()
        numbers.add((verdict["residual"], verdict["deviation"], verdict["error"]))
    assert len(numbers) == 1


def test_active_sets_and_plain_signals_lead_to_the_same_bits(implementation, tmp_path):
    old = compiled_without(
        implementation, tmp_path, "hpccg", "SHMEM_MT_HAVE_TEAM_COLLECTIVES", "SHMEM_MT_HAVE_PUT_SIGNAL"
    )
    numbers = [
        (verdict["residual"], verdict["deviation"])
        for which in (implementation, old)
        for verdict in app_verdicts(which, "hpccg", 3, 2, "--form", "blocking").values()
    ]
    assert len(numbers) == 2 and numbers[0] == numbers[1]


def test_threads_without_contexts_use_the_default_one(implementation, tmp_path):
    old = compiled_without(implementation, tmp_path, "hpccg", "SHMEM_MT_HAVE_CTX")
    for verdict in app_verdicts(old, "hpccg", 2, 2, *SHORT).values():
        assert verdict["verdict"] == "pass"


def test_points_add_up(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "hpccg", 2, 1, "--samples", "3", "--point-ms", "1", *SHORT)
    by_name = {(p["params"]["op"], p["metric"], p["params"]["part"], p["unit"]): p for p in points}
    assert len(by_name) == len(points)
    for form in possible(implementation):
        rate = by_name[form, "rate", "total", "iterations/s"]
        phases = ("exchange", "sum", "product", "vectors")
        parts = [by_name[form, "time", part, "s"] for part in ("total", "compute", *phases)]
        for each in (rate, *parts):
            assert each["valid"] is True and each["params"]["edge"] == 12 and each["params"]["pes"] == 2
        share = by_name[form, "communication", "communication", "%"]
        for r, total, compute, *split, percent in zip(*(p["samples"] for p in (rate, *parts, share))):
            assert all(0 < seconds < total for seconds in split)
            assert compute == pytest.approx(total - sum(split), rel=1e-6, abs=1e-7 * total)
            assert r == pytest.approx(50 / total, rel=1e-6)
            assert percent == pytest.approx(100 * (split[0] + split[1]) / total, rel=1e-6)
        check_figures(by_name, form, [dict(zip(("total", "compute", *phases), s)) for s in samples_of(parts)])


def samples_of(points):
    return zip(*(point["samples"] for point in points))


def check_figures(by_name, form, times):
    """As HPCCG's main.cpp counts: for each iteration 4 operations a row in inner products, 6 in updates, 2 an entry."""
    rows, entries = 4 * 12**3, 34 * 34 * 142
    ddot, waxpby, sparsemv = (50e-6 * operations for operations in (4 * rows, 6 * rows, 2 * entries))
    figures = {
        "Total": (ddot + waxpby + sparsemv, ("total",)),
        "DDOT and WAXPBY": (ddot + waxpby, ("sum", "vectors")),
        "SPARSEMV": (sparsemv, ("product",)),
        "SPARSEMV W OVERHEAD": (sparsemv, ("product", "exchange")),
    }
    figures["SPARSEMV matrix"] = (50 * 12 * entries, ("product",))
    for name, (operations, phases) in figures.items():
        point = by_name[form, "figure_of_merit", name, "bytes/s" if name == "SPARSEMV matrix" else "MFLOPS"]
        assert point["params"]["timed"] and point["valid"] is True
        right = [operations / sum(time[phase] for phase in phases) for time in times]
        assert point["samples"] == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize("threads", [1, 4, 16])
def test_threads_share_products_evenly(implementation, threads):
    """Rows with ghosts too, which all belong to the PE's first and last planes: here a sixth of them."""
    more = ("--form", "overlapped", "--size", "12")
    for verdict in app_verdicts(implementation, "hpccg", 2, threads, *more).values():
        assert verdict["verdict"] == "pass" and 1 <= verdict["product_imbalance"] < 1.01


def test_polls_are_placed_by_trying(implementation):
    if "manual" not in possible(implementation):
        pytest.skip("the library has no non-blocking collectives")
    found = app_events(implementation, "hpccg", 2, 1, "--form", "manual")
    (tuned,) = [event["poll_rows"] for event in found if event["event"] == "tuned"]
    assert tuned in (8, 32, 128, 512, 2048)


def test_forms_missing_are_skipped_by_name(implementation, tmp_path):
    without = compiled_without(implementation, tmp_path, "hpccg", "SHMEM_MT_HAVE_PROGRESS")
    points, skipped = run_points(without, tmp_path, "hpccg", 2, 1, "--point-ms", "1")
    assert {p["params"]["op"] for p in points} == set(STANDARD)
    assert skipped == set(FORMS) - set(STANDARD)


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--size", "801"], "--size 801: the edge of the chimney is at most 800 points"),
        (["--size", "huge"], "--size: 'huge' is not a number between 1 and"),
        (["--form", "odd"], "unknown operation odd; there are blocking, overlapped,"),
        (["--poll-rows", "-3"], "--poll-rows: '-3' is not a number between"),
    ],
)
def test_bad_options_end_with_status_2(implementation, arguments, words):
    done = subprocess.run([implementation.binaries["hpccg"], *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert words in done.stderr


def test_what_does_not_fit_into_the_machine_is_refused(implementation):
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 800 << 30:
        pytest.skip("this machine has room for the largest problem")
    command = implementation.launch_command("hpccg", 2, 1, ["--size", "800"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert "--size 800 needs" in done.stderr and "GiB of memory here, and the machine has" in done.stderr


def test_describe_names_the_edge():
    point = make_point(benchmark="hpccg", op="auto", edge=12, fabric="tcp", part="sum")
    assert describe("hpccg", point["params"]).startswith("hpccg, auto, edge 12, ")
