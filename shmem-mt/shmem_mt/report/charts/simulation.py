"""Charts of simulations, and of how well a calibrated model predicts what was measured: the chapter of `shmem-mt
simulate` in a report. Each ratio names its baseline: `ordered` is the fair one, a pipeline on one path; `acknowledged`,
one message at a time, flatters."""

from shmem_mt import units
from shmem_mt.report.charts.model import COLOURS, REFERENCE_COLOUR, Panel, Points, Series, make_chart
from shmem_mt.simulation.simulate import BENCHMARK, VALIDATION
from shmem_mt.studies.judging import near_peak

_COLOURS = dict(
    zip(
        ("relaxed", "acknowledged", "ordered", "two-sided", "reorder-buffer", "fence", "two-sided-any"),
        COLOURS,
    )
)

_DASHED = ("reorder-buffer", "fence", "two-sided-any")  # often on top of another rule's line


def charts(points):
    """Those that these points can fill."""
    points = _told_apart(points)
    makers = (_ratios, _by_cores, _by_nodes, _reordering, _validation)
    return [chart for chart in (maker(points) for maker in makers) if chart]


def _told_apart(points):
    """Where a model was simulated with several patterns or windows, each is as a model of its own."""
    found = points.find(BENCHMARK)
    variants = {(p["label"], p["params"]["pattern"], p["params"]["outstanding"]) for p in found}
    labels = [label for label, *_ in variants]

    def labelled(point):
        if point["benchmark"] != BENCHMARK or labels.count(point["label"]) < 2:
            return point
        params = point["params"]
        return {**point, "label": f"{point['label']} ({params['pattern']}, {params['outstanding']} outstanding)"}

    return Points([labelled(point) for point in points.points])


def _values(found, name):
    return sorted({point["params"][name] for point in found})


def _rules(found):
    return [rule for rule in _COLOURS if any(point["params"]["rule"] == rule for point in found)]


def _ratio(above, below):
    """A made-up result, for a chart: how many times the rate of the one is that of the other."""
    value = above["median"] / below["median"]
    one = {"median": value, "interval": [value, value], "starts": 1, "samples": [value], "round_sizes": [1]}
    return {**above, **one, "unit": "x"}


def _few(values):
    """The first, the one in the middle, and the last."""
    return sorted({values[0], values[len(values) // 2], values[-1]})


def _ratios(points):
    """By size, a panel for each number of nodes, and the fewest, the median and the most cores."""
    found = points.find(BENCHMARK, "rate")
    panels = []
    for label in points.labels:
        own = [point for point in found if point["label"] == label]
        for nodes in _values(own, "nodes"):
            for cores in _few(_values([p for p in own if p["params"]["nodes"] == nodes], "cores")):
                panels.append(_ratio_panel(own, label, nodes, cores))
    return make_chart(
        panels,
        slug="simulated-ratio-by-size",
        title="Simulated: what relaxed order gains",
        about="The rate of relaxed order over that of another rule, by size. ordered is the fair baseline: a pipeline "
        "on one path. acknowledged, one message at a time, flatters the ratio. 1 is no gain.",
        value_title="×",
        x_title="message size",
        x_is_size=True,
        log_values=False,
    )


def _ratio_panel(found, label, nodes, cores):
    here = [p for p in found if (p["params"]["nodes"], p["params"]["cores"]) == (nodes, cores)]
    rates = {(p["params"]["rule"], p["params"]["size_bytes"]): p for p in here}
    series = []
    for rule in _rules(here):
        one = Series(f"relaxed over {rule}", _COLOURS[rule], dash=int(rule in _DASHED))
        for size in _values(here, "size_bytes"):
            if rule != "relaxed" and ("relaxed", size) in rates and (rule, size) in rates:
                one.add(size, _ratio(rates["relaxed", size], rates[rule, size]))
        series.append(one)
    several = sum(len(one.x) > 1 for one in series)
    return Panel(f"{label}: {nodes:,} nodes x {cores} cores", series if several else [])


def _by_cores(points):
    """A panel for each size; the diamond is where the rule first has 90 % of its peak."""
    panels = []
    for (label, nodes, size), here in _groups(points, "nodes", "size_bytes"):
        series = []
        for rule in _rules(here):
            one = Series(rule, _COLOURS[rule], dash=int(rule in _DASHED))
            marked = Series("90 % of the rule's peak", _COLOURS[rule], reference=True)
            own = sorted((p for p in here if p["params"]["rule"] == rule), key=lambda p: p["params"]["cores"])
            for point in own:
                one.add(point["params"]["cores"], point)
            near = cores_to_peak(own)
            if near and len(own) > 1:
                marked.add(near["params"]["cores"], near, f"{rule}: the fewest cores with 90 % of its peak")
            series += [one, marked] if len(own) > 1 else []
        panels.append(Panel(f"{label}: {units.size(size)}, {nodes:,} nodes", series))
    return make_chart(
        panels,
        slug="simulated-rate-by-cores",
        title="Simulated: message rate by active cores",
        about="All nodes together. Diamonds: the fewest cores that were simulated with 90 % of the rule's own peak.",
        value_title="messages/s",
        x_title="active cores of each node",
        shared_values=False,
    )


def _groups(points, *names):
    """((label, values of these params), the rates with them), in order."""
    groups: dict[tuple, list[dict]] = {}
    for point in points.find(BENCHMARK, "rate"):
        groups.setdefault((point["label"], *(point["params"][name] for name in names)), []).append(point)
    return sorted(groups.items())


def cores_to_peak(found):
    """Of rates by cores, the one with the fewest cores among those that have 90 % of the largest; None of none."""
    by_cores = {point["params"]["cores"]: point for point in found}
    return by_cores[near_peak({cores: point["median"] for cores, point in by_cores.items()})[1]] if found else None


def _by_nodes(points):
    panels = []
    for (label, cores, size), here in _groups(points, "cores", "size_bytes"):
        series = []
        for rule in _rules(here):
            one = Series(rule, _COLOURS[rule], dash=int(rule in _DASHED))
            for point in sorted(here, key=lambda p: p["params"]["nodes"]):
                if point["params"]["rule"] == rule:
                    senders = point["params"]["nodes"] // (2 if point["params"]["pattern"] == "pair" else 1)
                    one.add(point["params"]["nodes"], _scaled(point, 1 / senders))
            series += [one] if len(one.x) > 1 else []
        panels.append(Panel(f"{label}: {units.size(size)}, {cores} cores", series))
    return make_chart(
        panels,
        slug="simulated-rate-by-nodes",
        title="Simulated: message rate of a node by nodes",
        about="The mean of the nodes that send.",
        value_title="messages/s",
        x_title="nodes",
        shared_values=False,
    )


def _scaled(point, factor):
    return {
        **point,
        "median": point["median"] * factor,
        "interval": [end * factor for end in point["interval"]],
        "samples": [sample * factor for sample in point["samples"]],
    }


def _reordering(points):
    panels = []
    found = points.find(BENCHMARK, "reordering", part="share")
    for label in points.labels:
        for nodes in _values(found, "nodes"):
            here = [p for p in found if p["label"] == label and p["params"]["nodes"] == nodes]
            series = []
            for rank, size in enumerate(_values(here, "size_bytes")):
                one = Series(units.size(size), COLOURS[rank % len(COLOURS)])
                for point in sorted(here, key=lambda p: p["params"]["cores"]):
                    if point["params"]["rule"] == "relaxed" and point["params"]["size_bytes"] == size:
                        one.add(point["params"]["cores"], point)
                series.append(one)
            panels.append(Panel(f"{label}: {nodes:,} nodes", series if any(sum(s.y) for s in series) else []))
    return make_chart(
        panels,
        slug="simulated-reordering",
        title="Simulated: messages that were overtaken",
        about="The share of a flow's messages that arrive behind one that was sent later, under relaxed order.",
        value_title="%",
        x_title="active cores of each node",
        log_values=False,
    )


def _validation(points):
    panels = []
    for rule in _rules(points.find(VALIDATION, "rate")):
        measured = Series("measured", REFERENCE_COLOUR, reference=True)
        predicted = Series("predicted", COLOURS[1])
        for point in points.find(VALIDATION, "rate", rule=rule):
            params = point["params"]
            what = f"{units.size(params['size_bytes'])}, {params['cores']} cores, {params['outstanding']} outstanding"
            what += f"\n{params['mechanism']}, {params['rails']} rails"
            (measured if params["part"] == "measured" else predicted).add(what, point)
        panels.append(Panel(rule, [measured, predicted]))
    return make_chart(
        panels,
        slug="simulated-validation",
        title="Simulated: predicted against measured",
        kind="dots",
        about="Points that the calibration did not see.",
        value_title="messages/s",
        shared_values=False,
    )


def findings(points):
    """What the points say, as lines for people."""
    points, lines = _told_apart(points), []
    for (label, nodes), here in _groups(points, "nodes"):
        rates = {(p["params"]["rule"], p["params"]["size_bytes"], p["params"]["cores"]): p for p in here}
        for rule, about in (
            ("ordered", "a pipeline on one path, the fair baseline"),
            ("acknowledged", "one at a time"),
        ):
            ratios = [
                (rates["relaxed", size, cores]["median"] / point["median"], size, cores)
                for (name, size, cores), point in rates.items()
                if name == rule and ("relaxed", size, cores) in rates
            ]
            if ratios:
                best, size, cores = max(ratios)
                lines.append(
                    f"{label}, {nodes:,} nodes: relaxed has up to {best:.2f} times the rate of {rule} ({about}), "
                    f"at {units.size(size)} and {cores} cores"
                )
    for (label, nodes, size), here in _groups(points, "nodes", "size_bytes"):
        need = {}
        for rule in _rules(here):
            own = [p for p in here if p["params"]["rule"] == rule]
            if len(own) > 1:
                need[rule] = cores_to_peak(own)["params"]["cores"]
        if need:
            words = ", ".join(f"{rule} {cores}" for rule, cores in need.items())
            lines.append(f"{label}, {nodes:,} nodes, {units.size(size)}: cores to 90 % of the peak: {words}")
    return lines
