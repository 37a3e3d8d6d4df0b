"""The statistics of a comparison against simulated machines, on which it is known what changed."""

import numpy
import pytest
from shmem_mt.comparison.changes import Pair, judge

POINTS, BENCHMARKS, SAMPLES = 80, 4, 8
COMPARISONS = 100
WITHIN = 0.08  # between samples of a start


def run_of(random, means, deviations, starts, noise):
    """One invocation: {round: value} a point. Deviations are between starts; `noise` says what else varies."""
    values = means[:, None] + random.normal(0, 1, (POINTS, starts)) * deviations[:, None]
    values += numpy.median(random.normal(0, WITHIN, (POINTS, starts, SAMPLES)), axis=2)
    if "bursts" in noise:  # another job slows all points of a round
        values -= (random.random(starts) < 0.15) * random.exponential(0.3, starts)
    if "modes" in noise:  # a third of the points falls into one of two modes with each start
        values -= (random.random((POINTS, starts)) < 0.4) * 0.35 * (numpy.arange(POINTS) % 3 == 0)[:, None]
    if "tails" in noise:
        values += 0.05 * random.standard_t(3, (POINTS, starts))
    if "each" in noise:  # points move from run to run, one by one
        values += random.normal(0, 0.05, (POINTS, 1))
    if "drift" in noise:  # all points move together, slowly
        moved = [random.normal(0, 0.05)]
        for _ in range(starts - 1):
            moved.append(0.7 * moved[-1] + random.normal(0, 0.05 * numpy.sqrt(1 - 0.7**2)))
        values += numpy.array(moved)
    if "shift" in noise:  # all points move together from run to run, and not within one
        values += random.normal(0, 0.05)
    return [dict(enumerate(row)) for row in values]


def compared(random, starts, noise=(), runs=(1, 1), between=0.15, slower=0.0, changed=3):
    """The pairs and geometric means of a comparison in which `changed` points are slower by that share."""
    means, deviations = random.normal(0, 1, POINTS), between * numpy.exp(random.normal(0, 0.5, POINTS))
    shifted = means - numpy.log1p(slower) * (numpy.arange(POINTS) < changed)
    first = [run_of(random, means, deviations, starts, noise) for _ in range(runs[0])]
    second = [run_of(random, shifted, deviations, starts, noise) for _ in range(runs[1])]
    pairs = [
        Pair(point, f"benchmark {point % BENCHMARKS}", *(_of_point(point, side) for side in (first, second)))
        for point in range(POINTS)
    ]
    return pairs, judge(pairs, margin=0.02)


def _of_point(point, runs):
    return {number: run[point] for number, run in enumerate(runs)}


def worse(found):
    return [pair for pair in found if pair.verdict == "worse"]


@pytest.mark.parametrize(
    "starts,noise,runs",
    [
        (6, (), (1, 1)),
        (10, (), (1, 1)),
        (6, ("bursts",), (1, 1)),
        (6, ("modes",), (1, 1)),
        (6, ("tails",), (1, 1)),
        (6, ("each",), (1, 1)),
        (6, ("drift",), (1, 1)),
        (8, ("bursts", "modes", "each", "drift"), (1, 1)),
        (6, ("shift", "each"), (4, 1)),
        (6, ("shift", "each", "bursts"), (3, 3)),
    ],
)
def test_the_same_code_is_seldom_called_worse(starts, noise, runs):
    """Fewer than 5 % of the comparisons of a code with itself call anything worse."""
    random = numpy.random.default_rng(7)
    called = sum(any(map(worse, compared(random, starts, noise, runs))) for _ in range(COMPARISONS))
    assert called < 0.05 * COMPARISONS


@pytest.mark.long
@pytest.mark.parametrize("kept", [range(1), range(1, 4)])
def test_a_point_that_few_runs_have_hides_nothing_of_the_others(kept):
    """One point of each benchmark is missing from some of four baselines, which lie apart as a whole."""
    random = numpy.random.default_rng(23)
    called = 0
    for _ in range(COMPARISONS):
        pairs, _ = compared(random, 6, ("shift",), (4, 1), between=0.01)
        for pair in pairs[:BENCHMARKS]:
            pair.first = {number: pair.first[number] for number in kept}
        called += any(map(worse, (judge(pairs, margin=0.02), pairs)))
    assert called < 0.05 * COMPARISONS


@pytest.mark.parametrize("slower,between,starts", [(0.10, 0.03, 24), (0.30, 0.08, 24)])
def test_a_planted_slowdown_is_found_given_the_starts_that_it_needs(slower, between, starts):
    """In 9 of 10 of those points of which the comparison says that it could see that much."""
    random = numpy.random.default_rng(11)
    found, able = 0, 0
    for _ in range(30):
        pairs, _ = compared(random, starts, between=between, slower=slower)
        shown = [pair for pair in pairs[:3] if pair.seen <= slower]
        able += len(shown)
        found += len(worse(shown))
    assert able >= 30
    assert found >= 0.9 * able


def test_what_would_be_seen_with_more_starts():
    """A comparison that says that so many times as many starts would show 10 % is right within a factor of 2."""
    random = numpy.random.default_rng(13)
    pairs, means = compared(random, 8, between=0.03)
    factors = [pair.is_seen_with(0.1, len(pairs) + len(means), 0.02) or numpy.inf for pair in pairs]
    factor = numpy.median(factors)
    assert factor < 10
    more, _ = compared(random, int(numpy.ceil(2 * factor * 8)), between=0.03)
    assert numpy.median([pair.seen for pair in more]) < 0.1 < numpy.median([pair.seen for pair in pairs])


def test_equivalence_is_proved_and_not_taken_for_granted():
    random = numpy.random.default_rng(17)
    noisy, _ = compared(random, 6, between=0.15)
    assert not any(pair.verdict == "no different" for pair in noisy)
    first, second = ({0: dict(enumerate(random.normal(0, 1e-3, 8)))} for _ in range(2))
    quiet = [Pair(0, "b", first, second)]
    judge(quiet, margin=0.02)
    assert quiet[0].verdict == "no different"


def test_one_benchmark_slower_as_a_whole_shows_in_its_mean():
    """By so little that no point of it shows."""
    random = numpy.random.default_rng(19)
    pairs, _ = compared(random, 8, between=0.06)
    for pair in pairs:
        if pair.group == "benchmark 1":
            pair.second = {0: {number: value - 0.12 for number, value in pair.second[0].items()}}
    means = {mean.group: mean for mean in judge(pairs, margin=0.02)}
    assert means["benchmark 1"].verdict == "worse"
    assert all(mean.verdict != "worse" for group, mean in means.items() if group != "benchmark 1")
