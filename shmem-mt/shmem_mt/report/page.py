"""The HTML page of a report: title with the machine's facts, the summary table, the charts. One file, no network."""

import html
import os
import time

from shmem_mt import __version__
from shmem_mt.report import chart_table, summary
from shmem_mt.report.charts import apps, collectives
from shmem_mt.runner.points import describe, how_sure
from shmem_mt.runner.results import why_invalid
from shmem_mt.studies import ordering_chapter
from shmem_mt.targets import fabrics, machine

_HERE = os.path.dirname(os.path.abspath(__file__))


def build(points, charts, machines, fragments, library, drawn=""):
    """The whole page as text. `machines` is a list of (run folder, machine.json), `drawn` are sections to go behind the
    charts."""
    parts = {
        "STYLE": _read("page.css"),
        "LIBRARY": library.replace("</script", "<\\/script"),
        "SCRIPT": _read("page.js"),
        "TITLE": _escape(_title(points)),
        "BYLINE": _byline(machines),
        "FACTS": _facts(machines),
        "WARNINGS": _machine_warnings(machines) + _warnings(points),
        "HEADLINE": _headline(points),
        "TABLES": "".join(_tables(points.over(fabric), fabric) for fabric in points.fabrics()),
        "CONTENTS": "".join(f'<a href="#{c.slug}">{_escape(c.title)}</a>' for c in charts),
        "CHARTS": "".join(_section(c, f) for c, f in zip(charts, fragments)),
        "DRAWN": drawn,
        "CHART_COUNT": str(len(charts)),
        "VERSION": __version__,
        "POINTS": str(len(points.points)),
    }
    text = _read("page.html")
    pieces = text.split("@@")
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def _read(name):
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:
        return file.read()


def _escape(text):
    return html.escape(str(text))


def _title(points):
    return " and ".join(points.labels) if len(points.labels) < 3 else ", ".join(points.labels)


def _byline(machines):
    facts = machines[0][1].get("machine", {})
    words = [
        facts.get("cpu"),
        f"{facts['cores']} cores" if facts.get("cores") else None,
        "virtual machine" if facts.get("virtual") else None,
        facts.get("os"),
    ]
    return _escape(" · ".join(w for w in words if w) + time.strftime(" · %d %B %Y"))


def _facts(machines):
    blocks = []
    for directory, contents in machines:
        rows = _machine_rows(contents.get("machine", {})) + _library_rows(contents)
        cells = "".join(f"<dt>{_escape(k)}</dt><dd>{_escape(v)}</dd>" for k, v in rows if v not in (None, "", {}))
        name = os.path.basename(os.path.abspath(directory))
        blocks.append(
            f"<details{' open' if len(machines) == 1 else ''}><summary>Machine and settings of {_escape(name)}"
            f"</summary><dl>{cells}</dl></details>"
        )
    return "".join(blocks)


def _machine_rows(facts):
    smt = {True: "on", False: "off"}.get(facts.get("smt"))
    memory = facts.get("memory_bytes")
    return [
        (
            "CPU",
            " ".join(
                filter(
                    None,
                    [
                        facts.get("cpu"),
                        facts.get("cpu_family_model") and f"({facts['cpu_family_model']})",
                    ],
                )
            ),
        ),
        (
            "Cores",
            f"{facts.get('cores', '?')}, SMT {smt or 'unknown'}"
            + (", virtual machine" if facts.get("virtual") else ""),
        ),
        ("Caches", ", ".join(f"{k} {v}" for k, v in (facts.get("caches") or {}).items())),
        ("Memory", f"{memory / 2**30:.1f} GiB" if memory else None),
        ("Kernel", f"{facts.get('kernel', '?')}, {facts.get('os', '?')}"),
        ("Frequency governor", facts.get("governor")),
        ("Load at the start", facts.get("load_at_start")),
        ("Environment", ", ".join(f"{k}={v}" for k, v in (facts.get("environment") or {}).items())),
    ]


def _library_rows(contents):
    rows = []
    for one in contents.get("implementations", []):
        words = [
            one.get("version"),
            one.get("library"),
            f"{one.get('standard', 'OpenSHMEM')} {one['specification']}" if one.get("specification") else None,
            one.get("compiler"),
        ]
        rows.append((one.get("label", "?"), " · ".join(dict.fromkeys(w for w in words if w))))
    settings = contents.get("settings", {})
    if settings:
        rows.append(("Settings", ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in settings.items())))
    return rows


def _machine_warnings(machines):
    told = [
        f"{_escape(os.path.basename(os.path.abspath(directory)))}: {_escape(text)}"
        for directory, contents in machines
        for text in machine.warnings(contents.get("machine", {}))
    ]
    return f'<div class="warning">{"<br>".join(told)}</div>' if told else ""


def _warnings(points):
    parts = []
    invalid = [p for p in points.points if p["valid"] is False]
    if invalid:
        items = "".join(
            f"<li>{_escape(': '.join((p['label'], describe(p['benchmark'], p['params']), why_invalid(p))))}</li>"
            for p in invalid
        )
        parts.append(
            f'<div class="warning bad"><b>{len(invalid)} points are invalid.</b> Their figures mean nothing.'
            f"<ul>{items}</ul></div>"
        )
    unchecked = sum(p["valid"] is None for p in points.points)
    if unchecked:
        parts.append(f'<div class="warning">{unchecked} points were measured without validation.</div>')
    over = sum(bool(p["params"].get("oversubscribed")) for p in points.points)
    if over:
        parts.append(
            f'<div class="warning">{over} of {len(points.points)} points ran more PEs × threads than the machine '
            "has cores. They carry the word <b>oversubscribed</b>: they measure the scheduler, too.</div>"
        )
    staggered = sum(bool(p.get("staggered")) for p in points.points)
    if staggered:
        parts.append(
            f'<div class="warning">{staggered} points are <b>staggered</b>: their threads started more than 5 % of a '
            "sample apart, so that some ran alone for a while. Rates are those of the common window.</div>"
        )
    bindings = {p["binding"] for p in points.points if p.get("binding") and not p["params"].get("oversubscribed")}
    if len(bindings) > 1:
        parts.append(
            f'<div class="warning">Where there are cores enough, PEs ran bound in {len(bindings)} ways: '
            f"{_escape('; '.join(sorted(bindings)))}.</div>"
        )
    return "".join(parts)


CARDS = (
    "8-byte get, handed over",
    "8-byte put round trip",
    "8-byte p, read by the target",
    "1 MiB put, read",
    "8-byte put_nbi",
    "8-byte puts, one request",
)


def headline(points):
    """(labels, rows) of what comes first, over the first fabric: of each kind the figure that a program feels, which
    reads what it is sent, and has lines that others had."""
    own = _one_sided(points.over(points.fabrics()[0]))
    rows = {row.what: row for row in summary.headline_rows(own)}
    return own.labels, [rows[what] for what in CARDS if what in rows and rows[what].cells[0]]


def interval_words(cell):
    """Such as ``1.1 to 1.3 us, 95 %, 8 starts``."""
    _, interval, point = cell
    return f"{interval}, {how_sure(point)}" + ", INVALID" * (point["valid"] is False)


def _headline(points):
    labels, rows = headline(points)
    if not rows:
        return ""
    cards = "".join(_card(labels, row) for row in rows)
    return f'<section id="headline"><h2>What a program feels</h2><div class="cards">{cards}</div></section>'


def _card(labels, row):
    others = "".join(
        _other(label, cell, ratio) for label, cell, ratio in zip(labels[1:], row.cells[1:], row.ratios) if cell
    )
    return (
        f'<div class="card"><div class="what">{_escape(row.what)}</div><div class="who">{_escape(labels[0])}</div>'
        f'<div class="figure">{_escape(row.cells[0][0])}</div><div class="sure">{_escape(interval_words(row.cells[0]))}'
        f"</div>{others}</div>"
    )


def _other(label, cell, ratio):
    """Another implementation's figure on a card, and what the first is to it."""
    badge = ""
    if ratio:
        words = {"better": f"{ratio.text} better", "worse": f"{ratio.text} as good"}.get(
            ratio.says, "no clear difference"
        )
        badge = f' <span class="badge {ratio.says}">{_escape(words)}</span>'
    sure = f'<div class="sure">{_escape(interval_words(cell))}</div>'
    return f'<div class="other">{_escape(label)}: {_escape(cell[0])}{badge}{sure}</div>'


def _one_sided(points):
    """The points of the labels that have others than collectives."""
    return points.of(points.among(lambda benchmark: benchmark != collectives.BENCHMARK).labels)


def _tables(points, fabric):
    """The summary of one fabric and, where there are some, mini-apps, order and collectives."""
    own, suffix = _one_sided(points), fabrics.suffix(fabric)
    over = f"Fabric: <b>{_escape(fabric)}</b>, {_escape(fabrics.named(fabric).what)}. "
    if any("coalescing" in p["params"] for p in points.points):
        over += "Coalescing is on where nothing else is said. "
    beside = [("Beside plain memory operations, interleaved", summary.share_rows(own))]
    text = _table(
        "summary" + suffix,
        f"Summary, {_escape(fabric)}",
        over + "Medians of program starts, each of which counts as one value; below each, its 95&nbsp;% interval and "
        "how many starts there were, or the range of fewer than 6. A ratio above 1 means that the first is better, "
        "whatever the unit.",
        own.labels,
        points.colours,
        [(None, summary.headline_rows(own)), *beside],
    )
    text += _table(
        "mini-apps" + suffix,
        f"Mini-apps, {_escape(fabric)}",
        over + "Seconds a run, by form, its answer checked; below each, the share of communication.",
        own.labels,
        points.colours,
        apps.rows(own),
    )
    text += ordering_chapter.section(points, fabric)
    theirs = points.among(lambda benchmark: benchmark == collectives.BENCHMARK)
    return text + _table(
        "collectives" + suffix,
        f"Collectives, {_escape(fabric)}",
        over + "Seconds an operation. The floor is the time in which the bytes that must be written on every PE can be "
        "copied, while all PEs copy at once: broadcast, reduction and scan one contribution; collect, fcollect and "
        "all-to-all one of every PE. All sizes are in the charts below.",
        theirs.labels,
        points.colours,
        collectives.rows(theirs),
    )


def _table(slug, title, about, labels, colours, groups):
    """A section with one table; groups are (heading or None, rows). Empty without rows."""
    groups = [(heading, rows) for heading, rows in groups if rows]
    if not groups:
        return ""
    head = "".join(
        f'<th class="number" scope="col"><span class="swatch" style="background:{colours[label]}"></span>'
        f"{_escape(label)}</th>"
        for label in labels
    )
    head += "".join(
        f'<th class="number" scope="col">{_escape(labels[0])} is better than {_escape(label)} by</th>'
        for label in labels[1:]
    )
    body = ""
    for heading, rows in groups:
        body += "<tbody>"
        if heading:
            wide = f'colspan="{len(labels) * 2}" scope="rowgroup"'
            body += f'<tr class="group"><th {wide}>{_escape(heading)}</th></tr>'
        body += "".join(_table_row(row) for row in rows) + "</tbody>"
    return (
        f'<section id="{slug}"><h2>{title}</h2><p>{about}</p><div class="scroll" tabindex="0" role="group" '
        f'aria-label="Table: {title}"><table><caption>{title}</caption>'
        f'<thead><tr><th scope="col">What</th>{head}</tr></thead>{body}</table></div></section>'
    )


def _table_row(row):
    note = ' <span class="tag">oversubscribed</span>' if row.oversubscribed else ""
    cells = "".join(_cell(cell) for cell in row.cells) + "".join(_ratio_cell(ratio) for ratio in row.ratios)
    return f'<tr><th scope="row">{_escape(row.what)}{note}</th>{cells}</tr>'


def _cell(cell):
    if cell is None:
        return '<td class="number none">not measured</td>'
    text, interval, point = cell
    bad = ' <span class="tag bad">invalid</span>' if point["valid"] is False else ""
    below = "".join(f"<small>{_escape(line)}</small>" for line in [*interval.splitlines(), how_sure(point)])
    return f'<td class="number"><b>{_escape(text)}</b>{bad}{below}</td>'


def _ratio_cell(ratio):
    if ratio is None:
        return '<td class="number none">–</td>'
    text = f"<b>{_escape(ratio.text)}</b><small>{_escape(ratio.interval)}</small>"
    return f'<td class="number ratio {ratio.says}">{text}</td>'


def _section(chart, fragment):
    return (
        f'<section id="{chart.slug}"><h2>{_escape(chart.title)}</h2><p>{_escape(chart.about)}</p>'
        f'<div class="chart" role="group" aria-label="Chart: {_escape(chart.title)}">{fragment}</div>'
        f"{chart_table.table(chart)}</section>"
    )
