"""The HTML page of a report: title with the machine's facts, the summary table, the charts. One file, no network. What
is said is made here, as data; the templates have the HTML."""

import os
import time
from collections import Counter

from markupsafe import Markup

from shmem_mt import __version__
from shmem_mt.advice import four_questions
from shmem_mt.catalogue import explain
from shmem_mt.catalogue.explanations import EXPLANATIONS
from shmem_mt.report import app_images, chart_table, dark, ordering_chapter, summary, vega
from shmem_mt.report.charts import apps, collectives
from shmem_mt.report.charts.model import Points
from shmem_mt.report.templating import render
from shmem_mt.runner.points import describe, how_sure
from shmem_mt.runner.results import load_commands, why_invalid
from shmem_mt.targets import fabrics, host_facts, machine

TITLE = "<title>SHMEM-MT: "  # every page has it in its first lines


def build(parts):
    """The whole page as text, of parts.Part."""
    points = Points([point for part in parts for point in part.points.points])
    return render(
        "page.html",
        title_begins=Markup(TITLE),
        library=Markup(vega.library().replace("</script", "<\\/script")),
        dark=dark.style(),
        title=_title(points),
        byline=" · ".join(dict.fromkeys(_byline(part.runs) for part in parts) | {time.strftime("%d %B %Y"): None}),
        parts=[_part(part) for part in parts],
        runs=[
            {"name": _name(d), "rows": _facts(part.points, d, contents)} for part in parts for d, contents in part.runs
        ],
        benchmarks=_benchmarks(points),
        method=method(points),
        points=len(points.points),
        version=__version__,
        how_sure=how_sure,
    )


def _part(part):
    """What the templates know of the part of one machine."""
    by_fabric = [tables(part.points.over(fabric), fabric, part.named) for fabric in part.points.fabrics()]
    charts = [_chart(chart) for chart in part.charts]
    cards = _cards(part.points)
    answers = _answers(part)
    images = app_images.programs(part.pictures, part.named)
    links = [(part.named("answers"), "How to use this machine")] * bool(answers)
    links += [(part.named("headline"), "What a program feels")] * bool(cards)
    links += [link for fabric in by_fabric for link in fabric["links"]]
    links += [(chart["slug"], chart["title"]) for chart in charts]
    links += [(program["slug"], program["title"]) for program in images]
    return {
        "slug": part.named("part"),
        "name": name_of(part),
        "byline": _byline(part.runs),
        "headline": part.named("headline"),
        "warnings": {"machine": _machine_warnings(part.runs), **_warnings(part.points)},
        "points": len(part.points.points),
        "answers": answers,
        "cards": cards,
        "fabrics": by_fabric,
        "charts": charts,
        "images": images,
        "links": links,
    }


def _answers(part):
    """The cards of the four questions; None where there are no points that could answer one. Of several implementations
    and fabrics the first stands in the card, and the others in its evidence."""
    cards = []
    for question in four_questions.QUESTIONS if part.replies else ():
        first, *others = (reply for reply in part.replies if reply["question"] == question)
        words = four_questions.WORDS[question]
        cards.append({"question": words, "first": first, "others": others, "several": bool(others)})
    return {"slug": part.named("answers"), "cards": cards} if cards else None


def name_of(part):
    """What the part of a machine is called: its runs."""
    return ", ".join(_name(directory) for directory, _ in part.runs)


def _benchmarks(points):
    """What those that there are points of do."""
    there = {point["benchmark"] for point in points.points}
    return [
        {"name": name, "words": told.words, "picture": "\n".join(explain.picture(name))}
        for name, told in EXPLANATIONS.items()
        if name in there
    ]


def _name(directory):
    return os.path.basename(os.path.abspath(directory))


def _title(points):
    return " and ".join(points.labels) if len(points.labels) < 3 else ", ".join(points.labels)


def _byline(machines):
    facts, hosts = machines[0][1].get("machine", {}), machines[0][1].get("hosts", [])
    facts = {**facts, **(hosts[0] if hosts else {})}
    words = [
        f"{len(hosts)} hosts" if hosts else None,
        facts.get("cpu"),
        f"{facts['cores']} cores" if facts.get("cores") else None,
        "virtual machine" if facts.get("virtual") else None,
        facts.get("os"),
    ]
    return " · ".join(w for w in words if w)


def _facts(points, directory, contents):
    """The rows of one run: (name, text)."""
    bound = ("Bound", bindings([point for point in points.points if point.get("run") == directory]))
    commands = [("Command", line) for line in load_commands(directory)]
    own, hosts = contents.get("machine", {}), contents.get("hosts", [])
    rows = [*commands, *_host_rows(hosts), *_machine_rows(own, bool(hosts)), bound, *_library_rows(contents)]
    return [(name, text) for name, text in rows if text not in (None, "", {})]


def bindings(points):
    """How the PEs of these points found themselves bound, and how many points each: such as ``1 CPU a PE (8 points)``.
    Nothing is said of what was simulated: nothing ran."""
    ran = [point for point in points if point["params"]["fabric"] != fabrics.SIMULATED.name]
    counts = Counter(point.get("binding") or "not recorded" for point in ran)
    told = [f"{binding} ({count} point{'s' * (count > 1)})" for binding, count in counts.most_common()]
    return "; ".join(told) or "nothing: simulated"


def method(points):
    """What holds for the points that there are, in sentences."""
    simulated = points.over(fabrics.SIMULATED.name).points
    ran = [point for point in points.points if point["params"]["fabric"] != fabrics.SIMULATED.name]
    said = []
    if any(point["benchmark"] != "startup" for point in ran):
        said.append(
            "What a benchmark moves or computes is compared with what it must be, in a pass of its own and where it "
            "is timed, unless the page says otherwise. The clock stops after quiet and, where data go to another PE, "
            "after that PE has seen them."
        )
    if any(point["params"]["op"] in _PLAIN for point in ran):
        said.append(
            "Plain stores, loads and copies are references: they call no library, and run in turns with what stands "
            "beside them."
        )
    if any(point["benchmark"] == "startup" for point in ran):
        said.append(
            "Start and end are those of whole program starts. They move nothing: what is checked is that every PE has "
            "told its times."
        )
    if simulated:
        said.append(
            "Simulated points are what a model of a network computes: no clock ran. They are valid when every message "
            "has arrived once, in the order that its rule keeps."
        )
    return [*said, "All rules are in shmem-mt/docs/method.md."]


_PLAIN = {"plain_store", "plain_load", "memcpy", "copy"}


def _host_rows(hosts):
    """What the hosts of PEs have in common, and in what they differ."""
    if not hosts:
        return []
    differing, names = host_facts.differing(hosts), [host["name"] for host in hosts]
    shown = ", ".join(names if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES - 1], f"... {names[-1]}"])
    rows = [("Hosts", f"{len(hosts)}: {shown}")]
    for fact in host_facts.COMPARED:
        said = host_facts.in_words(differing[fact]) if fact in differing else host_facts.text(fact, hosts[0].get(fact))
        rows.append((f"Hosts, {fact.replace('_bytes', '')}", ("differ: " if fact in differing else "") + said))
    return rows


_MOST_NAMES = 16


def _machine_rows(facts, is_beside=False):
    """`is_beside`: PEs ran on other hosts, too."""
    rows = _rows_of_facts(facts)
    return [(f"Driver's host, {name[0].lower() + name[1:]}", text) for name, text in rows] if is_beside else rows


def _rows_of_facts(facts):
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
    return [
        f"{_name(directory)}: {text}"
        for directory, contents in machines
        for text in machine.warnings(contents.get("machine", {})) + host_facts.warnings(contents.get("hosts", []))
    ]


def _warnings(points):
    """What is not as it should be, by what it is."""
    all_points = points.points
    invalid = [p for p in all_points if p["valid"] is False]
    bound = {p["binding"] for p in all_points if p.get("binding") and not p["params"].get("oversubscribed")}
    return {
        "invalid": [": ".join((p["label"], describe(p["benchmark"], p["params"]), why_invalid(p))) for p in invalid],
        "unchecked": sum(p["valid"] is None for p in all_points),
        "oversubscribed": sum(bool(p["params"].get("oversubscribed")) for p in all_points),
        "staggered": sum(bool(p.get("staggered")) for p in all_points),
        "bindings": sorted(bound) if len(bound) > 1 else [],
    }


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
    return f"{', '.join(interval.splitlines())}, {how_sure(point)}" + ", INVALID" * (point["valid"] is False)


def _cards(points):
    labels, rows = headline(points)
    return [
        {
            "what": row.what,
            "who": labels[0],
            "figure": row.cells[0][0],
            "sure": interval_words(row.cells[0]),
            "others": [
                {"who": label, "figure": cell[0], "ratio": ratio, "sure": interval_words(cell)}
                for label, cell, ratio in zip(labels[1:], row.cells[1:], row.ratios)
                if cell
            ],
        }
        for row in rows
    ]


def _one_sided(points):
    """The points of the libraries that have others than collectives."""
    own = points.libraries()
    return own.of(own.among(lambda benchmark: benchmark != collectives.BENCHMARK).labels)


def tables(points, fabric, named):
    """What there is of one fabric: the tables of the summary and of the mini-apps, order, the table of collectives, and
    links to them. `named` makes the name of a section its own."""
    own = _one_sided(points)
    theirs = points.among(lambda benchmark: benchmark == collectives.BENCHMARK)
    summary_of_all = _table(
        fabric,
        "Summary",
        "Coalescing is on where nothing else is said. "
        * any("coalescing" in p["params"] for p in points.points)
        + "Medians of program starts, each of which counts as one value; below each, its 95 % interval and how many "
        "starts there were, or the range of fewer than 6. A ratio above 1 means that the first is better, whatever the "
        "unit.",
        own,
        [
            (None, summary.headline_rows(own)),
            ("Beside plain memory operations, interleaved", summary.share_rows(own)),
            ("Beside bare UCX and MPI, in the same rounds", summary.reference_rows(own, points.references())),
        ],
    )
    mini_apps = _table(
        fabric,
        "Mini-apps",
        "Seconds a run, by form, its answer checked; below each, the share of communication.",
        own,
        apps.rows(own),
    )
    of_collectives = _table(
        fabric,
        "Collectives",
        "Seconds an operation. The floor is the time in which the bytes that must be written on every PE can be "
        "copied, while all PEs copy at once: broadcast, reduction and scan one contribution; collect, fcollect and "
        "all-to-all one of every PE. All sizes are in the charts below.",
        theirs,
        collectives.rows(theirs),
    )
    order = ordering_chapter.section(points, fabric, named)
    for table in (*summary_of_all, *mini_apps, *of_collectives):
        table["slug"] = named(table["slug"])
    first = [*summary_of_all, *mini_apps]
    links = [(table["slug"], table["title"]) for table in first]
    links += [(named(ordering_chapter.slug(fabric)), f"Order, {fabric}")] * bool(order)
    links += [(table["slug"], table["title"]) for table in of_collectives]
    return {"first": first, "ordering": order, "last": of_collectives, "links": links}


def _table(fabric, title, about, points, groups):
    """A table with implementations side by side; groups are (heading or None, rows). None without rows: []."""
    groups = [(heading, rows) for heading, rows in groups if rows]
    table = {
        "slug": title.lower() + fabrics.suffix(fabric),
        "title": f"{title}, {fabric}",
        "fabric": {"name": fabric, "what": fabrics.named(fabric).what},
        "about": about,
        "labels": points.labels,
        "colours": points.colours,
        "groups": groups,
        "rows": sum(len(rows) for _, rows in groups),
    }
    return [table] if groups else []


def _chart(chart):
    return {
        "slug": chart.slug,
        "title": chart.title,
        "about": chart.about,
        "columns": vega.columns(chart),
        "panels": vega.panels(chart),
        "legend": [_entry(chart, series) for series in vega.legend(chart)],
        "table": chart_table.table(chart),
    }


def _entry(chart, series):
    """Of the legend: a limit is a line without a symbol, whatever the chart has."""
    limit = any(one.name == series.name for one in chart.limits)
    lines = limit or chart.kind == "lines"
    look = vega.look(chart, series)
    dash = vega.DASHES[series.dash] if limit else look["dash"]
    return {"name": series.name, "look": {**look, "dash": dash}, "line": lines, "symbol": not limit}
