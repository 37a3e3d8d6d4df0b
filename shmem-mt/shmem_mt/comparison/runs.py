"""The sides of a comparison: which points both have, and whether machine, compiler and settings are the same."""

import json
import math
import statistics
from dataclasses import dataclass, field

from shmem_mt import units
from shmem_mt.comparison.changes import Pair
from shmem_mt.errors import UserError
from shmem_mt.runner.results import MACHINE, load_machine, load_results, numbered_rounds, unlike
from shmem_mt.statistics import start_values

FARTHER = 1.5  # times as long a hand-over from core to core, from which on the cores stand elsewhere
SETTINGS = ("profile", "samples_per_round", "sample_ms", "oversubscribed_sample_ms")


@dataclass
class Run:
    """One run folder."""

    directory: str
    points: dict  # key -> point; the key has no label where labels were renamed
    machine: dict  # what machine.json says

    def labels(self):
        return {point["label"] for point in self.points.values()}


@dataclass
class Row:
    """A point of a comparison: in both sides (with a Pair), or in one of them."""

    point: dict  # of the second side where it has one
    verdict: str = ""  # what is said without a test; empty: what the pair says
    pair: Pair | None = None
    medians: list = field(default_factory=list)  # of both sides

    def says(self):
        return self.verdict or (self.pair.verdict if self.pair else "cannot tell")


def load(directories):
    """The runs of a side."""
    return [_loaded(directory) for directory in directories]


def _loaded(directory):
    points = load_results(directory)
    return Run(directory, {_key(point, point["label"]): point for point in points}, load_machine(directory))


def _key(point, label):
    return json.dumps([label, point["benchmark"], point["metric"], point["params"]], sort_keys=True)


def rename(first, second):
    """Where the sides have no label in common and one implementation each, those are compared. Returns the names
    {of second: of first}."""
    labels = [set().union(*(run.labels() for run in side)) for side in (first, second)]
    if labels[0] & labels[1]:
        return {}
    if len(labels[0]) != 1 or len(labels[1]) != 1:
        told = " and ".join(", ".join(sorted(of_side)) for of_side in labels)
        raise UserError(f"the runs have no implementation in common ({told})")
    names = {labels[1].pop(): labels[0].pop()}
    for run in second:
        run.points = {_key(point, names[point["label"]]): point for point in run.points.values()}
    return names


def rows(first, second, only):
    """A Row for each point of either side, in the order of the runs."""
    keys = dict.fromkeys(key for run in (*first, *second) for key in run.points)
    both = [(_having(first, key), _having(second, key)) for key in keys]
    found = [_row(*sides) for sides in both if not only or _any(*sides)["benchmark"] in only]
    if not any(row.medians for row in found):
        raise UserError("the runs have no point in common")
    return found


def _having(runs, key):
    """The number of a run of that side -> its point."""
    return {number: run.points[key] for number, run in enumerate(runs) if key in run.points}


def _any(first, second):
    return next(iter((second or first).values()))


def _row(first, second):
    point = _any(first, second)
    if not first or not second:
        return Row(point, "new" if second else "missing")
    good = {number: one for number, one in first.items() if one["valid"] is not False}
    row = Row(point, medians=[_median((good or first).values()), _median(second.values())])
    if any(one["valid"] is False for one in second.values()):
        row.verdict = "invalid"
    elif not good:
        row.verdict = "invalid before"
    elif any(one["valid"] is None for one in second.values()) and all(one["valid"] for one in good.values()):
        row.verdict = "unchecked"
    elif not units.sense(point["metric"]):
        row.verdict = "not judged"
    else:
        row.pair = _pair(point, good, second)
    return row


def _median(points):
    values = sorted(point["median"] for point in points)
    return values[len(values) // 2]


def _pair(point, first, second):
    sign = units.sense(point["metric"])
    before, after = (
        {number: _values(one, sign) for number, one in side.items()} for side in (first, second)
    )
    if None in before.values() or None in after.values():
        return None
    return Pair(point, point["benchmark"], before, after)


def _values(point, sign):
    """{round: value} as changes.py wants them; None where a value has no logarithm."""
    rounds = numbered_rounds(point)
    values = start_values(rounds.values())
    if min(values) <= 0:
        return None
    return {number: sign * math.log(value) for number, value in zip(rounds, values)}


def differences(first, second, names, only=None):
    """Why the sides, or the benchmarks `only` of them, cannot be compared, as texts."""
    told, runs = [], [*first, *second]
    for run in runs:
        if not run.machine.get("machine"):
            told.append(f"{run.directory} does not say on which machine it was measured")
    one = runs[0].machine
    for run in runs[1:]:
        other = run.machine
        told += unlike("machine", MACHINE, one.get("machine", {}), other.get("machine", {}))
        told += unlike("settings", SETTINGS, one.get("settings", {}), other.get("settings", {}))
        told += unlike("suite", ("shmem_mt", "programs"), one, other)
        compilers = _compilers(one, {})
        theirs = _compilers(other, names if run in second else {})
        told += unlike("compiler", sorted(set(compilers) & set(theirs)), compilers, theirs)
        told += _bound_otherwise(runs[0], run, only)
    return list(dict.fromkeys(told))


def disturbed(first, second, others):
    """Why a change may be the machine's, as texts: other work beside a run that took more than that share of the CPUs'
    time, or cores that stood elsewhere."""
    told = []
    for run in (*first, *second):
        facts = run.machine.get("machine", {})
        share = (facts.get("others_share") or 0) + (facts.get("steal_share") or 0)
        if share > others:
            told.append(f"beside {run.directory} other work took {100 * share:.0f} % of the CPUs' time")
    told += _cores_elsewhere([*first, *second])
    return told


def _cores_elsewhere(runs):
    """Whether the cores stood nearer to each other beside one run than beside another, as a text: on a virtual machine
    the host moves them."""
    known = [(run.machine.get("machine", {}).get("hand_over_s"), run.directory) for run in runs]
    known = [(statistics.median(seconds), directory) for seconds, directory in known if seconds]
    if known and max(known)[0] > FARTHER * min(known)[0]:
        ends = min(known), max(known)
        texts = [f"{units.quantity(seconds, 's')} beside {directory}" for seconds, directory in ends]
        yield f"a line went from core to core in {' and in '.join(texts)}"


def _bound_otherwise(one, other, only):
    """Of points that both runs have, where PEs were bound; a point that does not say so is not compared."""
    found: dict[tuple, int] = {}
    for key in one.points.keys() & other.points.keys():
        if not only or one.points[key]["benchmark"] in only:
            both = one.points[key].get("binding"), other.points[key].get("binding")
            found[both] = found.get(both, 0) + 1
    for (before, after), count in sorted(found.items(), key=str):
        if before and after and before != after:
            yield f"binding of {count} point{'s' * (count > 1)}: {before} and {after}"


def _compilers(machine, names):
    found = machine.get("implementations", [])
    return {names.get(one.get("label"), one.get("label")): one.get("compiler") for one in found}

