"""Tails and modes against distributions that are known: two modes are found, one is not taken for two."""

import numpy
import pytest
from shmem_mt import distributions
from shmem_mt.distributions import modes_of_operations, modes_of_starts, tails

OPERATIONS = 4000


def histogram(seconds):
    """As the programs make it (programs/common/histogram.hpp)."""
    ns = (1e9 * numpy.asarray(seconds)).astype(int)
    shift = numpy.maximum(0, numpy.floor(numpy.log2(numpy.maximum(ns, 1))).astype(int) - 5)
    found = numpy.unique(ns >> shift << shift, return_counts=True)
    return tuple((int(least), int(count)) for least, count in zip(*found))


def test_tails_are_those_of_the_operations():
    seconds = numpy.arange(1, 20001) * 1e-9 * 50
    told = tails(histogram(seconds), float(seconds[-1]))
    assert told["operations"] == 20000 and told["max"] == seconds[-1]
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        assert told[name] == pytest.approx(share * seconds[-1], rel=1 / 32)


def test_a_quantile_that_few_lie_beyond_is_not_told():
    told = tails(histogram([1e-6] * 5000), 1e-6)
    assert told["p99"] == pytest.approx(1e-6, rel=1 / 32) and told["p999"] is None
    assert tails(histogram([1e-6] * 15), 1e-6)["p50"] is None


def test_no_quantile_is_above_the_longest():
    assert tails(histogram([1.9e-6] * 40000), 1.9e-6)["p999"] <= 1.9e-6


def test_histograms_are_merged():
    one, other = histogram([1e-6] * 3), histogram([1e-6] * 2 + [5e-6])
    assert sum(count for _, count in distributions.merged([one, other])) == 6
    assert len(distributions.merged([one, other])) == 2


def draw(random, shape, size=OPERATIONS):
    """Durations in seconds."""
    if shape == "normal":
        return 1e-6 * random.normal(1, 0.05, size)
    if shape == "wide":
        return 1e-6 * numpy.exp(random.normal(0, 0.4, size))
    if shape == "tail":  # as waiting times are
        return 5e-7 + 3e-7 * random.exponential(1, size)
    if shape == "interrupted":  # one in thirty waits for a time slice
        return 1e-6 * random.normal(1, 0.05, size) + (random.random(size) < 0.03) * 1e-4
    if shape == "constant":
        return numpy.full(size, 3e-7)
    if shape == "coarse":  # of a clock that knows 10 ns
        return numpy.round(1e-6 * random.normal(1, 0.05, size), 8)
    if shape == "sum":  # of three steps, each of its own length
        return 1e-7 * random.exponential(1, (3, size)).sum(axis=0) + 2e-7
    low, high, share = shape
    return numpy.where(random.random(size) < share, low, high) * numpy.exp(random.normal(0, 0.05, size))


@pytest.mark.parametrize("size", [600, OPERATIONS, 60000])
@pytest.mark.parametrize("shape", ["normal", "wide", "tail", "interrupted", "constant", "coarse", "sum"])
def test_one_mode_of_operations_is_one(shape, size):
    random = numpy.random.default_rng(3)
    runs = 40
    wrong = sum(len(modes_of_operations(histogram(draw(random, shape, size)))) != 1 for _ in range(runs))
    assert wrong <= 0.05 * runs


@pytest.mark.parametrize("low,high,share", [(164e-9, 671e-9, 0.4), (1e-6, 1.3e-6, 0.5), (1e-6, 5e-6, 0.85)])
def test_two_modes_of_operations_are_two(low, high, share):
    random = numpy.random.default_rng(5)
    for _ in range(20):
        found = modes_of_operations(histogram(draw(random, (low, high, share))))
        assert [at for at, _ in found] == [pytest.approx(low, rel=0.04), pytest.approx(high, rel=0.04)]
        assert [part for _, part in found] == [pytest.approx(share, abs=0.05), pytest.approx(1 - share, abs=0.05)]


def test_outliers_hide_no_modes():
    """One in thirty operations waits for a time slice: what is usual says how fine the density is to be."""
    random = numpy.random.default_rng(17)
    for _ in range(20):
        seconds = draw(random, (1e-6, 1.3e-6, 0.5)) + (random.random(OPERATIONS) < 0.03) * 1e-4
        assert len(modes_of_operations(histogram(seconds))) == 2


def test_a_shoulder_is_no_mode():
    """The valley ahead of it is deep beside the peak, and shallow beside the shoulder."""
    random = numpy.random.default_rng(19)
    for _ in range(20):
        low, high = (at * numpy.exp(random.normal(0, 0.1, size)) for at, size in ((1e-6, 17000), (1.42e-6, 3000)))
        assert len(modes_of_operations(histogram(numpy.concatenate([low, high])))) == 1


def test_three_modes_are_three_and_few_operations_say_nothing():
    random = numpy.random.default_rng(7)
    parts = [draw(random, (at, at, 1), 2000) for at in (3e-7, 6e-7, 1.2e-6)]
    assert len(modes_of_operations(histogram(numpy.concatenate(parts)))) == 3
    assert modes_of_operations(histogram(draw(random, (1e-7, 1e-6, 0.5), 499))) == []


@pytest.mark.parametrize("starts", [6, 8, 12, 20])
@pytest.mark.parametrize("shape", ["normal", "wide", "tail", "interrupted", "sum"])
def test_starts_of_one_mode_are_one_group(shape, starts):
    random = numpy.random.default_rng(11)
    runs = 400
    assert sum(bool(modes_of_starts(draw(random, shape, starts))) for _ in range(runs)) <= 0.05 * runs


@pytest.mark.parametrize("starts", [6, 8, 12, 20])
def test_starts_of_two_modes_are_two_groups(starts):
    """Of which each has a fifth of the starts, and two at least."""
    random = numpy.random.default_rng(13)
    found, runs, fewest = 0, 100, max(2, -(-starts // 5))
    for _ in range(runs):
        slow = random.permutation(starts) < random.integers(fewest, starts - fewest + 1)
        values = numpy.where(slow, 671e-9, 164e-9) * numpy.exp(random.normal(0, 0.03, starts))
        groups = modes_of_starts(values)
        found += len(groups) == 2
        assert not groups or groups[1][1] == pytest.approx(slow.mean())
    assert found >= 0.95 * runs


def test_few_starts_and_values_without_logarithm_say_nothing():
    assert modes_of_starts([1.0, 1.0, 1.0, 9.0, 9.0]) == []
    assert modes_of_starts([0.0, 1.0, 1.0, 9.0, 9.0, 9.0]) == []
    assert modes_of_starts([2.0] * 8) == []
