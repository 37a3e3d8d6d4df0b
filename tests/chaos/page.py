"""The page with the record: a table of all programs, from the outcomes of their jobs."""

from __future__ import annotations

from collections.abc import Callable

from catalogue import LEFT_OUT
from jobs import Outcome

HEAD = """# Chaos: the record

Correct programs under chaos ([glossary](glossary.md)): each job has a seed of its own, and none may notice it. The
table is written by `tests/chaos/record.py`, of the jobs that `make test-chaos CHAOS_SEEDS={seeds}` runs.

{jobs} jobs with chaos of {programs} programs, the seeds {first} to {last}: {verdict}. A job with chaos takes {ratio}
times as long as one without, the slowest program {worst} times ({slowest}).

`node`: all PEs on one node; `nodes`: on several, which talk over TCP. The seeds are dealt to the numbers of PEs, and to
the settings with which the tests run a program. Seconds are means of one job, its start and end included, while as many
jobs ran as there are cores; the ratios, of that time and of the time that the job's processes ran, are those of the
seeds that ran both ways. Chaos may pause a program for 50 ms, and as long as it computes, which counts where a job is
short.

| program | place | PEs | seeds | failures | s normal | s chaos | ratio | CPU ratio |
|---|---|---|---|---|---|---|---|---|
"""
TAIL = """
## Left out
Each conformance program whose tests run one job is in the table, in one way to call, but for these:

| program | why |
|---|---|
{rows}

So are the tests with `HEDDLE_CHECK` (chaos checks all runs), with emulated instructions, and with more than 8 PEs.
"""


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


class Row:
    def __init__(self, key: str, outcomes: list[Outcome]):
        self.key = key
        self.chaos = {each.seed: each for each in outcomes if each.chaos}
        self.normal = {each.seed: each for each in outcomes if not each.chaos}
        self.failures = [each for each in self.chaos.values() if each.failure]
        self.pes = sorted({each.pes for each in self.chaos.values()})
        self.both = self.chaos.keys() & self.normal.keys()

    @property
    def ratio(self) -> float:
        return self._ratio(lambda each: each.seconds)

    @property
    def cpu_ratio(self) -> float:
        return self._ratio(lambda each: each.cpu_seconds)

    def _ratio(self, of: Callable[[Outcome], float]) -> float:
        normal, chaos = (sum(of(kind[seed]) for seed in self.both) for kind in (self.normal, self.chaos))
        return chaos / max(normal, 1e-4)

    def line(self) -> str:
        name, _, place = self.key.rpartition(" ")
        normal, chaos = ([each.seconds for each in kind.values()] for kind in (self.normal, self.chaos))
        return (f"| {name} | {place} | {', '.join(map(str, self.pes))} | {len(self.chaos)} | {len(self.failures)} | "
                f"{mean(normal):.2f} | {mean(chaos):.2f} | {self.ratio:.1f} | {self.cpu_ratio:.1f} |")


def rows_of(outcomes: list[Outcome]) -> list[Row]:
    """Rows in the order in which their programs first ran; a program without jobs of both kinds has none."""
    keys = dict.fromkeys(each.key for each in outcomes)
    rows = [Row(key, [each for each in outcomes if each.key == key]) for key in keys]
    return [row for row in rows if row.both]


def page(outcomes: list[Outcome]) -> str:
    rows = rows_of(outcomes)
    seeds = [seed for row in rows for seed in row.chaos]
    failed = [outcome for row in rows for outcome in row.failures]
    slowest = max(rows, key=lambda row: row.ratio)
    ratios = sorted(row.ratio for row in rows)
    verdict = "none has failed" if not failed else f"{len(failed)} have failed"
    text = HEAD.format(seeds=max(len(row.chaos) for row in rows), jobs=f"{len(seeds):,}", programs=len(rows),
                       first=min(seeds), last=max(seeds), verdict=verdict, ratio=f"{ratios[len(ratios) // 2]:.1f}",
                       worst=f"{slowest.ratio:.1f}", slowest=slowest.key)
    text += "\n".join(row.line() for row in rows) + "\n"
    if failed:
        text += "\n## Failures\n" + "".join(f"- {each.key}, seed {each.seed}, {each.pes} PEs: {each.failure}\n"
                                            for each in failed)
    return text + TAIL.format(rows="\n".join(f"| {name} | {why} |" for name, why in LEFT_OUT.items()))
