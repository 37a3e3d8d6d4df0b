"""MiniFE: however the cube is cut, every form finds the temperatures of the heat equation as closely as the mesh allows
and those of the mesh as closely as the solver does, and a wrong answer is seen as one."""

import subprocess

import pytest
from conftest import app_verdicts, compiled_without, make_point, run_points
from shmem_mt.catalogue import catalogue
from shmem_mt.runner.points import describe

FORMS = catalogue.select(["minife"])[0].ops
STANDARD = ("blocking", "overlapped")  # without extensions
SHORT = ("--poll-rows", "100")
STEPS = ("generate", "assemble", "gather", "impose", "exchange", "sum", "product", "vectors")


def possible(implementation):
    """The forms that must be there. Not every machine can monitor a cache line."""
    every = FORMS if implementation.features["SHMEM_MT_HAVE_PROGRESS"] else STANDARD
    return set(every) - {"thread:monitor"}


@pytest.mark.parametrize(
    "pes,threads,size",
    [(1, 1, "tiny"), (1, 3, "5"), (2, 1, "tiny"), (2, 2, "7"), (3, 1, "9"), (3, 2, "tiny"), (4, 2, "6"), (6, 1, "5")],
)
def test_every_form_finds_the_temperatures(implementation, pes, threads, size):
    found = app_verdicts(implementation, "minife", pes, threads, "--size", size, *SHORT)
    assert possible(implementation) <= set(found) <= set(FORMS)
    edge = 12 if size == "tiny" else int(size)
    for verdict in found.values():
        assert verdict["verdict"] == "pass", verdict
        assert verdict["edge"] == edge and verdict["nodes"] == (edge + 1) ** 3
        assert verdict["deviation"] < 1e-10 and verdict["drift"] < 1e-13 and 1.0 < verdict["error_over_h2"] < 1.2
        assert verdict["error"] == pytest.approx(found["blocking"]["error"], rel=1e-6)


@pytest.mark.parametrize("pes,threads", [(7, 2), (8, 1)])
def test_there_may_be_less_to_do_than_there_are_pes(implementation, pes, threads):
    """7 PEs for 5 elements along an axis: two have none, and one of these has nodes. 8 PEs cut all three axes."""
    for verdict in app_verdicts(implementation, "minife", pes, threads, "--size", "5", "--form", "blocking").values():
        assert verdict["verdict"] == "pass", verdict


def test_the_error_falls_with_the_square_of_the_distance_of_the_nodes(implementation):
    errors = []
    for size in ("8", "16", "32"):
        (verdict,) = app_verdicts(implementation, "minife", 2, 1, "--size", size, "--form", "blocking").values()
        errors.append(verdict["error"])
    assert [errors[0] / errors[1], errors[1] / errors[2]] == pytest.approx([4, 4], rel=0.1)


def test_threads_and_polls_change_no_bit(implementation):
    form = "manual" if "manual" in possible(implementation) else "blocking"
    numbers = set()
    for threads, rows in ((1, 1), (2, 7), (3, 1000)):
        more = ("--size", "9", "--form", form, "--poll-rows", str(rows))
        (verdict,) = app_verdicts(implementation, "minife", 4, threads, *more).values()
        numbers.add((verdict["residual"], verdict["deviation"], verdict["error"]))
    assert len(numbers) == 1


def test_plain_signals_lead_to_the_same_bits(implementation, tmp_path):
    old = compiled_without(implementation, tmp_path, "minife", "SHMEM_MT_HAVE_PUT_SIGNAL", "SHMEM_MT_HAVE_CTX")
    numbers = [
        (verdict["residual"], verdict["deviation"])
        for which in (implementation, old)
        for verdict in app_verdicts(which, "minife", 4, 2, "--form", "blocking").values()
    ]
    assert len(numbers) == 2 and numbers[0] == numbers[1]


def test_points_add_up(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "minife", 2, 1, "--samples", "3", "--point-ms", "1", *SHORT)
    by_name = {(p["params"]["op"], p["metric"], p["params"]["part"], p["unit"]): p for p in points}
    assert len(by_name) == len(points)
    for form in possible(implementation):
        rate = by_name[form, "rate", "total", "iterations/s"]
        parts = [by_name[form, "time", part, "s"] for part in ("total", "compute", *STEPS)]
        for each in (rate, *parts):
            assert each["valid"] is True and each["params"]["edge"] == 12 and each["params"]["pes"] == 2
        share = by_name[form, "communication", "communication", "%"]
        for r, total, compute, *steps, percent in zip(*(p["samples"] for p in (rate, *parts, share))):
            assert all(0 < step < total for step in steps)
            assert compute == pytest.approx(total - sum(steps), rel=1e-6, abs=1e-7 * total)
            assert r == pytest.approx(4 * 12 / total, rel=1e-6)
            communication = sum(seconds for step, seconds in zip(STEPS, steps) if step in ("gather", "exchange", "sum"))
            assert percent == pytest.approx(100 * communication / total, rel=1e-6)
        figures = {name: by_name[form, "figure_of_merit", name, unit] for name, unit in FIGURES.items()}
        assert all(figure["params"]["timed"] and figure["valid"] is True for figure in figures.values())
        times = [dict(zip(("total", "compute", *STEPS), split)) for split in zip(*(p["samples"] for p in parts))]
        check_figures({name: figure["samples"] for name, figure in figures.items()}, times)


FIGURES = {
    "Total CG": "Mflops", "MATVEC": "Mflops", "DOT and WAXPY": "Mflops", "FE assembly": "elements/s", "DOF": "DOF/s"
}  # fmt: skip


def check_figures(figures, times):
    """As MiniFE's driver.hpp counts: elements for rows, 2 an entry, 2 and 3 a row; 49 products, 96 dots, 146 waxpys."""
    matvec, vectors = 2e-6 * 37**3 * 49, 1e-6 * 12**3 * (2 * 96 + 3 * 146)
    for i, time in enumerate(times):
        assert figures["MATVEC"][i] == pytest.approx(matvec / (time["product"] + time["exchange"]), rel=1e-6)
        assert figures["DOT and WAXPY"][i] == pytest.approx(vectors / (time["sum"] + time["vectors"]), rel=1e-6)
        assert figures["FE assembly"][i] == pytest.approx(12**3 / (time["assemble"] + time["gather"]), rel=1e-6)
        solver_s = (matvec + vectors) / figures["Total CG"][i]
        assert time["product"] + time["sum"] + time["vectors"] < solver_s < time["total"]
        assert figures["DOF"][i] == pytest.approx(13**3 * 48 / solver_s, rel=1e-6)


def test_forms_missing_are_skipped_by_name(implementation, tmp_path):
    without = compiled_without(
        implementation, tmp_path, "minife", "SHMEM_MT_HAVE_PROGRESS", "SHMEM_MT_HAVE_TEAM_COLLECTIVES"
    )
    points, skipped = run_points(without, tmp_path, "minife", 2, 1, "--point-ms", "1")
    assert {p["params"]["op"] for p in points} == set(STANDARD)
    assert skipped == set(FORMS) - set(STANDARD)


@pytest.mark.parametrize("size", ["4", "1201"])
def test_bad_sizes_end_with_status_2(implementation, size):
    command = [implementation.binaries["minife"], "--size", size]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert f"--size {size}: the cube has 5 to 1200 elements along an edge" in done.stderr


def test_describe_names_the_edge():
    point = make_point(benchmark="minife", op="auto", edge=12, fabric="tcp", part="gather")
    assert describe("minife", point["params"]).startswith("minife, auto, edge 12, ")
