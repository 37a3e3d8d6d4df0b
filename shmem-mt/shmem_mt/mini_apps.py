"""What is shown of the mini-apps: their verdicts, their speed by form, and where their time goes. A mini-app is what has
points of the metric `communication`; its problem is what its points say beyond who ran it and how."""

from shmem_mt import units
from shmem_mt.charts import crew, crew_and_load, dots
from shmem_mt.summary import Row, ratio_of

METRIC = "communication"
_RUN = {"pes", "threads", "op", "context", "part", "oversubscribed"}
_RUN |= {"fabric", "coalescing", "link_rate", "rails", "setting"}


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
                _form,
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
                lambda params: f"{params['part']}<br>{_form(params)}",
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
    groups = {}
    for name in _names(points):
        for key, params in {_key(p["params"]): p["params"] for p in points.find(name, METRIC)}.items():
            groups.setdefault(f"{name}, {_problem(params)}", []).append(_row(points, name, key))
    return list(groups.items())


def verdict_lines(results):
    """A line for each form of each mini-app that was run, for people."""
    return [_line(result, results) for result in results if result["metric"] == METRIC]


def _line(share, results):
    verdict = {True: "pass", False: "FAIL", None: "not checked"}[share["valid"]]
    phases = {
        r["params"]["part"]: r["median"]
        for r in results
        if r["metric"] == "time" and r["label"] == share["label"] and _same_run(r, share)
    }
    total = phases.pop("total")
    spent = ", ".join(f"{part} {_percent(seconds, total)}" for part, seconds in phases.items())
    params = share["params"]
    return (
        f"{share['label']}: {share['benchmark']}, {_form(params)}, {_where(params)}: {verdict}, "
        f"{units.quantity(total, 's')} ({spent}; communication {share['median']:.0f} %)"
    )


def _same_run(one, other):
    return one["benchmark"] == other["benchmark"] and _key(one["params"]) == _key(other["params"])


def _key(params):
    """What tells runs of a mini-app apart, whatever is reported of them."""
    return tuple(sorted((name, str(value)) for name, value in params.items() if name != "part"))


def _names(points):
    return list(dict.fromkeys(p["benchmark"] for p in points.find(metric=METRIC)))


def _unit(points, name):
    return points.find(name, "rate", part="total")[0]["unit"]


def _percent(part, total):
    return f"{100 * part / total:.0f} %"


def _problem(params):
    told = [f"{name.replace('_', ' ')} {value}" for name, value in params.items() if name not in _RUN]
    return ", ".join(told)


def _form(params):
    context = params.get("context", "default")
    return params["op"] + f", {context} context" * (context != "default")


def _where(params):
    links = f"links of {params['link_rate']}" if "link_rate" in params else ""
    return ", ".join(filter(None, [_problem(params), crew(params), params["fabric"], links]))


def _panel(params):
    return f"{_problem(params)}, {crew_and_load(params)}"


def _chart(points, name, metric, category_of, wanted, **fields):
    def is_wanted(params):
        return "part" in params and wanted(params)  # what a benchmark measures beside its runs has no parts

    return dots(points, name, metric, _panel, category_of, is_wanted, shared_values=False, **fields)


def _row(points, name, key):
    totals = [_part(points, name, key, label, "time", "total") for label in points.labels]
    cells = [total and _cell(points, key, total) for total in totals]
    first = next(total for total in totals if total)["params"]
    ratios = [ratio_of(totals[0], other) for other in totals[1:]]
    return Row(f"{_form(first)}, {crew(first)}", cells, ratios, bool(first.get("oversubscribed")))


def _cell(points, key, total):
    share = _part(points, total["benchmark"], key, total["label"], METRIC, METRIC)
    return units.quantity(total["median"], "s"), f"communication {share['median']:.0f} %", total


def _part(points, name, key, label, metric, part):
    found = [p for p in points.find(name, metric, label, part=part) if _key(p["params"]) == key]
    return found[0] if found else None
