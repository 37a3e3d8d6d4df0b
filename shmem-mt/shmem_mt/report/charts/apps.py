"""What is shown of the mini-apps: their speed by form, and where their time goes. A mini-app is what has points of the
metric `communication`; its problem is what its points say beyond who ran it and how."""

from shmem_mt import units
from shmem_mt.report.charts.model import dots
from shmem_mt.report.summary import Row, ratio_of
from shmem_mt.runner.points import (
    COMMUNICATION,
    FIGURE,
    form_of_app,
    headline_of_app,
    pes_and_threads,
    pes_threads_and_load,
    problem_of_app,
    run_of_app,
)


def charts(points):
    """Rates, then times by phase, a chart of each for every mini-app; one dot for each form and implementation."""
    return [
        chart
        for name in _names(points)
        for chart in (
            _chart(
                points,
                name,
                "rate",
                form_of_app,
                lambda params: params["part"] == "total",
                slug=f"{name}-forms",
                title=f"{name} by form",
                about="Units of work a second, of all PEs together, from the first thread's start to the last PE's "
                "end. The answer of each run is checked.",
                value_title=_unit(points, name),
            ),
            _chart(
                points,
                name,
                "time",
                lambda params: f"{params['part']}\n{form_of_app(params)}",
                lambda params: params["part"] != "total",
                slug=f"{name}-phases",
                title=f"{name}: where the time goes",
                about="Seconds a run that thread 0 spends in each phase, the mean of the PEs; compute is the rest.",
                value_title="s",
                lower_is_better=True,
            ),
        )
        if chart
    ]


def rows(points):
    """[(heading, rows)] of the table: a heading for each mini-app and problem, a row for each form."""
    groups: dict[str, list[Row]] = {}
    for name in _names(points):
        for key, params in {run_of_app(p["params"]): p["params"] for p in points.find(name, COMMUNICATION)}.items():
            groups.setdefault(f"{name}, {problem_of_app(params)}", []).append(_row(points, name, key))
    return list(groups.items())


def _names(points):
    return list(dict.fromkeys(p["benchmark"] for p in points.find(metric=COMMUNICATION)))


def _unit(points, name):
    return points.find(name, "rate", part="total")[0]["unit"]


def _panel(params):
    return f"{problem_of_app(params)}, {pes_threads_and_load(params)}"


def _chart(points, name, metric, category_of, wanted, **fields):
    def is_wanted(params):
        return "part" in params and wanted(params)  # what a benchmark measures beside its runs has no parts

    return dots(points, name, metric, _panel, category_of, is_wanted, shared_values=False, **fields)


def _row(points, name, key):
    totals = [_part(points, name, key, label, "time", "total") for label in points.labels]
    cells = [total and _cell(points, key, total) for total in totals]
    first = next(total for total in totals if total)["params"]
    ratios = [ratio_of(totals[0], other) for other in totals[1:]]
    return Row(f"{form_of_app(first)}, {pes_and_threads(first)}", cells, ratios, bool(first.get("oversubscribed")))


def _cell(points, key, total):
    share = _part(points, total["benchmark"], key, total["label"], COMMUNICATION, COMMUNICATION)
    figures = [
        point for point in points.find(total["benchmark"], FIGURE, total["label"]) if run_of_app(point["params"]) == key
    ]
    merit = headline_of_app(figures)
    below = f"communication {share['median']:.0f} %" + f"; {merit}" * bool(merit)
    return units.quantity(total["median"], "s"), below, total


def _part(points, name, key, label, metric, part):
    found = [p for p in points.find(name, metric, label, part=part) if run_of_app(p["params"]) == key]
    return found[0] if found else None
