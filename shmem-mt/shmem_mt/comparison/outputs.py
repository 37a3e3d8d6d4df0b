"""A comparison as a table on the terminal, as JSON, Markdown and JUnit's XML."""

import json
import math
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from shmem_mt import units
from shmem_mt.errors import UserError
from shmem_mt.runner.points import describe

COLUMNS = ("point", "metric", "first", "second", "starts", "second is better by", "would see", "verdict")
_STYLES = {"better": "green", "worse": "red", "invalid": "bold red", "missing": "red", "new": "yellow"}
_FAILURES = ("worse", "invalid", "missing", "new", "unchecked")


def write(found, status, options):
    """Prints the table and what it says; writes the files that the options name."""
    console = Console(width=None if Console().is_terminal else 180, markup=False)  # labels are no markup
    table = Table(box=None, header_style="bold", pad_edge=False)
    for index, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if index in (0, 1, 7) else "right")
    for cells in _lines(found):
        table.add_row(*cells, style=_STYLES.get(cells[-1]))
    console.print(table)
    for line in _last_lines(found, status):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    for path, text in (
        (options.json, lambda: json.dumps(as_json(found, status), indent=2) + "\n"),
        (options.markdown, lambda: _as_markdown(found, status)),
        (options.junit, lambda: _as_junit(found, options.fail_on)),
    ):
        if path:
            _write(path, text())


def _write(path, text):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error


def _name(found, row):
    text = describe(row.point["benchmark"], row.point["params"])
    several = len({row.point["label"] for row in found.rows}) > 1
    return f"{row.point['label']}: {text}" if several else text


def _lines(found):
    """The rows of the table, as texts: the points, then the geometric means."""
    for row in found.rows:
        medians = [units.quantity(median, row.point["unit"]) for median in row.medians] or ["", ""]
        yield (_name(found, row), row.point["metric"], *medians, *_told(row.pair), row.says())
    for mean in found.means:
        yield (f"{mean.group}, geometric mean", "", "", "", *_told(mean), mean.verdict)


def _told(pair):
    """How many starts, which change, and which would have been seen."""
    if pair is None:
        return "", "", ""
    starts = " and ".join(map(str, dict.fromkeys(pair.starts())))
    if pair.seen is None:
        return starts, "", ""
    change, low, high = (units.significant(math.exp(value)) for value in (pair.change, pair.low, pair.high))
    return starts, f"{change}× [{low}, {high}]", f"{100 * pair.seen:.2g} %" if pair.seen < 10 else ""


def _last_lines(found, status):
    yield ", ".join(f"{count} {name}" for name, count in sorted(found.counts().items()))
    yield from (f"not comparable: {text}" for text in found.unlike)
    for text in found.disturbed:
        yield f"cannot tell: {text}"
    yield found.power()
    yield f"exit status {status}" + "".join(f", {name}" for name in found.troubles())


def as_json(found, status):
    """All that is said, for programs."""
    return {
        "status": status,
        "troubles": found.troubles(),
        "not_comparable": found.unlike,
        "disturbed": found.disturbed,
        "margin": found.margin,
        "counts": found.counts(),
        "power": found.power(),
        "points": [
            {
                **{name: row.point[name] for name in ("label", "benchmark", "metric", "unit", "params")},
                "medians": row.medians,
                "verdict": row.says(),
                **_numbers(row.pair),
            }
            for row in found.rows
        ],
        "geometric_means": [
            {"benchmark": mean.group, "verdict": mean.verdict, **_numbers(mean)} for mean in found.means
        ],
    }


def _numbers(pair):
    """A change above 1 is better, whatever the metric."""
    if pair is None:
        return {}
    if pair.seen is None:
        return {"starts": pair.starts()}
    change, low, high = (math.exp(value) for value in (pair.change, pair.low, pair.high))
    told = {"starts": pair.starts(), "better_by": change, "interval": [low, high]}
    return {**told, "q_worse": pair.q_worse, "would_see": pair.seen}


def _as_markdown(found, status):
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in _lines(found)]
    return "\n".join([*lines, "", *(f"- {line}" for line in _last_lines(found, status))]) + "\n"


def _as_junit(found, fail_on):
    """A case for each point and geometric mean, and one for each trouble that is of no single point."""
    cases = [(row.point["benchmark"], f"{_name(found, row)}, {row.point['metric']}", row) for row in found.rows]
    suite = ElementTree.Element("testsuite", name="shmem-mt compare")
    whole = (
        ("machine", "machine, compiler and settings are the same", "; ".join(found.unlike)),
        ("unclear", "enough points can be told", found.power()),
    )
    failures = 0
    for trouble, name, text in whole:
        case = ElementTree.SubElement(suite, "testcase", classname="shmem-mt.compare", name=name)
        if trouble in found.troubles() and trouble in fail_on:
            failures += 1
            ElementTree.SubElement(case, "failure", message=trouble).text = text
    for cells, (group, name, says) in zip(
        _lines(found),
        [(group, name, row.says()) for group, name, row in cases]
        + [(mean.group, "geometric mean", mean.verdict) for mean in found.means],
    ):
        case = ElementTree.SubElement(suite, "testcase", classname=f"shmem-mt.{group}", name=name)
        text = ", ".join(filter(None, cells[2:]))
        if says in _FAILURES:
            failures += 1
            ElementTree.SubElement(case, "failure", message=says).text = text
        elif says not in ("better", "no different"):
            ElementTree.SubElement(case, "skipped", message=says).text = text
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(failures))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
