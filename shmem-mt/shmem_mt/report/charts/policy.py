"""Charts in which a colour is a policy: who makes progress (overlap), or how a PE waits (wait). Each implementation has
its own dashes."""

from shmem_mt import units
from shmem_mt.catalogue import catalogue
from shmem_mt.report.charts.model import COLOURS, DASHES, Panel, make_chart, plain_series
from shmem_mt.runner.points import computed_in, switches
from shmem_mt.targets.libraries import SETTINGS


def charts(points):
    """Those that these points can fill."""
    makers = (_hidden, _slowdown, _times, _wait_cpu, _wait_latency)
    return [chart for chart in (maker(points) for maker in makers) if chart]


def _hidden(points):
    return _overlap(
        points,
        "overlap",
        slug="overlap-by-size",
        title="Share of a communication that disappears behind a computation",
        about="100 * (1 - (total - compute) / communication) percent; the computation takes about as long as the "
        "communication. Below 0: both together take longer than one after the other. A colour is a policy: who makes "
        "progress while the PE computes.",
        value_title="%",
        log_values=False,
    )


def _slowdown(points):
    return _overlap(
        points,
        "slowdown",
        slug="overlap-slowdown",
        title="How much slower the computation becomes",
        about="The computation's time beside the communication (polls included, where the program places them) over "
        "its time alone.",
        value_title="×",
        lower_is_better=True,
    )


def _overlap(points, metric, **fields):
    panels = _panels(points, points.find("overlap", metric), catalogue.POLICIES, _way, _size)
    return make_chart(panels, x_title="size", x_is_size=True, **fields)


def _times(points):
    """Times, not percentages: what was added to the computation is what was not hidden. Of the largest size."""
    found = points.find("overlap", "time")
    largest = max(map(_size, found), default=0)
    found = [point for point in found if _size(point) == largest]
    return make_chart(
        _panels(points, found, catalogue.POLICIES, _way, lambda point: point["params"]["part"]),
        kind="dots",
        slug="overlap",
        title=f"Communication behind a computation, {units.size(largest)}",
        about="Seconds of the communication alone, of the computation alone, of both together, and in these of the "
        "call that posts and of the computation (inside). Together as long as the computation: all is hidden; as long "
        "as both: nothing is.",
        value_title="s",
        lower_is_better=True,
        shared_values=False,
    )


def _wait_cpu(points):
    return _waits(
        points,
        "cpu_share",
        slug="wait-cpu",
        title="CPU time burned while waiting",
        about="Percent of a core, of the whole process, while a PE waits so long; the mean of the PEs that wait. "
        "default: as the library waits by itself; spin: asked to spin; sleep: asked to sleep at once; the others are "
        "progress policies of Heddle.",
        value_title="% of a core",
    )


def _wait_latency(points):
    return _waits(
        points,
        "wake_latency",
        slug="wait-latency",
        title="How late a waiting PE goes on",
        about="Seconds from the moment when PE 0 begins its part (puts the words, enters the collective) to the return "
        "of the last PE that waits, after waits of these lengths.",
        value_title="s",
    )


def _waits(points, metric, **fields):
    found = points.find("wait", metric)
    panels = _panels(points, found, SETTINGS, _wait, lambda p: round(1000 * p["params"]["wait_s"]))
    return make_chart(panels, x_title="milliseconds waited", lower_is_better=True, **fields)


def _way(point):
    params = point["params"]
    return ", ".join(filter(None, (params["op"], params["sync"], f"{params['pes']} PEs", computed_in(params))))


def _wait(point):
    params = point["params"]
    threads = f" x {params['threads']} threads" if params["threads"] > 1 else ""
    return f"{params['op']}, {params['pes']} PEs{threads}" + ", oversubscribed" * bool(params.get("oversubscribed"))


def _size(point):
    return point["params"]["size_bytes"]


def _policy(point):
    """Points of older folders, which have none, were measured under the library's own."""
    params = point["params"]
    return params.get("setting", params.get("policy", "auto"))


def _panels(points, found, policies, panel_of, x_of):
    """One panel for each panel_of(point); in it, for each implementation and policy, a series by x_of(point)."""
    present = [policy for policy in policies if any(_policy(p) == policy for p in found)]
    panels = []
    for title in dict.fromkeys(map(panel_of, found)):
        series = []
        for label in points.labels:
            for number, policy in enumerate(present):
                one = plain_series(points, label, f"{label}, {policy}", dash=points.labels.index(label) % DASHES)
                one.colour = COLOURS[number % len(COLOURS)]
                own = [p for p in found if (panel_of(p), p["label"], _policy(p)) == (title, label, policy)]
                for point in sorted(own, key=lambda p: (_size(p), p["params"].get("wait_s"))):
                    one.add(x_of(point), point, switches(point))
                series.append(one)
        panels.append(Panel(title, series))
    return panels
