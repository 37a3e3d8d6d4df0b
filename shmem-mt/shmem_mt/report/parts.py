"""A page has a part for each machine: runs of one machine stand side by side, those of two are never compared."""

import functools
from dataclasses import dataclass

from shmem_mt.advice import four_questions
from shmem_mt.report.charts.model import Points
from shmem_mt.runner.results import MACHINE, unlike


@dataclass
class Part:
    """What was measured on one machine."""

    suffix: str  # of the names of its sections; empty for the first machine
    runs: list  # (run folder, machine.json)
    points: Points
    charts: list
    pictures: list

    @functools.cached_property
    def replies(self):
        """The answers to the four questions, as advice.model.Reply."""
        return four_questions.replies(self.points.points)

    def named(self, slug):
        return slug + self.suffix


def by_machine(runs):
    """The runs (folder, points, machine.json) in groups of one machine each, in order."""
    groups: list[list] = []
    for run in runs:
        facts = run[2].get("machine", {})
        alike = (g for g in groups if not any(True for _ in unlike("", MACHINE, g[0][2].get("machine", {}), facts)))
        found = next(alike, None)
        if found is None:
            groups.append([run])
        else:
            found.append(run)
    return groups
