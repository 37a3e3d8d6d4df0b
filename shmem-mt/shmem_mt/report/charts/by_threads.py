"""Bandwidth and latency by size with one thread and with several: where more threads get ahead of one."""

from shmem_mt.report.charts.model import DASHES, REFERENCE_COLOUR, Panel, Series, make_chart, plain_series
from shmem_mt.studies.ordering import cut_over

AHEAD = "clearly ahead of one thread from here on"


def charts(points):
    """Those that these points can fill."""
    return [chart for chart in (_bandwidth(points), _latency(points)) if chart]


def _bandwidth(points):
    ways = (
        ("put, read by the target", dict(op="put", touch="read")),
        ("put, nobody reads", dict(op="put", touch=("write-only", None))),
        ("get", dict(op="get")),
    )
    return make_chart(
        _panels(points, "bandwidth", ways, marks=True),
        slug="bandwidth-by-threads",
        title="Bandwidth by size and threads",
        x_title="message size",
        x_is_size=True,
        about="All threads together, each with a context of its own where there are several. A grey diamond is the "
        "size from which so many threads stay ahead of one with intervals apart; none: they do not.",
        value_title="bytes/s",
    )


def _latency(points):
    ways = (
        ("put round trip (fence, flag), read", dict(op="put_round_trip", sync="fence_flag", touch="read")),
        ("p + quiet", dict(op="p_quiet")),
        ("get", dict(op="get", owner=("warm", None))),
        ("atomic fetch-add", dict(op="atomic_fetch_add", owner=("warm", None))),
    )
    return make_chart(
        _panels(points, "latency", ways, marks=False),
        slug="latency-by-threads",
        title="Latency by size and threads",
        x_title="message size",
        x_is_size=True,
        about="Seconds an operation of one thread, while so many threads of its PE do the same, each with a context of "
        "its own where there are several.",
        value_title="s",
        lower_is_better=True,
    )


def _panels(points, metric, ways, marks):
    """A panel for each way that has points of several threads, at the fewest PEs. `metric` names the benchmark, too."""
    pes = min((point["params"]["pes"] for point in points.find(metric, metric)), default=0)
    panels = []
    for title, params in ways:
        series, several = [], False
        for label in points.labels:
            curves = _curves(points.find(metric, metric, label, pes=pes, cache=("hot", None), **params))
            several |= len(curves) > 1
            for number, (threads, sizes) in enumerate(sorted(curves.items())):
                name = f"{label}, {threads} thread" + "s" * (threads > 1)
                one = plain_series(points, label, name, dash=number % DASHES)
                for size, point in sorted(sizes.items()):
                    one.add(size, point)
                series.append(one)
            if marks:
                series.append(_crossings(label, curves))
        panels.append(Panel(title, series if several else []))
    return panels


def _curves(found):
    """{threads: {size: point}}, on the default context for one thread and on own ones for several."""
    curves: dict = {}
    for point in found:
        params = point["params"]
        context = "default" if params["threads"] == 1 else "private"
        if params["context"] == context and params.get("placement", "heap") == "heap":
            curves.setdefault(params["threads"], {})[params["size_bytes"]] = point
    return curves


def _crossings(label, curves):
    """Where several threads get clearly ahead of one for good."""
    marks = Series(AHEAD, REFERENCE_COLOUR, reference=True, dash=1)
    for threads, sizes in sorted(curves.items()):
        crossing = cut_over(curves.get(1, {}), sizes) if threads > 1 else None
        if crossing and crossing.high is not None:
            marks.add(crossing.high, sizes[crossing.high], f"{label}, {threads} threads")
    return marks
