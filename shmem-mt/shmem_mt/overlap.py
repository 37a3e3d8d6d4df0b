"""What a report shows of overlap by size: for each operation a panel, for each progress policy a line."""

from shmem_mt import catalogue
from shmem_mt.charts import COLOURS, Panel, make_chart, plain_series

BENCHMARK = "overlap"


def charts(points):
    """Those that these points can fill."""
    hidden = _by_size(
        points,
        "overlap",
        slug="overlap-by-size",
        title="Share of a communication that disappears behind a computation",
        about="100 * max(0, 1 - (total - compute) / communication) percent; the computation takes about as long as the "
        "communication. A colour is a policy: who makes progress while the PE computes.",
        value_title="%",
        log_values=False,
    )
    slowdown = _by_size(
        points,
        "slowdown",
        slug="overlap-slowdown",
        title="How much slower the computation becomes",
        about="The computation's time beside the communication (polls included, where the program places them) over "
        "its time alone.",
        value_title="×",
        lower_is_better=True,
    )
    return [chart for chart in (hidden, slowdown) if chart]


def _by_size(points, metric, **fields):
    found = points.find(BENCHMARK, metric)
    panels = []
    for key in dict.fromkeys(_panel_of(point) for point in found):
        panels.append(Panel(", ".join(key), [s for label in points.labels for s in _lines(points, found, key, label)]))
    return make_chart(panels, x_title="size", x_is_size=True, **fields)


def _panel_of(point):
    params = point["params"]
    return params["op"], params["sync"], f"{params['pes']} PEs"


def _lines(points, found, key, label):
    """One for each policy, in the policy's colour; those of all but the first implementation are dashed."""
    lines = []
    for number, policy in enumerate(catalogue.POLICIES):
        line = plain_series(points, label, f"{label}, {policy}", dashed=label != points.labels[0])
        line.colour = COLOURS[number % len(COLOURS)]
        own = [p for p in found if _panel_of(p) == key and p["label"] == label and p["params"]["policy"] == policy]
        for point in sorted(own, key=lambda p: p["params"]["size_bytes"]):
            line.add(point["params"]["size_bytes"], point)
        lines.append(line)
    return lines
