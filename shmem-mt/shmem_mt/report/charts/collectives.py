"""What a report shows of the collectives: their time by size, one line an implementation, and how near each comes to
its floor, the time in which the bytes that it must write into every PE's dest (`copied_bytes` of a point) could be
copied, at the bandwidth of `copy` in the same program with the same PEs and size."""

from shmem_mt import units
from shmem_mt.report.charts.model import REFERENCE_COLOUR, Panel, Series, make_chart, plain_series
from shmem_mt.report.summary import Row, interval_text, ratio_of
from shmem_mt.runner.points import tail
from shmem_mt.runner.results import ratio_of_results

BENCHMARK = "collectives"
BACK_TO_BACK, WINDOW = ("back-to-back", None), "window"  # of params.scheme, which older folders do not have
BARRIERS = ("barrier_all", "sync_all")
OPS = ("broadcast", "collect", "fcollect", "alltoall", "alltoalls", "sum_reduce", "max_reduce", "sum_inscan")


def charts(points):
    """Time by size, a chart for each number of PEs and scheme; then the barriers."""
    made = [_by_size(points, pes, scheme) for pes in _numbers_of_pes(points) for scheme in (BACK_TO_BACK, WINDOW)]
    return [chart for chart in [*made, _barriers(points)] if chart]


def rows(points):
    """[(heading, rows)] of the table: for each number of PEs the smallest, the middle and the largest size."""
    groups = []
    for pes in _numbers_of_pes(points):
        found = [_row(points, op, pes, "world", 0) for op in BARRIERS]
        for op in OPS:
            found += [_row(points, op, pes, "world", size) for size in _three(_sizes(points, op, pes, "world"))]
        for op in OPS:
            found += [_row(points, op, pes, "strided", size) for size in _three(_sizes(points, op, pes, "strided"))]
        groups.append((f"{pes} PEs", [row for row in found if row]))
    return groups


def _numbers_of_pes(points):
    return sorted({p["params"]["pes"] for p in points.find(BENCHMARK)})


def _find(points, op, pes, team, metric="latency", label=None, scheme=BACK_TO_BACK, **params):
    """Those points, by size."""
    found = points.find(BENCHMARK, metric, label, op=op, pes=pes, team=team, scheme=scheme, **params)
    return sorted(found, key=lambda p: p["params"]["size_bytes"])


def _sizes(points, op, pes, team):
    return sorted({p["params"]["size_bytes"] for p in _find(points, op, pes, team)})


def _three(sizes):
    return sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]}) if sizes else []


def _copy_of(points, point):
    """The copy beside which `point` was measured, None when there is none or the point copies nothing."""
    params = point["params"]
    found = _find(
        points, "copy", params["pes"], params["team"], "bandwidth", point["label"], size_bytes=params["size_bytes"]
    )
    return found[0] if found and params["copied_bytes"] else None


def _floor(copy, copied_bytes):
    """The time of copying so many bytes, as a result."""
    low, high = copy["interval"]
    return {
        **copy,
        "unit": "s",
        "modes": [],
        "median": copied_bytes / copy["median"],
        "interval": [copied_bytes / high, copied_bytes / low],
        "samples": [copied_bytes / sample for sample in copy["samples"]],
    }


_ABOUT = {
    BACK_TO_BACK: (
        "Seconds an operation, back to back, until the slowest PE has finished. Grey: the time in which the "
        "bytes that must be written on every PE can be copied while all PEs copy at once. Operations whose buffers "
        "would be too large are left out. Sums and scans of doubles, maxima of longs."
    ),
    WINDOW: (
        "Seconds from a start that all PEs have agreed on until the last of them has finished, each operation by "
        "itself: what a PE waits that needs the result. Not measured where PEs share cores."
    ),
}


def _by_size(points, pes, scheme):
    panels = []
    for op in OPS:
        series = []
        for team, words in (("world", ""), ("strided", ", every second PE")):
            for label in points.labels:
                one = plain_series(points, label, label + words, dash=int(team == "strided"))
                for point in _find(points, op, pes, team, label=label, scheme=scheme):
                    one.add(point["params"]["size_bytes"], point)
                series.append(one)
        first = points.labels[0]
        floor = Series(f"floor: copying the bytes ({first} run)", REFERENCE_COLOUR, reference=True, dash=1)
        for point in _find(points, op, pes, "world", label=first) if any(one.x for one in series) else ():
            copy = _copy_of(points, point)
            if copy:
                floor.add(point["params"]["size_bytes"], _floor(copy, point["params"]["copied_bytes"]))
        panels.append(Panel(op, [*series, floor]))
    return make_chart(
        panels,
        slug=f"collectives-{pes}-pes" + "-window" * (scheme == WINDOW),
        title=f"Collectives by size, {pes} PEs" + ", from a common start" * (scheme == WINDOW),
        x_title="bytes of one PE (all-to-all: of one block)",
        x_is_size=True,
        about=_ABOUT[scheme],
        value_title="s",
        lower_is_better=True,
    )


def _barriers(points):
    panels = []
    for op in BARRIERS:
        series = []
        for label in points.labels:
            one = plain_series(points, label)
            for pes in _numbers_of_pes(points):
                for point in _find(points, op, pes, "world", label=label):
                    over = "\noversubscribed" if point["params"].get("oversubscribed") else ""
                    one.add(f"{pes} PEs{over}", point)
            series.append(one)
        panels.append(Panel(op, series))
    return make_chart(
        panels,
        slug="collectives-barriers",
        title="Barriers beside the other collectives",
        about="Seconds a barrier, the slowest PE's time.",
        value_title="s",
        lower_is_better=True,
        kind="dots",
    )


def _row(points, op, pes, team, size):
    found = [next(iter(_find(points, op, pes, team, label=label, size_bytes=size)), None) for label in points.labels]
    if not any(found):
        return None
    cells = [_cell(points, point) if point else None for point in found]
    what = ", ".join([op, *([units.size(size)] if size else []), *(["every second PE"] if team == "strided" else [])])
    over = any(p and p["params"].get("oversubscribed") for p in found)
    return Row(what, cells, [ratio_of(found[0], other) for other in found[1:]], over)


def _cell(points, point):
    copy = _copy_of(points, point)
    text = interval_text(point)
    if copy:
        floor = {**copy, "samples": [point["params"]["copied_bytes"] / value for value in copy["samples"]]}
        ratio, low, high = ratio_of_results(point, floor, paired=True)
        text += f"\n{_times(ratio)} × floor ({_times(low)} to {_times(high)})"
    params = point["params"]
    apart = _find(points, params["op"], params["pes"], params["team"], "latency", point["label"], WINDOW)
    for one in [one for one in apart if one["params"]["size_bytes"] == params["size_bytes"]]:
        text += f"\nfrom a common start {units.quantity(one['median'], one['unit'])}"
        text += f", {tail(one)}" * bool(tail(one))
    return units.quantity(point["median"], point["unit"]), text, point


def _times(ratio):
    return units.significant(ratio, 2 if ratio < 10 else 3)
