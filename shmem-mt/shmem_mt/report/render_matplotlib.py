"""Draws a chart (charts/model.py) with matplotlib: one PNG and one SVG file each, for papers and slides."""

import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.ticker import EngFormatter, FixedLocator, NullFormatter

from shmem_mt import units
from shmem_mt.report.charts.model import REFERENCE_SYMBOL, beside, categories
from shmem_mt.report.charts.model import SYMBOLS as SYMBOLS_OF_CHARTS
from shmem_mt.report.render_plotly import value_range

SYMBOLS = dict(zip((*SYMBOLS_OF_CHARTS, REFERENCE_SYMBOL), "os^X*vpPhD"))
DASHES = ("-", "--", ":", "-.", (0, (8, 2)), (0, (8, 2, 1, 2)))
FILLINGS = ("full", "none", "left", "bottom")  # of symbols, where there is no line
STYLE: dict = {
    "font.size": 10,
    "axes.grid": True,
    "grid.color": "#e3e6ea",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a929c",
    "text.color": "#1b1f24",
    "svg.hashsalt": "shmem-mt",
}


def write(chart, directory):
    """Writes DIRECTORY/<slug>.png and .svg; returns the paths."""
    with plt.rc_context(STYLE):
        figure = _draw(chart)
        paths = [os.path.join(directory, f"{chart.slug}.{kind}") for kind in ("png", "svg")]
        for path in paths:
            figure.savefig(path, dpi=150, bbox_inches="tight", facecolor="white")
        plt.close(figure)
    return paths


def _draw(chart):
    columns = min(len(chart.panels), 2 if chart.kind == "dots" or len(chart.panels) == 4 else 3)
    rows = -(-len(chart.panels) // columns)
    width, height = (
        (5.6, 1.2 + 0.42 * max(len(categories(panel)) for panel in chart.panels))
        if chart.kind == "dots"
        else (4.4, 3.4)
    )
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained"
    )
    for index, axis in enumerate(axes.flat):
        if index >= len(chart.panels):
            axis.set_visible(False)
            continue
        panel = chart.panels[index]
        (_dots if chart.kind == "dots" else _lines)(axis, chart, panel)
        axis.set_title(panel.title, fontsize=11)
    figure.suptitle(chart.title, fontsize=13, fontweight="bold")
    handles: dict[str, Artist] = {}
    for axis in axes.flat:
        for handle, name in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(name, handle)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=min(4, len(handles)),
        frameon=False,
    )
    return figure


def _value_axis(axis, chart, panel, which):
    text = chart.value_title + (" (less is better)" if chart.lower_is_better else "")
    low, high = value_range(chart, None if chart.shared_values else panel)
    scale = "log" if chart.log_values else "linear"
    if which == "x":
        axis.set_xscale(scale)
        axis.set_xlim(low, high)
        axis.set_xlabel(text)
        target = axis.xaxis
    else:
        axis.set_yscale(scale)
        axis.set_ylim(low, high)
        axis.set_ylabel(text)
        target = axis.yaxis
    target.set_major_formatter(EngFormatter(sep=""))
    target.set_minor_formatter(NullFormatter())


def _lines(axis, chart, panel):
    for series in panel.series:
        axis.plot(
            series.x,
            series.y,
            color=series.colour,
            label=series.name,
            linestyle=DASHES[series.dash],
            marker=SYMBOLS[series.symbol],
            markersize=5,
            linewidth=1.6,
        )
        axis.fill_between(series.x, series.low, series.high, color=series.colour, alpha=0.16, linewidth=0)
    _value_axis(axis, chart, panel, "y")
    xs = sorted({x for series in panel.series for x in series.x})
    ticks = xs if len(xs) <= 6 else xs[:: -(-len(xs) // 6)]
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_minor_locator(FixedLocator([]))
    axis.set_xticklabels([units.size(x) if chart.x_is_size else str(x) for x in ticks], fontsize=8)
    axis.set_xlabel(chart.x_title)


def _dots(axis, chart, panel):
    names = categories(panel)
    for order, series in enumerate(panel.series):
        shift = beside(order, len(panel.series))
        bars = [
            [y - low for y, low in zip(series.y, series.low)],
            [high - y for y, high in zip(series.y, series.high)],
        ]
        axis.errorbar(
            series.y,
            [names.index(x) + shift for x in series.x],
            xerr=bars,
            fmt=SYMBOLS[series.symbol],
            fillstyle=FILLINGS[series.dash % len(FILLINGS)],
            color=series.colour,
            label=series.name,
            markersize=7,
            capsize=3,
            linestyle="none",
            markeredgecolor="white" if series.dash % len(FILLINGS) == 0 else series.colour,
        )
    axis.set_yticks(range(len(names)), [name.replace("<br>", "\n") for name in names])
    axis.set_ylim(len(names) - 0.4, -0.6)
    _value_axis(axis, chart, panel, "x")
