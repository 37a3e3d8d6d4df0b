"""The gate: judges two sides of runs, and says with its exit status whether the second is worse.

| status | says |
|---|---|
| 0 | no point is worse |
| 1 | a point, or the geometric mean of a benchmark, is worse; or a point has become invalid |
| 3 | points are missing, new, or no longer checked |
| 4 | machine, compiler or settings differ: the figures say nothing of the library |
| 5 | too many points cannot be told: the runs were too short or the machine too busy |

The first of 4, 1, 3, 5 that holds counts; --fail-on names those that may count.
"""

from dataclasses import dataclass, field

import numpy

from shmem_mt.comparison import changes, outputs, runs
from shmem_mt.errors import UserError

STATUSES = {"machine": 4, "worse": 1, "points": 3, "unclear": 5}  # in the order in which they count
UNCLEAR = ("cannot tell", "too few starts", "invalid before")


@dataclass
class Comparison:
    """All that is said of two sides."""

    rows: list
    means: list  # Pairs of geometric means
    unlike: list  # texts
    margin: float
    unclear_share: float  # from which on the runs cannot tell
    disturbed: list = field(default_factory=list)  # texts: why no change is called

    def counts(self):
        found: dict[str, int] = {}
        for row in self.rows:
            found[row.says()] = found.get(row.says(), 0) + 1
        return found

    def troubles(self):
        """The names of STATUSES that hold, in their order."""
        counts = self.counts()
        worse = counts.get("worse", 0) + counts.get("invalid", 0)
        worse += sum(mean.verdict == "worse" for mean in self.means)
        judged = len(self.rows) - counts.get("not judged", 0)
        told = {
            "machine": bool(self.unlike),
            "worse": worse > 0,
            "points": any(counts.get(word) for word in ("missing", "new", "unchecked")),
            "unclear": sum(counts.get(word, 0) for word in UNCLEAR) > self.unclear_share * judged,
        }
        return [name for name in STATUSES if told[name]]

    def power(self):
        """What these runs could have seen, in words."""
        pairs = [row.pair for row in self.rows if row.pair and row.pair.seen is not None]
        if not pairs:
            return f"no point has the {changes.FEWEST_STARTS} starts in both sides that a test needs"
        seen = float(numpy.median([pair.seen for pair in pairs]))
        tests = len(pairs) + sum(mean.seen is not None for mean in self.means)
        starts = int(numpy.median([min(pair.starts()) for pair in pairs]))
        text = f"half of the points could have shown a change of {_percent(seen)}, with {starts} starts a side"
        if seen <= 0.1:
            return text
        factors = [pair.is_seen_with(0.1, tests, self.margin) for pair in pairs]
        factor = float(numpy.median([factor or numpy.inf for factor in factors]))
        if not numpy.isfinite(factor):
            return text + "; more starts would not show 10 %, for runs differ by more: give several (--baseline A1,A2)"
        return text + f"; 10 % needs {int(numpy.ceil(factor * starts))} starts a side"


def _percent(share):
    return f"{100 * share:.2g} %" if share < 10 else "more than 1000 %"


def compare(options):
    """Prints the comparison and writes what else is asked for. Returns the exit status."""
    first, second = (runs.load(side) for side in _sides(options))
    names = runs.rename(first, second)
    unlike = runs.differences(first, second, names, options.only)
    rows = runs.rows(first, second, options.only)
    disturbed = runs.disturbed(first, second, options.others)
    means = changes.judge([row.pair for row in rows if row.pair], options.margin, not disturbed)
    found = Comparison(rows, means, unlike, options.margin, options.unclear, disturbed)
    failing = [name for name in found.troubles() if name in options.fail_on]
    status = STATUSES[failing[0]] if failing else 0
    outputs.write(found, status, options)
    return status


def _sides(options):
    given = ([options.baseline] if options.baseline else []) + options.runs
    if len(given) != 2:
        raise UserError("compare wants two sides: RUN RUN, or --baseline RUN,... RUN")
    sides = [[name for name in side.split(",") if name] for side in given]
    for side in sides:
        if not side or len(set(side)) != len(side):
            raise UserError(f"a side is one run folder or several different ones, not {','.join(side)!r}")
    return sides
