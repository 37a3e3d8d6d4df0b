"""Charts of the benchmark patterns: a map of the divisions, synchronizations, and processes beside contexts."""

from conftest import make_point
from shmem_mt.report import vega
from shmem_mt.report.charts import patterns
from test_parts import made

SPLITS = ((4, 1), (2, 2), (1, 4))


def pattern(pes, threads, op="stream", context="default", sync="quiet", level="multiple", size=8, scale=1e9):
    time = op in ("latency", "collective")
    metric, unit = ("time", "s") if time else ("throughput", "1/s" if op == "random" else "bytes/s")
    params = dict(op=op, context=context, sync=sync, level=level, size_bytes=size, cores=pes * threads)
    return make_point(benchmark="patterns", metric=metric, unit=unit, pes=pes, threads=threads, scale=scale, **params)


def charts_of(*points):
    return {chart.slug: chart for chart in patterns.charts(made(*points))}


def test_the_map_has_a_field_for_each_division():
    own = [pattern(p, t, context="private" if t > 1 else "default", scale=1e9 * t, size=s)
           for p, t in SPLITS for s in (8, 64, 4096)]  # fmt: skip
    others = [pattern(2, 2, scale=9e9), pattern(2, 2, context="private", sync="pe_quiet"),
              pattern(4, 1, level="single")]  # fmt: skip
    chart = charts_of(*own, *others)["patterns-splits"]
    assert [panel.title for panel in chart.panels] == ["A, stream, 8 B", "A, stream, 4 KiB"]
    for panel, drawn in zip(chart.panels, vega.panels(chart)):
        assert panel.series[0].x == [(1, 4), (2, 2), (4, 1)]
        assert [round(row["share"], 2) for row in drawn["data"]["values"]] == [1, 0.5, 0.25]
    assert "patterns-splits" not in charts_of(own[0])  # one division is no map


def test_processes_stand_beside_one_context_and_many():
    points = [pattern(4, 1), pattern(4, 1, level="single", scale=2e9)]
    points += [pattern(p, t, context=c) for p, t in SPLITS[1:] for c in ("default", "private")]
    points += [pattern(1, 4, context="pool:2"), pattern(1, 4, sync="thread_quiet", scale=1)]
    chart = charts_of(*points)["patterns-contexts-throughput"]
    (panel,) = chart.panels
    assert {one.name: one.x for one in panel.series} == {
        "A, default": [1, 2, 4],
        "A, private": [1, 2, 4],
        "A, pool": [1, 4],
        "A, SHMEM_THREAD_SINGLE": [1],
    }
    assert panel.series[-1].reference and panel.series[-1].y == [2e9 * 1.0025]
    assert not chart.lower_is_better
    trips = [pattern(p, t, op="latency", sync="fence_flag", scale=1e-6) for p, t in SPLITS]
    assert charts_of(*trips)["patterns-contexts-time"].lower_is_better
    assert "patterns-contexts-throughput" not in charts_of(pattern(4, 1), pattern(4, 1, level="single"))


def test_each_pattern_has_a_chart_of_its_synchronizations():
    syncs = ("quiet", "thread_quiet", "put_signal")
    points = [pattern(p, t, sync=s, op=o, scale=1e-6 if o == "latency" else 1e9)
              for p, t in SPLITS for s in syncs for o in ("stream", "latency", "random")]  # fmt: skip
    points += [pattern(2, 2, context="private", sync="request_merged"), pattern(2, 2, sync="pe_quiet", level="single")]
    charts = charts_of(*points)
    for op, unit in (("stream", "bytes/s"), ("latency", "s"), ("random", "1/s")):
        chart = charts[f"patterns-sync-{op}"]
        (panel,) = chart.panels
        assert [one.name for one in panel.series] == ["A, 4 x 1", "A, 2 x 2", "A, 1 x 4"]
        assert all(one.x == list(syncs) for one in panel.series)
        assert chart.value_title == unit and chart.lower_is_better == (unit == "s")
    assert vega.panels(charts["patterns-sync-random"])


def test_other_benchmarks_make_none_of_them():
    assert charts_of(make_point()) == {}
