"""What a chart is, as plain data: what is on which axis, in which colour. vega.py draws it."""

from dataclasses import dataclass, field

from shmem_mt import units
from shmem_mt.runner.points import how_sure, tail
from shmem_mt.runner.results import rounds_of, why_invalid
from shmem_mt.statistics import start_values

# Okabe and Ito's palette, which stays distinct for colour-blind readers, and three further colours. Their contrast with
# white is 3 and more, for which the palette's sky blue and orange are darker here. The reference lines are grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#4596CB", "#B97F00", "#000000", "#7A5C00", "#8C8C8C")
REFERENCE_COLOUR = "#555555"
# What a colour stands for is told without it, too: each has a symbol. What is of one colour has several dashes.
SYMBOLS = ("circle", "square", "triangle-up", "x", "star", "triangle-down", "pentagon", "cross", "hexagon")
REFERENCE_SYMBOL = "diamond"
DASHES = 6  # as many kinds of lines as vega.py has


@dataclass
class Series:
    name: str
    colour: str
    reference: bool = False
    dash: int = 0  # the kind of its line, 0 a solid one; of dots, how the symbol is filled
    x: list = field(default_factory=list)
    y: list = field(default_factory=list)
    low: list = field(default_factory=list)
    high: list = field(default_factory=list)
    starts: list = field(default_factory=list)  # one list a point: the value of each program start
    notes: list = field(default_factory=list)  # one text a point, of several lines, shown on hover
    results: list = field(default_factory=list)  # what the points were made of

    @property
    def symbol(self):
        if self.reference:
            return REFERENCE_SYMBOL
        return SYMBOLS[COLOURS.index(self.colour)] if self.colour in COLOURS else SYMBOLS[0]

    def add(self, x, result, note=""):
        self.x.append(x)
        self.results.append(result)
        self.y.append(result["median"])
        self.low.append(result["interval"][0])
        self.high.append(result["interval"][1])
        self.starts.append(start_values(rounds_of(result)).tolist())
        words = [quantity_interval(result), how_sure(result)]
        words += [text for text in (tail(result), note) if text]
        error = result.get("clock_error_s")
        words += [f"clocks known to {units.quantity(error, 's')}"] if error else []
        words += [f"coalescing {result['params']['coalescing']}"] if "coalescing" in result["params"] else []
        words += ["oversubscribed"] if result["params"].get("oversubscribed") else []
        words += [f"INVALID: {why_invalid(result)}"] if result["valid"] is False else []
        words += ["not validated"] if result["valid"] is None else []
        self.notes.append("\n".join(words))


@dataclass
class Limit:
    """What the machine can do at best: a line across all panels."""

    name: str
    result: dict  # median, interval, starts, unit

    @property
    def value(self):
        return self.result["median"]


@dataclass
class Panel:
    title: str
    series: list


@dataclass
class Chart:
    slug: str
    title: str
    about: str
    panels: list
    value_title: str
    lower_is_better: bool = False
    # lines: x is a number on a log axis; dots: x is a category, of lines, drawn downwards; heat: x is (PEs, threads), a
    # field of its panel's one series
    kind: str = "lines"
    x_title: str = ""
    x_is_size: bool = False
    shared_values: bool = True  # one value axis for all panels
    log_values: bool = True  # otherwise the value axis begins at 0, or below where a value does
    limits: list = field(default_factory=list)


def quantity_interval(result):
    low, high = result["interval"]
    text = units.quantity(result["median"], result["unit"])
    return f"{text} [{units.quantity(low, result['unit'])}, {units.quantity(high, result['unit'])}]"


def categories(panel):
    """The categories of a dots panel, from the top."""
    return list(dict.fromkeys(x for series in panel.series for x in series.x))


def beside(order, count):
    """How far below its category's line the dots of series `order` of `count` lie, so that they hide no others."""
    return (order - (count - 1) / 2) * min(0.22, 0.7 / count)


class Points:
    """The points of a report, by what they are."""

    def __init__(self, points, colours=None):
        self.points = points
        self.labels = list(dict.fromkeys(p["label"] for p in points))
        self.colours = colours or {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(self.labels)}

    def among(self, wanted):
        """Those for which wanted(benchmark) holds, with the labels that have some, in the same colours."""
        return Points([p for p in self.points if wanted(p["benchmark"])], self.colours)

    def libraries(self):
        """Those of OpenSHMEM libraries, and of MPI where its operations are the same."""
        return Points([p for p in self.points if "api" not in p["params"]], self.colours)

    def references(self):
        """Those of other interfaces (params.api): MPI between two PEs, and bare UCX."""
        return Points([p for p in self.points if "api" in p["params"]], self.colours)

    def of(self, labels):
        """Those of these labels, in the same colours."""
        return self.having([p for p in self.points if p["label"] in labels])

    def having(self, points):
        """These alone, with the labels that have some, in the same colours."""
        return Points(points, self.colours)

    def fabrics(self):
        """The fabrics that there are points of, as results name them."""
        return list(dict.fromkeys(p["params"]["fabric"] for p in self.points))

    def over(self, fabric):
        """Those of that fabric, with the labels that have some, in the same colours."""
        return Points([p for p in self.points if p["params"]["fabric"] == fabric], self.colours)

    def find(self, benchmark=None, metric=None, label=None, **params):
        """Points with these values; a params value may be a tuple of allowed ones."""
        found = []
        for point in self.points:
            if (benchmark and point["benchmark"] != benchmark) or (metric and point["metric"] != metric):
                continue
            if label and point["label"] != label:
                continue
            if all(_matches(point["params"].get(name), wanted) for name, wanted in params.items()):
                found.append(point)
        return found


def _matches(value, wanted):
    return value in wanted if isinstance(wanted, tuple) else value == wanted


def make_chart(panels, **fields):
    """A chart of the panels that have points, None when none has."""
    panels = [Panel(panel.title, [s for s in panel.series if s.x]) for panel in panels]
    panels = [panel for panel in panels if panel.series]
    return Chart(panels=panels, **fields) if panels else None


def dots(points, benchmark, metric, panel_of, category_of, wanted=lambda params: True, **fields):
    """One panel for each panel_of(params), one dot for each category_of(params) and implementation."""
    found = [point for point in points.find(benchmark, metric) if wanted(point["params"])]
    panels = []
    for title in dict.fromkeys(panel_of(p["params"]) for p in found):
        series = [plain_series(points, label) for label in points.labels]
        for point in found:
            if panel_of(point["params"]) == title:
                series[points.labels.index(point["label"])].add(category_of(point["params"]), point)
        panels.append(Panel(title, series))
    return make_chart(panels, kind="dots", **fields)


def plain_series(points, label, name=None, **style):
    """An empty series in the colour of that implementation."""
    return Series(name or label, points.colours[label], **style)
