"""Which setups of a question get further starts: successive halving (Karnin, Koren, Somekh 2013), then intervals.

Every setup gets one start. One with n starts, up to HALVINGS, gets another where it is among the best N / 2^n of all N.
Those that come through get starts until none may be better than the best by more than ranking.NEAR, as far as intervals
reach, or MOST_ROUNDS. What is wanted follows from the results alone, so a race that was cut off goes on.
"""

import math

import numpy

from shmem_mt.advice.ranking import BEST, NEAR, rank, times_better
from shmem_mt.advice.setups import sense
from shmem_mt.runner.results import numbered_rounds, starts_of
from shmem_mt.statistics import start_values

HALVINGS = 3
FEWEST_LEFT = 3  # no halving leaves fewer
MOST_ROUNDS = 20  # as many starts as a run gives to what it measures (catalogue/profiles.py)
UNLUCKY = 0.25  # behind by less than this share, one start may have been unlucky


def in_order(results):
    """The setups, the best first, by the starts that each has in common with the one that has most."""
    direction = sense(results)
    values = {setup: dict(zip(numbered_rounds(r), start_values(numbered_rounds(r).values())))
              for setup, r in results.items()}  # fmt: skip
    most = max(results, key=lambda setup: (starts_of(results[setup]), direction * results[setup]["median"]))

    def score(setup):
        common = [number for number in values[setup] if number in values[most]]
        if not common:
            return direction * results[setup]["median"] / results[most]["median"]
        return direction * float(numpy.median([values[setup][n] / values[most][n] for n in common]))

    return sorted(results, key=lambda setup: (-score(setup), setup.plainness))


def wanted(results):
    """The setups of {setup: result} that need another start; none where the best is known."""
    ranking = rank(results)
    if len(results) < 2 or ranking.verdict == BEST:
        return []
    has_many = starts_of(results[ranking.best]) > HALVINGS
    order, needed = in_order(results), []
    for place, setup in enumerate(order):
        starts, times = starts_of(results[setup]), ranking.times(setup)
        if starts <= HALVINGS:
            is_ahead = has_many and times.ratio < 1
            goes_on = is_ahead or place < max(FEWEST_LEFT, math.ceil(len(order) / 2**starts))
        else:
            goes_on = starts < MOST_ROUNDS and (setup == ranking.best or not _is_beaten(times))
        needed += [setup] * goes_on
    return needed


def _is_beaten(times):
    """Whether an interval shows that the other setup is no more than NEAR better."""
    return times.is_sure and times.low >= 1 / (1 + NEAR)


def second_looks(results):
    """The setups that one start alone has shown to be behind, by little enough for that start to have been unlucky."""
    if len(results) < 2:
        return []
    best = in_order(results)[0]
    single = [setup for setup, result in results.items() if starts_of(result) == 1 and setup != best]
    return [setup for setup in single if times_better(results[best], results[setup]).ratio < 1 + UNLUCKY]


def race(questions, measure, looks=(wanted, second_looks, wanted)):
    """Has everything measured that the looks want, one after the other. `questions()` returns {question: {setup:
    result}} as it now is; `measure({question: [setup]})` gives each of these one more start, or returns False where
    there is no time, and None where it cannot: then the next look is taken."""
    for next_ones in looks:
        done: set = set()  # nothing comes to them any more
        while needed := _needed(questions(), next_ones, done):
            is_done = measure(needed)
            if is_done is None:
                break
            if not is_done:
                return


def _needed(questions, next_ones, done):
    needed = {question: next_ones(results) for question, results in questions.items() if question not in done}
    done.update(question for question, setups in needed.items() if not setups)
    return {question: setups for question, setups in needed.items() if setups}
