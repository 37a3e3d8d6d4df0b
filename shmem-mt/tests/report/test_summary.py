"""The first table of a report: that a quick run fills it, and what counts where several points could."""

import pytest
from conftest import make_point
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.report import page, summary
from shmem_mt.report.charts import collectives
from shmem_mt.report.charts.model import Points
from shmem_mt.runner.results import merge_rounds

ONLY_FULL = {"CG, class A, blocking collectives", "CG, class A, non-blocking ones"}
OPTIONS = {"size_bytes": "--sizes", "touch": "--touches", "owner": "--owners", "cache": "--caches"}


def measures(start, headline):
    """Whether that start has a point for that row."""
    _, benchmark, _, params = headline
    names = {one.name: one.program for one in catalogue.BENCHMARKS}
    given = dict(zip(start.arguments, start.arguments[1:]))
    chosen = [start.program == names[benchmark], params.get("op", "consumed") in given["--ops"].split(",")]
    chosen += [start.pes == params.get("pes", start.pes), start.threads == params.get("threads", start.threads)]
    is_of_class = "class" not in params or params["class"] == "S"
    for name, option in OPTIONS.items():
        wanted = params.get(name, ())
        wanted = {str(value) for value in (wanted if isinstance(wanted, tuple) else (wanted,))}
        default = "hot" if name == "cache" else given.get(option, "")
        chosen.append(not wanted or bool(wanted & set(given.get(option, default).split(","))))
    return all(chosen) and is_of_class


def test_a_quick_run_fills_every_row():
    starts = plan.starts(plan.PROFILES["quick"], catalogue.select(None), plan.Choices(), cores=2)
    filled = {row[0] for row in summary.HEADLINES if any(measures(start, row) for start in starts)}
    assert {row[0] for row in summary.HEADLINES} - filled == ONLY_FULL


@pytest.fixture
def barriers():
    """Of latency and of collectives, the latter twice as fast."""
    common = dict(metric="latency", unit="s", op="barrier_all", size_bytes=0, sync="barrier_all")
    one = make_point(benchmark="latency", **common, scale=2e-6)
    other = make_point(benchmark="collectives", **common, scale=1e-6, team="world", scheme="back-to-back")
    alone = make_point("MPI (X 1)", benchmark="collectives", **common, scale=1e-6, team="world", scheme="back-to-back")
    apart = {**other, "params": {**other["params"], "scheme": "window"}}
    fabric = {"fabric": "on-node"}
    points = [{**point, "params": {**point["params"], **fabric}} for point in (one, other, alone, apart)]
    return [{**merge_rounds([point]), "run": "run"} for point in points]


def test_barriers_are_those_of_the_collectives(barriers):
    (row,) = summary.headline_rows(Points(barriers[:2]))
    assert row.what == "barrier, 2 PEs" and row.cells[0][2]["benchmark"] == "collectives"
    assert row.cells[0][2]["params"]["scheme"] == "back-to-back"
    (row,) = summary.headline_rows(Points(barriers[:1]))
    assert row.cells[0][2]["benchmark"] == "latency"


def test_windows_stand_beside_back_to_back():
    common = dict(benchmark="collectives", metric="latency", unit="s", op="broadcast", sync="blocking", team="world")
    points = [
        {**make_point(**common, scheme=scheme, scale=scale, copied_bytes=8, fabric="on-node")}
        for scheme, scale in (("back-to-back", 1e-6), ("window", 3e-6))
    ]
    made = Points([{**merge_rounds([point]), "run": "run"} for point in points])
    ((_, (row,)),) = collectives.rows(made)
    assert row.cells[0][0] == "1.00 µs" and "from a common start 3.01 µs" in row.cells[0][1]
    drawn = {chart.slug: chart.panels[0].series[0].y[0] for chart in collectives.charts(made)}
    assert drawn == pytest.approx({"collectives-2-pes": 1e-6, "collectives-2-pes-window": 3e-6}, rel=0.01)


def test_the_summary_has_the_collectives_of_those_that_have_more(barriers):
    (table,) = page.tables(Points(barriers), "on-node", str)["first"]
    assert table["labels"] == ["A"]
    ((_, (row,)),) = table["groups"]
    assert row.what == "barrier, 2 PEs" and row.cells[0][0] == "1.00 µs"
