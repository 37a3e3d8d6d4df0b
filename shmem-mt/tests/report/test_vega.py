"""What is drawn: each start's own value over the interval, all ticks, series told apart, numbers alone."""

import math
import re

import pytest
import vl_convert
from conftest import make_point, sample_collectives
from shmem_mt.report import report, vega
from shmem_mt.report.charts import collectives, simulation
from shmem_mt.report.charts.model import Chart, Panel, Points, Series
from shmem_mt.runner.results import load_results, merge_rounds
from shmem_mt.studies import ordering


def result(*starts, **params):
    """Of starts with these values, three samples each."""
    rounds = [[0.9 * value, value, 5 * value] for value in starts]
    points = [{**make_point(**params), "samples": samples, "round": n} for n, samples in enumerate(rounds)]
    return {**merge_rounds(points), "run": "run"}


def chart(*panels, **fields):
    return Chart("slug", "title", "about", list(panels), "messages/s", **fields)


def drawn_starts(specification):
    """The values of the points that stand for one start each."""
    (layer,) = [layer for layer in specification["layer"] if "data" in layer]
    return [row["value"] for row in layer["data"]["values"]]


@pytest.mark.parametrize("kind", ["lines", "dots"])
def test_each_start_is_a_point_over_the_interval(kind):
    series = Series("A", "#0072B2")
    of_kind = int if kind == "lines" else str
    series.add(of_kind(8), result(10, 30, 20))
    series.add(of_kind(64), result(7))  # stands for itself
    (specification,) = vega.panels(chart(Panel("", [series]), kind=kind))
    assert drawn_starts(specification) == [10, 30, 20]
    low, high = vega.value_range(chart(Panel("", [series])))
    assert low < 7 and high > 30


def test_starts_outside_the_interval_are_on_the_axis():
    values = [1, *[100] * 18, 10000]
    series = Series("A", "#0072B2")
    series.add(8, result(*values))
    assert series.low == series.high == [100]
    low, high = vega.value_range(chart(Panel("", [series])))
    assert low < 1 and high > 10000


def test_the_starts_of_a_ratio_are_its_own():
    found = ordering.ratio(result(10, 20, 40), result(5, 5, 5))
    series = Series("A", "#0072B2")
    series.add(8, found)
    assert found["median"] == 4 and series.starts == [[2, 4, 8]]
    apart = ordering.ratio(result(10, 20), {**result(5, 5), "run": "another"})
    series.add(64, apart)
    assert series.starts[1] == [apart["median"]]


def test_the_starts_of_what_is_made_of_results_lie_around_its_value():
    points = []
    for point in sample_collectives("A", 1):
        merged = merge_rounds([{**point, "round": 0}, {**point, "round": 1}])
        points.append({**merged, "params": {**point["params"], "fabric": "on-node"}, "run": "run"})
    made = [one for drawn in collectives.charts(Points(points)) for panel in drawn.panels for one in panel.series]
    assert {one.reference for one in made} == {False, True}
    for one in made:
        for value, starts in zip(one.y, one.starts):
            assert starts == pytest.approx([value, value], rel=1e-4)
    scaled = simulation._scaled(result(10, 20, 30), 0.5)
    series = Series("A", "#0072B2")
    series.add(8, scaled)
    assert series.starts == [[5, 10, 15]]


def axis_of(specification, channel):
    return specification["layer"][-1]["encoding"][channel]["axis"]


def test_no_tick_is_dropped():
    """Vega drops every second of the values that an axis is given, where they are more than it would have chosen."""
    series = Series("A", "#0072B2")
    for x in (1, 2, 4, 8):
        series.add(x, result(1e6 * x**3))
    panel = {**vega.panels(chart(Panel("", [series])))[0], "width": 300}
    wanted = axis_of(panel, "y")["values"]
    assert wanted == [1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8]
    svg = vl_convert.vegalite_to_svg(panel)
    for text in ("1M", "2M", "5M", "10M", "20M", "50M", "100M", "200M", "500M"):
        assert f">{text}</text>" in svg


def test_sizes_have_their_names():
    series = Series("A", "#0072B2")
    for size in (8, 1024, 1 << 20):
        series.add(size, result(10))
    panel = {**vega.panels(chart(Panel("", [series]), x_is_size=True))[0], "width": 300}
    svg = vl_convert.vegalite_to_svg(panel)
    assert all(f">{text}</text>" in svg for text in ("8 B", "1 KiB", "1 MiB"))


def test_odd_names_are_drawn_as_they_are():
    odd = """<script>&"'\\ é ("""
    series = Series(odd, "#0072B2")
    series.add(odd, result(10))
    svg = vl_convert.vegalite_to_svg({**vega.panels(chart(Panel(odd, [series]), kind="dots"))[0], "width": 300})
    assert svg.count("&lt;script&gt;&amp;") == 3  # description, title and category
    assert "<script" not in svg


@pytest.mark.parametrize("kind", ["lines", "dots"])
def test_what_has_no_logarithm_is_left_out(kind):
    series = Series("A", "#0072B2")
    for place, value in enumerate((0, 10, 20), 1):
        around = {"median": value, "interval": [0 if value < 20 else 15, 30]}
        series.add(place if kind == "lines" else str(place), {**result(10), **around})
    (specification,) = vega.panels(chart(Panel("", [series]), kind=kind))
    rows = specification["data"]["values"]
    assert [row["value"] for row in rows] == [10, 20]
    assert all(row["low"] > 0 for row in rows)
    linear = chart(Panel("", [series]), kind=kind, log_values=False)
    assert [row["value"] for row in vega.panels(linear)[0]["data"]["values"]] == [0, 10, 20]


def test_every_number_of_a_run_is_finite(run_folder):
    folder = run_folder("run", {"A": 1.0, "B": 2.0})
    points = Points(report._joined([(folder, load_results(folder), {})]))

    def numbers(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, list):
            for each in value:
                yield from numbers(each)
        elif isinstance(value, float):
            yield value

    found = [n for each in report._charts(points, "on-node") for panel in vega.panels(each) for n in numbers(panel)]
    assert len(found) > 1000 and all(map(math.isfinite, found))


@pytest.mark.parametrize("kind", ["lines", "dots"])
def test_series_are_drawn_as_the_legend_has_them(kind):
    """Also where lines, whiskers or starts have the same channels as symbols."""
    of_kind = int if kind == "lines" else str
    series = [Series(f"{n}", "#0072B2", dash=n, reference=n == 1) for n in range(4)]
    for one in series:
        one.add(of_kind(8), result(10, 20))
        one.add(of_kind(64), result(20, 30))
    made = chart(Panel("", series), kind=kind)
    svg = vl_convert.vegalite_to_svg({**vega.panels(made)[0], "width": 300})
    symbols = re.findall(r'<g class="mark-symbol.*?</g>', svg)[-1]
    found = re.findall(r'<path [^>]*fill="([^"]*)" stroke="([^"]*)"', symbols)
    assert found == [
        (look["fill"], look["stroke"]) for look in (vega.look(made, one) for one in series) for _ in (8, 64)
    ]


def test_series_of_one_panel_do_not_take_the_looks_of_another():
    """In a picture all panels stand in one specification, which must not join their scales."""
    first, second, third = Series("A", "#0072B2"), Series("B", "#D55E00"), Series("A", "#0072B2")
    for series in (first, second, third):
        series.add(8, result(10))
        series.add(64, result(20))
    svg = vl_convert.vegalite_to_svg(vega._picture(chart(Panel("one", [second, first]), Panel("two", [third]))))
    lines = re.findall(r'<path [^>]*stroke="(#\w{6})"', "".join(re.findall(r'<g class="mark-line.*?</g>', svg)))
    assert sorted(lines) == ["#0072B2", "#0072B2", "#D55E00"]
