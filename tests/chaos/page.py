"""The page with the record: a table of all programs, from its parts."""

from __future__ import annotations

from catalogue import LEFT_OUT
from parts import Part

HEAD = """# Chaos: the record

Correct programs under chaos ([glossary](glossary.md)): each job has a seed of its own, and none may notice it. The
tables are written by `make chaos-record`, of `tests/chaos/record.jsonl`, to which each of these builds brought seeds:

| commit | seeds | programs | jobs |
|---|---|---|---|
{commits}

{jobs} jobs with chaos of {programs} programs, each with {least} seeds or more: {verdict}. A job with chaos takes
{ratio} times as long as one without, the slowest program {worst} times ({slowest}).

`node`: all PEs on one node; `nodes`: on several, which talk over TCP. The seeds are dealt to the numbers of PEs, and to
the settings with which the tests run a program. Seconds are means of one job, its start and end included, on machines
that did other work beside it; the ratios, of that time and of the time that the job's processes ran, are those of the
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


class Row:
    """All parts of one program."""

    def __init__(self, key: str, parts: list[Part]):
        self.key = key
        self.failures = [failure for part in parts for failure in part.failures]
        self.pes = sorted({pes for part in parts for pes in part.pes})
        self.seeds = sum(part.seeds for part in parts)
        self.seconds = sum(part.chaos_seconds for part in parts) / self.seeds
        self.normal_seconds = sum(part.normal[0] for part in parts) / sum(part.compared for part in parts)
        self.ratio, self.cpu_ratio = (sum(part.chaos[i] for part in parts) /
                                      max(sum(part.normal[i] for part in parts), 1e-4) for i in range(2))

    def line(self) -> str:
        name, _, place = self.key.rpartition(" ")
        return (f"| {name} | {place} | {', '.join(map(str, self.pes))} | {self.seeds:,} | {len(self.failures)} | "
                f"{self.normal_seconds:.2f} | {self.seconds:.2f} | {self.ratio:.1f} | {self.cpu_ratio:.1f} |")


def rows_of(parts: list[Part]) -> list[Row]:
    """Rows in the order in which their programs first ran; a program without jobs of both kinds has none."""
    keys = dict.fromkeys(part.key for part in parts)
    of = {key: [part for part in parts if part.key == key] for key in keys}
    return [Row(key, listed) for key, listed in of.items() if any(part.compared for part in listed)]


def commits_of(parts: list[Part]) -> str:
    """A line for each commit: its seeds and jobs."""
    lines = []
    for commit in dict.fromkeys(part.commit for part in parts):
        own = [part for part in parts if part.commit == commit]
        lines.append(f"| {commit} | {min(part.first for part in own)} to {max(part.last for part in own)} | "
                     f"{len({part.key for part in own})} | {sum(part.seeds for part in own):,} |")
    return "\n".join(lines)


def page(parts: list[Part]) -> str:
    rows = rows_of(parts)
    jobs, failed = sum(row.seeds for row in rows), sum(len(row.failures) for row in rows)
    slowest = max(rows, key=lambda row: row.ratio)
    ratios = sorted(row.ratio for row in rows)
    verdict = "none has failed" if not failed else f"{failed} have failed"
    text = HEAD.format(jobs=f"{jobs:,}", programs=len(rows), least=f"{min(row.seeds for row in rows):,}",
                       verdict=verdict, ratio=f"{ratios[len(ratios) // 2]:.1f}", worst=f"{slowest.ratio:.1f}",
                       slowest=slowest.key, commits=commits_of(parts))
    text += "\n".join(row.line() for row in rows) + "\n"
    if failed:
        text += "\n## Failures\n" + "".join(f"- {row.key}, seed {each['seed']}, {each['pes']} PEs: {each['failure']}\n"
                                            for row in rows for each in row.failures)
    return text + TAIL.format(rows="\n".join(f"| {name} | {why} |" for name, why in LEFT_OUT.items()))
