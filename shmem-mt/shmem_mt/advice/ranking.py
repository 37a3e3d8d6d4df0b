"""Which setup of a question is best, by how much, and whether that can be told.

Setups are compared by pairs of program starts of one round. A setup is called best when no other one is better by more
than NEAR, as far as the intervals of these ratios reach; setups that were left behind with fewer starts than an
interval needs count as beaten where they were behind. All else is `cannot tell`.
"""

from dataclasses import dataclass
from typing import Any

from shmem_mt.advice.setups import sense
from shmem_mt.runner.results import ratio_of_results, starts_of, starts_of_ratio
from shmem_mt.statistics import FEWEST_STARTS

NEAR = 0.05  # what nobody should change a program for
BEST, CANNOT_TELL = "best", "cannot tell"

# What a user gets who thinks of nothing: a PE a core, the default context, and the first of these that was measured.
DEFAULT_SYNCS = ("quiet", "blocking", "last_word", "fence_flag", "barrier_all")
# What programs commonly do: the standard's operations, on the default context or one for each thread.
COMMON_CONTEXTS = ("default", "private")
COMMON_SYNCS = (*DEFAULT_SYNCS, "quiet_each", "thread_quiet", "quiet_barrier", "put_signal")


@dataclass(frozen=True)
class Times:
    """How many times better one setup is than another."""

    ratio: float
    low: float
    high: float
    starts: int  # pairs that this is made of

    @property
    def is_sure(self):
        """Whether low and high are an interval, and not the range of too few."""
        return self.starts >= FEWEST_STARTS

    @property
    def loss(self):
        """What the other one lacks of the better one, as (share, low, high)."""
        return tuple(max(0.0, 1 - 1 / value) for value in (self.ratio, self.low, self.high))


@dataclass
class Ranking:
    """The setups of one question."""

    results: dict[Any, dict]
    best: Any  # a Setup, or what stands in its place
    behind: dict[Any, Times]  # of each other setup, how many times better the best one is; the nearest first
    verdict: str
    why: str  # it cannot be told; empty where it can

    @property
    def near(self):
        """The other setups that are within NEAR of the best one."""
        return [setup for setup, times in self.behind.items() if times.ratio <= 1 + NEAR]

    @property
    def default(self):
        """What a user gets who thinks of nothing; None where it was not measured."""
        plain = [s for s in self._of_all_cores() if s.threads == 1 and s.context == "default" and not s.setting]
        for sync in DEFAULT_SYNCS:
            if found := [setup for setup in plain if setup.sync == sync]:
                return max(found, key=lambda setup: setup.level == "single")
        return None

    @property
    def worst_common(self):
        """The worst of what programs commonly do; None where none of that was measured."""
        every = self._of_all_cores()
        common = [s for s in every if s.context in COMMON_CONTEXTS and s.sync in COMMON_SYNCS and not s.setting]
        return max(common, key=lambda setup: self.times(setup).ratio, default=None)

    def _of_all_cores(self):
        """The setups with the most PEs x threads: nobody leaves cores idle by habit."""
        most = max(setup.pes * setup.threads for setup in self.results)
        return [setup for setup in self.results if setup.pes * setup.threads == most]

    def times(self, setup):
        """How many times better the best one is than that."""
        return Times(1.0, 1.0, 1.0, starts_of(self.results[setup])) if setup == self.best else self.behind[setup]


def times_better(one, other):
    """How many times better the first result is than the other, start by start where they share rounds."""
    above, below = (one, other) if sense({None: one}) > 0 else (other, one)
    ratio, low, high = ratio_of_results(above, below, True)
    return Times(ratio, low, high, starts_of_ratio(above, below, True))


def rank(results):
    """The ranking of {setup: result}, of which there is one at least."""
    direction = sense(results)
    enough = min(FEWEST_STARTS, max(map(starts_of, results.values())))
    contenders = [setup for setup, result in results.items() if starts_of(result) >= enough]
    best = min(contenders, key=lambda setup: (-direction * results[setup]["median"], setup.plainness))
    behind = {setup: times_better(results[best], results[setup]) for setup in results if setup != best}
    order = sorted(behind, key=lambda setup: (setup not in contenders, behind[setup].ratio, setup.plainness))
    behind = {setup: behind[setup] for setup in order}
    why = _why_unclear(results, best, behind)
    return Ranking(results, best, behind, CANNOT_TELL if why else BEST, why)


def _why_unclear(results, best, behind):
    """Why it cannot be told that no other setup is better by more than NEAR; empty where it can."""
    if not behind:
        return "only one setup was measured"
    starts = starts_of(results[best])
    if starts < FEWEST_STARTS:
        return f"{starts} start{'s' * (starts > 1)} each, and an interval needs {FEWEST_STARTS}"
    for setup, times in behind.items():
        if times.is_sure and times.low < 1 / (1 + NEAR):
            return f"{setup} may be up to {100 * (1 / times.low - 1):.0f} % better"
        if not times.is_sure and times.ratio < 1:
            return f"{setup} was not behind in {times.starts} start{'s' * (times.starts > 1)}"
    return ""
