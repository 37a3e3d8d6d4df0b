"""The figures of a chart as an HTML table, for those who do not see the chart, and for those who want the numbers."""

import html

from shmem_mt import units


def table(chart):
    """A part of the page that opens: a row a point, in the order of the chart."""
    title, several = html.escape(chart.title), len(chart.panels) > 1
    value = f"{chart.value_title}, median and interval" + ", less is better" * chart.lower_is_better
    columns = ["Panel"] * several + ["Series", chart.x_title or "What", value, "How sure"]
    head = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in columns)
    body = "".join(
        _row([panel.title] * several + [series.name, _x_text(chart, x), figure, ", ".join(words)])
        for panel in chart.panels
        for series in panel.series
        for x, (figure, *words) in zip(series.x, (note.split("<br>") for note in series.notes))
    )
    return (
        f'<details class="figures"><summary>The figures of this chart</summary><div class="scroll" tabindex="0" '
        f'role="group" aria-label="Figures: {title}"><table><caption>{title}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></details>"
    )


def _row(cells):
    first, *others = map(html.escape, cells)
    return f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others) + "</tr>"


def _x_text(chart, x):
    return units.size(x) if chart.x_is_size else str(x).replace("<br>", ", ")
