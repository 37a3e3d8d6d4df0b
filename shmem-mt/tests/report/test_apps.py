"""What a run and a report say of the mini-apps."""

import pytest
from conftest import make_point
from shmem_mt.report.charts import apps
from shmem_mt.report.charts.model import Points
from shmem_mt.runner.verdicts import verdict_lines

PHASES = {"total": 2.0, "compute": 1.2, "exchange": 0.6, "reduce": 0.2}


def app_points(label, op, faster=1.0, valid=True, **problem):
    common = dict(label=label, benchmark="brick", valid=valid, op=op, fabric="on-node", cells="8x8x8", **problem)
    for part, seconds in PHASES.items():
        yield make_point(**common, metric="time", unit="s", part=part, scale=seconds / faster)
    yield make_point(**common, metric="rate", unit="steps/s", part="total", scale=10 * faster)
    yield make_point(**common, metric="communication", unit="%", part="communication", scale=40)


def results(*groups):
    points = [point for group in groups for point in group]
    for point in points:
        point["params"] = {
            k: v for k, v in point["params"].items() if k not in ("size_bytes", "placement", "context", "sync")
        }
        point["median"] = sorted(point["samples"])[4]
        point.update(interval=[min(point["samples"]), max(point["samples"])], starts=8, round_sizes=[1] * 8)
    return points


def test_a_line_has_verdict_phases_and_share():
    (line,) = verdict_lines(results(app_points("A", "blocking")))
    assert line.startswith("A: brick, blocking, cells 8x8x8, 2 PEs, on-node: pass, 2.0")
    assert "(compute 60 %, exchange 30 %, reduce 10 %; communication 40 %)" in line


@pytest.mark.parametrize("valid,word", [(False, "FAIL"), (None, "not checked")])
def test_a_line_says_what_did_not_pass(valid, word):
    (line,) = verdict_lines(results(app_points("A", "blocking", valid=valid)))
    assert f": {word}, " in line


def test_a_line_says_that_threads_were_more_than_cores():
    (line,) = verdict_lines(results(app_points("A", "blocking", oversubscribed=True)))
    assert ", 2 PEs, oversubscribed, on-node: pass, " in line


def test_a_line_says_how_uneven_the_computing_is():
    uneven = make_point(
        "A", benchmark="brick", op="auto", fabric="on-node", cells="8x8x8", part="imbalance", scale=1.25
    )
    (line,) = verdict_lines(results(app_points("A", "auto"), [{**uneven, "metric": "imbalance", "unit": "x"}]))
    assert "; communication 40 %, imbalance 1.26)" in line


def figures(label, op):
    """Figures of merit, the headline first; params.timed tells their clocks apart, not their runs."""
    for name, timed, value in (("Total", "all", 6500), ("SPARSEMV", "products", 7000)):
        common = dict(label=label, benchmark="brick", op=op, fabric="on-node", cells="8x8x8", part=name, timed=timed)
        yield make_point(**common, metric="figure_of_merit", unit="MFLOPS", scale=value)


def test_a_line_ends_with_the_first_figure_of_merit():
    found = results(app_points("A", "blocking"), figures("A", "blocking"), app_points("A", "auto"))
    first, second = verdict_lines(found)
    assert first.endswith("communication 40 %); Total 6,532 MFLOPS") and second.endswith("communication 40 %)")


def test_the_table_has_the_first_figure_of_merit():
    found = Points(results(app_points("A", "blocking"), figures("A", "blocking")))
    ((heading, (row,)),) = apps.rows(found)
    assert heading == "brick, cells 8x8x8" and row.cells[0][1] == "communication 40 %; Total 6,532 MFLOPS"


def test_each_run_has_a_line_of_its_own():
    groups = [app_points(label, op, grid2=g) for label in "AB" for op in ("blocking", "auto") for g in (1, 2)]
    lines = verdict_lines(results(*groups))
    assert len(set(lines)) == len(lines) == 8


def test_the_table_sets_implementations_side_by_side():
    found = Points(results(app_points("A", "blocking", 2.0), app_points("B", "blocking"), app_points("A", "auto")))
    ((heading, rows),) = apps.rows(found)
    assert heading == "brick, cells 8x8x8"
    assert [row.what for row in rows] == ["blocking, 2 PEs", "auto, 2 PEs"]
    assert rows[0].ratios[0].says == "better" and rows[0].ratios[0].text.startswith("2")
    assert rows[1].cells[1] is None and rows[1].ratios == [None]
    assert rows[0].cells[0][1].startswith("communication 40")


def test_charts_are_rates_and_phases():
    by_form, phases = apps.charts(Points(results(app_points("A", "blocking"), app_points("A", "auto"))))
    assert by_form.value_title == "steps/s" and by_form.panels[0].series[0].x == ["blocking", "auto"]
    parts = [phase for phase in PHASES if phase != "total"]
    assert set(phases.panels[0].series[0].x) == {f"{phase}\n{op}" for phase in parts for op in ("blocking", "auto")}
