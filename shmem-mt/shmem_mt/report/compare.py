"""`shmem-mt compare`: the same points of two runs, side by side, with the interval of their ratio."""

import json

from rich.console import Console
from rich.table import Table

from shmem_mt import units
from shmem_mt.errors import UserError
from shmem_mt.runner.points import describe
from shmem_mt.runner.results import load_results, rounds_of
from shmem_mt.statistics import ratio_interval

MARGIN = 0.02  # a change smaller than this is not called better or worse, however sure it is


def verdict(metric, low, high, margin=MARGIN):
    """What the interval of (second / first) says: better, worse, no different, or cannot tell."""
    if metric in units.LOWER_IS_BETTER:
        low, high = 1 / high, 1 / low
    if low > 1 + margin:
        return "better"
    if high < 1 - margin:
        return "worse"
    if low >= 1 - margin and high <= 1 + margin:
        return "no different"
    return "cannot tell"


def pairs(first, second):
    """(point of first, its twin in second) for all points that both runs have.

    Labels pair with equal labels; when they have none in common and each run has one implementation, those two pair.
    """
    labels_first, labels_second = {p["label"] for p in first}, {p["label"] for p in second}
    rename = {}
    if not labels_first & labels_second:
        if len(labels_first) != 1 or len(labels_second) != 1:
            raise UserError(
                f"the runs have no implementation in common ({', '.join(sorted(labels_first))} and "
                f"{', '.join(sorted(labels_second))})"
            )
        rename = {labels_second.copy().pop(): labels_first.copy().pop()}
    twins = {_key(p, rename.get(p["label"], p["label"])): p for p in second}
    found = [(p, twins[_key(p, p["label"])]) for p in first if _key(p, p["label"]) in twins]
    if not found:
        raise UserError("the runs have no point in common")
    return found


def _key(point, label):
    return json.dumps([label, point["benchmark"], point["metric"], point["params"]], sort_keys=True)


def compare(options):
    """Prints the table. Returns 0, or 1 when anything became worse or invalid."""
    first, second = (load_results(directory) for directory in options.runs)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("point", "metric", "first", "second", "second / first", "verdict"):
        table.add_column(name, justify="left" if name in ("point", "metric", "verdict") else "right")
    counts: dict[str, int] = {}
    many = len({p["label"] for p in first}) > 1
    for a, b in pairs(first, second):
        says, ratio = _judge(a, b, options.margin)
        counts[says] = counts.get(says, 0) + 1
        text = describe(a["benchmark"], a["params"])
        style = {"better": "green", "worse": "red", "invalid": "bold red"}.get(says)
        table.add_row(
            f"{a['label']}: {text}" if many else text,
            a["metric"],
            units.quantity(a["median"], a["unit"]),
            units.quantity(b["median"], b["unit"]),
            ratio,
            says,
            style=style,
        )
    console = Console(width=None if Console().is_terminal else 160)
    console.print(table)
    console.print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())), highlight=False)
    return 1 if counts.get("worse") or counts.get("invalid") else 0


def _judge(a, b, margin):
    if a["valid"] is False or b["valid"] is False:
        return "invalid", ""
    if min(a["samples"]) <= 0 or min(b["samples"]) <= 0:
        return "cannot tell", ""
    ratio, low, high = ratio_interval(rounds_of(b), rounds_of(a), paired=False)
    return verdict(a["metric"], low, high, margin), f"{ratio:.3g} [{low:.3g}, {high:.3g}]"
