"""The figures of a chart as a table, for those who do not see the chart, and for those who want the numbers."""

from shmem_mt.report import vega
from shmem_mt.report.charts.model import quantity_interval
from shmem_mt.runner.points import how_sure


def table(chart):
    """{columns, rows}: a row a point, in the order of the chart."""
    several = len(chart.panels) > 1
    value = f"{chart.value_title}, median and interval" + ", less is better" * chart.lower_is_better
    rows = [
        [panel.title] * several + [series.name, vega.x_text(chart, x), figure, ", ".join(words)]
        for panel in chart.panels
        for series in panel.series
        for x, (figure, *words) in zip(series.x, map(str.splitlines, series.notes))
    ]
    for limit in chart.limits:
        figure, sure = quantity_interval(limit.result), how_sure(limit.result)
        rows.append(["all"] * several + [limit.name, "", figure, sure])
    return {"columns": ["Panel"] * several + ["Series", chart.x_title or "What", value, "How sure"], "rows": rows}
