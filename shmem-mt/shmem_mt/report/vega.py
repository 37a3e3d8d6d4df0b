"""Draws a chart (charts/model.py): a Vega-Lite specification of each panel. Vega draws it in the page; vl_convert,
which contains the same Vega and needs no browser, draws it as SVG and PNG."""

import json
import os
import textwrap
from math import ceil, cos, floor, log10, pi, sin

import vl_convert

from shmem_mt import units
from shmem_mt.report.charts.model import REFERENCE_COLOUR, Series, beside, categories, quantity_interval

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
INK, GRID, AXIS = "#1b1f24", "#e3e6ea", "#8a929c"
DASHES: tuple[list[int], ...] = ([], [6, 4], [2, 3], [8, 3, 2, 3], [14, 4], [14, 3, 2, 3])
FILLINGS = ("full", "open", "faint", "broken")  # of symbols, where there is no line
LIMIT_DASH = 2  # of DASHES
HEAT, HEAT_INKS = ("#e8f1f8", "#0b4f7d"), ("#10202c", "#fafcfe")  # of fields, and of what is written in them
LINE_HEIGHT, PLOT_HEIGHT = 14, 240
CHARACTER = 6.4  # the mean width of one, in pixels
PICTURE = {"lines": 380, "dots": 330, "heat": 330}  # the width of a panel's plot in SVG and PNG


def _corners(*radii):
    """A polygon whose corners are so far from its middle, clockwise from the top, as SVG path."""
    angles = [2 * pi * number / len(radii) - pi / 2 for number in range(len(radii))]
    points = [f"{radius * cos(angle):.3f},{radius * sin(angle):.3f}" for radius, angle in zip(radii, angles)]
    return "M" + "L".join(points) + "Z"


# As SVG paths between -1 and 1, which Vega and the legend of the page draw alike.
SYMBOLS = {
    "circle": "M-1,0A1,1,0,1,1,1,0A1,1,0,1,1,-1,0Z",
    "square": "M-0.85,-0.85H0.85V0.85H-0.85Z",
    "triangle-up": "M0,-1L1,0.8H-1Z",
    "triangle-down": "M0,1L1,-0.8H-1Z",
    "x": "M-1,-0.55L-0.55,-1L0,-0.45L0.55,-1L1,-0.55L0.45,0L1,0.55L0.55,1L0,0.45L-0.55,1L-1,0.55L-0.45,0Z",
    "cross": "M-0.33,-1H0.33V-0.33H1V0.33H0.33V1H-0.33V0.33H-1V-0.33H-0.33Z",
    "star": _corners(*[1.3, 0.55] * 5),
    "pentagon": _corners(*[1] * 5),
    "hexagon": _corners(*[1] * 6),
    "diamond": "M0,-1.1L0.8,0L0,1.1L-0.8,0Z",
}

# Vega-Lite would have one scale of each kind for all parts of a specification.
OWN_LOOKS = {"scale": dict.fromkeys(("fill", "shape", "stroke", "strokeDash"), "independent")}

CONFIG = {
    "background": "white",
    "font": FONT,
    "view": {"stroke": None},
    "mark": {"aria": False},  # the table behind the chart says it better
    "title": {"fontSize": 13.5, "fontWeight": 500, "color": INK, "anchor": "start", "offset": 8, "aria": False},
    "axis": {
        "aria": False,
        "gridColor": GRID,
        "domainColor": AXIS,
        "tickColor": AXIS,
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12.5,
        "titleFontWeight": "normal",
        "labelOverlap": "greedy",
        "labelSeparation": 6,
        "labelLimit": 0,
        "titleLimit": 0,
    },
}


def library():
    """The text of Vega, to be embedded once: it defines vegaEmbed."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


def columns(chart):
    """How many panels stand side by side, where there is room."""
    count = len(chart.panels)
    if chart.kind in ("dots", "heat"):
        return min(2, count)
    return count if count <= 3 else 2 if count == 4 else 3


def panels(chart):
    """The specifications of its panels, each as wide as the element that it is drawn into."""
    fitted = {"config": CONFIG, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    return [{**_panel(chart, panel), **fitted, "description": _told(chart, panel)} for panel in chart.panels]


def _told(chart, panel):
    return ": ".join(filter(None, (chart.title, panel.title)))


def write(chart, directory):
    """Writes DIRECTORY/<slug>.png and .svg; returns the paths."""
    paths = [os.path.join(directory, f"{chart.slug}.{kind}") for kind in ("svg", "png")]
    svg = vl_convert.vegalite_to_svg(_picture(chart))
    with open(paths[0], "w", encoding="utf-8") as file:
        file.write(svg)
    with open(paths[1], "wb") as file:
        file.write(vl_convert.svg_to_png(svg, scale=1.5))
    return paths


def _picture(chart):
    """All panels, with title and legend."""
    width = PICTURE[chart.kind]
    drawn = [{**_panel(chart, panel), "width": width} for panel in chart.panels]
    whole = columns(chart) * (width + 60)
    title = {"text": _wrapped(chart.title, whole), "fontSize": 17, "fontWeight": "bold", "offset": 16}
    together = {"concat": drawn, "columns": columns(chart), "spacing": {"row": 24, "column": 24}, "resolve": OWN_LOOKS}
    return {
        "config": CONFIG,
        "title": title,
        "padding": 12,
        "vconcat": [together, *([_picture_legend(chart, whole)] if legend(chart) else [])],
        "spacing": 18,
        "resolve": OWN_LOOKS,
        "align": "none",
    }


def _wrapped(text, width):
    """The lines in which a text has about that width in pixels; a line break stays one."""
    return [part for line in text.split("\n") for part in textwrap.wrap(line, max(12, int(width / CHARACTER))) or [""]]


def legend(chart):
    """The series of all panels, each name once, then the limits; none where panels have one series each and say what
    it is."""
    found: dict = {}
    if chart.kind == "heat":
        return []
    for one in (one for panel in chart.panels for one in panel.series):
        found.setdefault(one.name, one)
    limits = [Series(one.name, REFERENCE_COLOUR, reference=True, dash=LIMIT_DASH) for one in chart.limits]
    return [*found.values(), *limits]


def look(chart, series):
    """How its symbol and line are drawn: path, fill, stroke, dash (of the line; of dots, of the symbol's edge)."""
    path, colour = SYMBOLS[series.symbol], series.colour
    if chart.kind != "dots":
        return {"path": path, "fill": colour, "stroke": "white", "colour": colour, "dash": DASHES[series.dash]}
    filling = FILLINGS[series.dash % len(FILLINGS)]
    fill = {"full": colour, "faint": faint(colour)}.get(filling, "white")
    stroke = "white" if filling == "full" else colour
    return {"path": path, "fill": fill, "stroke": stroke, "colour": colour, "dash": [2, 2] * (filling == "broken")}


def faint(colour, ground="#ffffff"):
    """Two fifths of that colour on that ground."""
    pairs = ((int(one[i : i + 2], 16) for one in (colour, ground)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(behind - 0.4 * (behind - over)):02x}" for over, behind in pairs)


def _channels(chart, series):
    """What encodes the looks of these series, which rows of data name by their place `s`, by channel."""
    looks = [look(chart, one) for one in series]

    def channel(name):
        scale = {"domain": list(range(len(looks))), "range": [one[name] for one in looks]}
        return {"field": "s", "type": "nominal", "legend": None, "scale": scale}

    drawn = {"line": {"stroke": channel("colour")}, "tint": {"fill": channel("colour")}}
    drawn["symbol"] = {"shape": channel("path"), "fill": channel("fill"), "stroke": channel("stroke")}
    drawn["symbol" if chart.kind == "dots" else "line"]["strokeDash"] = channel("dash")
    return drawn


_SYMBOL = {"type": "point", "size": 80, "strokeWidth": 1, "opacity": 1}


def _limits(chart, value, axis):
    """Lines across the panel, where the machine's limits are."""
    told = {limit.value: f"{limit.name}\n{quantity_interval(limit.result)}" for limit in chart.limits}
    rows = [{"value": at, "note": note} for at, note in told.items()]
    encoding = {value: {"field": "value", **axis}, "tooltip": {"field": "note", "type": "nominal"}}
    mark = {"type": "rule", "stroke": REFERENCE_COLOUR, "strokeWidth": 1.5, "strokeDash": DASHES[LIMIT_DASH]}
    return [{"data": {"values": rows}, "mark": mark, "encoding": encoding}] if rows else []


def _heat(panel):
    """PEs downwards, threads to the right, a field for each pair that was measured."""
    (series,) = panel.series
    highest = max(series.y)
    rows = [
        {
            "pes": pes,
            "threads": threads,
            "share": value / highest,
            "told": units.quantity(value, result["unit"]),
            "note": "\n".join([x_text(None, (pes, threads)), note]),
        }
        for (pes, threads), value, result, note in zip(series.x, series.y, series.results, series.notes)
    ]
    axis = {"type": "ordinal", "axis": {"labelAngle": 0, "grid": False, "ticks": False, "domain": False}}
    where = {"x": {"field": "threads", "title": "threads a PE", **axis}, "y": {"field": "pes", "title": "PEs", **axis}}
    shade = {"field": "share", "type": "quantitative", "legend": None, "scale": {"domain": [0, 1], "range": HEAT}}
    ink = {"condition": {"test": "datum.share > 0.55", "value": HEAT_INKS[1]}, "value": HEAT_INKS[0]}
    hover = {"tooltip": {"field": "note", "type": "nominal"}}
    return {
        "title": {"text": _wrapped(panel.title, PICTURE["heat"] + 20)},
        "height": 56 * len({pes for pes, _ in series.x}),
        "data": {"values": rows},
        "layer": [
            {"mark": {"type": "rect"}, "encoding": {**where, "fill": shade, **hover}},
            {"mark": {"type": "text", "fontSize": 12.5}, "encoding": {**where, "text": {"field": "told"}, "fill": ink}},
        ],
    }


def _panel(chart, panel):
    if chart.kind == "heat":
        return _heat(panel)
    dots = chart.kind == "dots"
    looks = _channels(chart, panel.series)
    value, other = ("x", "y") if dots else ("y", "x")
    ends = value_range(chart, None if chart.shared_values else panel)
    axes = {value: _value_axis(chart, ends), other: _category_axis(panel) if dots else _amount_axis(chart, panel)}
    whole = {other: {"field": "at", **axes[other]}, value: {"field": "value", **axes[value]}}
    band = {**whole, value: {**whole[value], "field": "low"}, value + "2": {"field": "high"}}
    if dots:
        caps = {"size": 9, "thickness": 1.6, "opacity": 1}
        interval = [{"mark": {"type": "rule", "strokeWidth": 1.2}, "encoding": {**band, **looks["line"]}}]
        for end in ("low", "high"):
            capped = {**whole, value: {**whole[value], "field": end}, **looks["tint"]}
            interval.append({"mark": {"type": "tick", "orient": "vertical", **caps}, "encoding": capped})
        line = []
    else:
        interval = [{"mark": {"type": "area", "opacity": 0.16, "clip": True}, "encoding": {**band, **looks["tint"]}}]
        line = [{"mark": {"type": "line", "strokeWidth": 2, "clip": True}, "encoding": {**whole, **looks["line"]}}]
    starts = {
        "data": {"values": list(_starts(chart, panel))},
        "mark": {"type": "circle", "size": 26 if dots else 18, "opacity": 0.45, "clip": True},
        "encoding": {**whole, **looks["tint"]},
    }
    hover = {"tooltip": {"field": "note", "type": "nominal"}}
    symbols = {"mark": {**_SYMBOL, "cursor": "crosshair"}, "encoding": {**whole, **looks["symbol"], **hover}}
    return {
        "title": {"text": _wrapped(panel.title, PICTURE[chart.kind] + 20)} if panel.title else "",
        "height": _height(panel) if dots else PLOT_HEIGHT,
        "data": {"values": list(_rows(chart, panel, ends))},
        "layer": [*_limits(chart, value, axes[value]), *interval, starts, *line, symbols],
        "resolve": OWN_LOOKS,
    }


def _places(chart, panel):
    """(place of the series, series, where each of its points lies on the axis that is not of values)."""
    names = categories(panel)
    for place, series in enumerate(panel.series):
        if chart.kind == "dots":
            shift = beside(place, len(panel.series))
            yield place, series, [round(names.index(x) + shift, 3) for x in series.x]
        else:
            yield place, series, series.x


def _rows(chart, panel, ends):
    for place, series, where in _places(chart, panel):
        for at, x, value, low, high, note in zip(where, series.x, series.y, series.low, series.high, series.notes):
            if chart.log_values and value <= 0:
                continue
            said = "\n".join([series.name, x_text(chart, x), note])
            lowest = max(low, ends[0]) if chart.log_values else low
            yield {"s": place, "at": at, "value": value, "low": lowest, "high": high, "note": said}


def _starts(chart, panel):
    """The starts' own values of the points that have several."""
    for place, series, where in _places(chart, panel):
        for at, values in zip(where, series.starts):
            for value in values if len(values) > 1 else ():
                if value > 0 or not chart.log_values:
                    yield {"s": place, "at": at, "value": value}


def x_text(chart, x):
    """A place on the axis that is not of values, in one line."""
    if isinstance(x, tuple):
        return f"{x[0]} PEs x {x[1]} threads"
    return units.size(x) if chart.x_is_size else str(x).replace("\n", ", ")


def _value_axis(chart, ends):
    title = chart.value_title + ("  (less is better)" if chart.lower_is_better else "")
    axis: dict = {"title": title, "format": "~g" if chart.value_title[0] in "%×" else "~s"}
    if chart.kind != "dots":
        axis["labelOverlap"] = False
    if chart.log_values:
        axis |= _at(_log_ticks(ends, 150 if chart.kind == "dots" else 1500))
    scale = {"type": "log" if chart.log_values else "linear", "domain": list(ends), "nice": False, "zero": False}
    return {"type": "quantitative", "axis": axis, "scale": scale}


def _at(ticks):
    """Of an axis with these ticks. Vega drops some of them where it is not told how many there are."""
    return {"values": ticks, "tickCount": len(ticks)}


def _log_ticks(ends, longest):
    """A tick a decade on long axes, ticks at 1, 2 and 5 on short ones."""
    low, high = ends
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    digits = (1,) if high / low > longest else (1, 2, 5)
    ticks = [float(f"{digit}e{decade}") for decade in decades for digit in digits]
    return [tick for tick in ticks if low <= tick <= high]


def _amount_axis(chart, panel):
    """Of lines: numbers on a log axis."""
    found = sorted({x for series in panel.series for x in series.x})
    ticks = found if len(found) <= 7 else found[:: -(-len(found) // 7)]
    texts = json.dumps({str(x): units.size(x) if chart.x_is_size else f"{x:,}" for x in ticks})
    room = max((found[-1] / found[0]) ** 0.04, 1.06)
    scale = {"type": "log", "domain": [found[0] / room, found[-1] * room], "nice": False}
    axis = {"title": chart.x_title, **_at(ticks), "labelExpr": f"{texts}[datum.value]"}
    return {"type": "quantitative", "axis": axis, "scale": scale}


def _labels(panel):
    return [_wrapped(name, 26 * CHARACTER) for name in categories(panel)]


def _category_axis(panel):
    """Of dots: names, from the top."""
    labels = _labels(panel)
    axis = {"title": None, **_at(list(range(len(labels)))), "labelExpr": f"{json.dumps(labels)}[datum.value]"}
    axis |= {"labelPadding": 8, "labelLineHeight": LINE_HEIGHT, "ticks": False, "labelOverlap": False}
    lines = list(map(len, labels))
    axis["labelOffset"] = {  # Vega puts the first line where the middle of all of them belongs
        "condition": [
            {"test": f"{lines}[datum.value] == {count}", "value": -(count - 1) * LINE_HEIGHT / 2}
            for count in sorted(set(lines))
        ],
        "value": 0,
    }
    scale = {"domain": [len(labels) - 0.45, -0.55], "nice": False, "zero": False}
    return {"type": "quantitative", "axis": axis, "scale": scale}


def _height(panel):
    """Of dots: room for the labels and for the series side by side."""
    lines = max(map(len, _labels(panel)))
    return len(categories(panel)) * max(16 + 10 * len(panel.series), LINE_HEIGHT * lines + 10)


def value_range(chart, panel=None):
    """Lowest and highest value of the chart or of one panel, with room on both sides of the axis."""
    series = [one for each in ([panel] if panel else chart.panels) for one in each.series]
    starts = [value for one in series for values in one.starts for value in values]
    starts += [limit.value for limit in chart.limits]
    lows = [v for v in (*(v for one in series for v in one.low), *starts) if v > 0]
    highs = [v for v in (*(v for one in series for v in one.high), *starts) if v > 0]
    if not chart.log_values:
        lowest = min((value for one in series for value in one.low), default=0)
        return 1.06 * min(0, lowest, *starts), 1.06 * max(highs, default=1)
    if not lows:
        return 0.1, 1
    room = 1.5 if max(highs) > 3 * min(lows) else 3  # a narrow range gets room, so that its axis has ticks
    return min(lows) / room, max(highs) * room


def _picture_legend(chart, width):
    """A view with an entry for each name, in as many columns as fit."""
    series = legend(chart)
    looks = _channels(chart, series)
    entry = 60 + CHARACTER * max(len(one.name) for one in series)
    across = max(1, int(width / entry))
    rows = []
    for place, one in enumerate(series):
        left, top = entry * (place % across), 10 + 20 * (place // across)
        rows.append({"s": place, "left": left, "right": left + 40, "top": top, "name": one.name})
    plain = {"type": "quantitative", "scale": None, "axis": None}  # pixels
    placed = {"x": {"field": "left", **plain}, "y": {"field": "top", **plain}}
    reaching = {**placed, "x2": {"field": "right"}, **looks["line"]}
    line = {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": reaching}
    shift = 34 if chart.kind == "dots" else 48
    text = {"type": "text", "align": "left", "xOffset": shift, "fontSize": 12.5, "color": INK}
    layers = [
        *([line] if chart.kind != "dots" else []),
        {"mark": {**_SYMBOL, "xOffset": 20}, "encoding": {**placed, **looks["symbol"]}},
        {"mark": text, "encoding": {**placed, "text": {"field": "name", "type": "nominal"}}},
    ]
    height = 20 * -(-len(series) // across)
    return {"width": width, "height": height, "data": {"values": rows}, "layer": layers, "resolve": OWN_LOOKS}
