"""Draws a chart (charts/model.py) with plotly, for the page."""

from math import log10

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from shmem_mt import units
from shmem_mt.report.charts.model import beside, categories

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
FILLINGS = ("", "-open", "-dot", "-open-dot")  # of symbols, where there is no line
GRID = "#e3e6ea"
INK = "#1b1f24"


def library():
    """The text of plotly.js, to be embedded once."""
    return get_plotlyjs()


def draw(chart):
    """The chart as an HTML fragment, to be put after the library."""
    dots = chart.kind == "dots"
    columns = _columns(chart)
    rows = -(-len(chart.panels) // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[p.title for p in chart.panels],
        shared_yaxes=False,
        horizontal_spacing=0.15 if dots else 0.075,
        vertical_spacing=0.16 if rows > 1 else 0,
    )
    shown = set()
    for index, panel in enumerate(chart.panels):
        place = dict(row=index // columns + 1, col=index % columns + 1)
        for series in panel.series:
            for trace in _dot_traces(series, panel) if dots else _line_traces(series):
                trace.showlegend = trace.showlegend is not False and series.name not in shown
                figure.add_trace(trace, **place)
            shown.add(series.name)
        _style_axes(figure, chart, panel, place)
    figure.update_layout(
        height=_height(chart, rows),
        template="plotly_white",
        paper_bgcolor="white",
        plot_bgcolor="white",
        font=dict(family=FONT, size=13, color=INK),
        margin=dict(l=70, r=48, t=86 if chart.panels[0].title else 60, b=58),
        hoverlabel=dict(bgcolor="white", bordercolor="#8a929c", font=dict(family=FONT, size=13, color=INK)),
        hovermode="closest",
        modebar=dict(orientation="v"),
        legend=dict(orientation="h", yanchor="top", yref="container", y=1, x=0, xanchor="left"),
    )
    figure.update_annotations(font=dict(size=14, color=INK))
    return figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=f"chart-{chart.slug}",
        config=dict(displaylogo=False, responsive=True, modeBarButtonsToRemove=["select2d", "lasso2d", "autoScale2d"]),
    )


def _columns(chart):
    if chart.kind == "dots":
        return min(2, len(chart.panels))
    return len(chart.panels) if len(chart.panels) <= 3 else 2 if len(chart.panels) == 4 else 3


def _height(chart, rows):
    if chart.kind != "dots":
        return 130 + 300 * rows
    lines = max(len(categories(panel)) for panel in chart.panels)
    series = max(len(panel.series) for panel in chart.panels)
    return 130 + rows * (56 + lines * (16 + 10 * series))


def _line_traces(series):
    style = dict(color=series.colour, width=2.2, dash=DASHES[series.dash])
    band = go.Scatter(
        x=series.x + series.x[::-1],
        y=series.high + series.low[::-1],
        fill="toself",
        mode="lines",
        line=dict(width=0),
        fillcolor=_faint(series.colour),
        hoverinfo="skip",
        showlegend=False,
        legendgroup=series.name,
    )
    line = go.Scatter(
        x=series.x,
        y=series.y,
        mode="lines+markers",
        name=series.name,
        line=style,
        marker=dict(size=8, color=series.colour, symbol=series.symbol),
        customdata=series.notes,
        hovertemplate=f"<b>{series.name}</b><br>%{{x}}<br>%{{customdata}}<extra></extra>",
        legendgroup=series.name,
    )
    return [band, line]


def _dot_traces(series, panel):
    names = categories(panel)
    shift = beside(panel.series.index(series), len(panel.series))
    labels = [x.replace("<br>", ", ") for x in series.x]
    filling = FILLINGS[series.dash % len(FILLINGS)]
    return [
        go.Scatter(
            x=series.y,
            y=[names.index(x) + shift for x in series.x],
            mode="markers",
            name=series.name,
            legendgroup=series.name,
            customdata=list(zip(labels, series.notes)),
            marker=dict(
                size=13 if series.reference else 12,
                color=series.colour,
                line=dict(width=1.2, color=series.colour if filling else "white"),
                symbol=series.symbol + filling,
            ),
            error_x=dict(
                type="data",
                symmetric=False,
                array=[h - y for h, y in zip(series.high, series.y)],
                arrayminus=[y - low for low, y in zip(series.low, series.y)],
                thickness=1.6,
                width=4,
                color=series.colour,
            ),
            hovertemplate=f"<b>{series.name}</b><br>%{{customdata[0]}}<br>%{{customdata[1]}}<extra></extra>",
        )
    ]


def _style_axes(figure, chart, panel, place):
    value = dict(
        type="log" if chart.log_values else "linear",
        gridcolor=GRID,
        zeroline=False,
        exponentformat="SI",
        dtick=_tick_step(chart, panel) if chart.log_values else None,
        tickformat="~s",
        linecolor="#8a929c",
        showline=True,
    )
    title = chart.value_title + ("  (less is better)" if chart.lower_is_better else "")
    if chart.kind == "dots":
        own = _range(chart, panel)
        figure.update_xaxes(**value, range=own, title=dict(text=title, standoff=6), **place)
        names = categories(panel)
        figure.update_yaxes(
            range=[len(names) - 0.45, -0.55],
            tickvals=list(range(len(names))),
            ticktext=names,
            gridcolor=GRID,
            zeroline=False,
            ticksuffix="  ",
            **place,
        )
        return
    own = _range(chart, panel)
    figure.update_yaxes(**value, range=own, title=title if place["col"] == 1 else None, **place)
    xs = sorted({x for series in panel.series for x in series.x})
    ticks = xs if len(xs) <= 7 else xs[:: -(-len(xs) // 7)]
    figure.update_xaxes(
        type="log",
        title=dict(text=chart.x_title, standoff=6),
        tickvals=ticks,
        gridcolor=GRID,
        ticktext=[units.size(x) if chart.x_is_size else str(x) for x in ticks],
        linecolor="#8a929c",
        showline=True,
        hoverformat=",",
        **place,
    )


def _range(chart, panel):
    """As plotly wants it."""
    ends = value_range(chart, None if chart.shared_values else panel)
    return [log10(end) for end in ends] if chart.log_values else list(ends)


def value_range(chart, panel=None):
    """Lowest and highest value of the chart or of one panel, with room on both sides of the axis."""
    panels = [panel] if panel else chart.panels
    lows = [v for p in panels for s in p.series for v in s.low if v > 0]
    highs = [v for p in panels for s in p.series for v in s.high if v > 0]
    if not chart.log_values:
        lowest = min((v for p in panels for s in p.series for v in s.low), default=0)
        return 1.06 * min(0, lowest), 1.06 * max(highs, default=1)
    if not lows:
        return 0.1, 1
    room = 1.5 if max(highs) > 3 * min(lows) else 3  # a narrow range gets room, so that its axis has ticks
    return min(lows) / room, max(highs) * room


def _tick_step(chart, panel):
    """A tick a decade on long axes, ticks at 1, 2 and 5 on short ones."""
    low, high = value_range(chart, None if chart.shared_values else panel)
    return 1 if high / low > (150 if chart.kind == "dots" else 1500) else "D2"


def _faint(colour):
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"
