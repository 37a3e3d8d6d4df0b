"""Medians, intervals and ratios against cases whose answer is known."""

import numpy
import pytest
from shmem_mt.report.compare import verdict
from shmem_mt.statistics import median_interval, percentiles, ratio_interval


def test_interval_contains_the_median_and_is_reproducible():
    rounds = [[1.0, 2.0, 3.0], [2.0, 2.5, 9.0]]
    median, low, high = median_interval(rounds)
    assert median == 2.25
    assert 1.0 <= low <= median <= high <= 9.0
    assert median_interval(rounds) == (median, low, high)


def test_constant_samples_have_no_width():
    assert median_interval([[5.0, 5.0], [5.0]]) == (5.0, 5.0, 5.0)


def test_one_sample():
    assert median_interval([[7.0]]) == (7.0, 7.0, 7.0)


def test_rounds_that_differ_widen_the_interval():
    """The same samples, once mixed and once split by round: the split must give the wider interval."""
    split = [[1.0] * 30, [2.0] * 30, [3.0] * 30]
    mixed = [[1.0] * 10 + [2.0] * 10 + [3.0] * 10] * 3
    assert median_interval(mixed) == (2.0, 2.0, 2.0)
    assert median_interval(split) == (2.0, 1.0, 3.0)


def test_coverage_of_the_interval():
    """Of 200 experiments with 6 rounds of 8, the interval should hold the true median in most."""
    random = numpy.random.default_rng(0)
    hits = 0
    for _ in range(200):
        rounds = [list(random.normal(10, 1, 8) + random.normal(0, 0.5)) for _ in range(6)]
        _, low, high = median_interval(rounds)
        hits += low <= 10 <= high
    assert hits >= 170


def test_ratio_of_known_scales():
    a, b = [[20.0, 20.2, 19.8]] * 3, [[10.0, 10.1, 9.9]] * 3
    ratio, low, high = ratio_interval(a, b, paired=True)
    assert ratio == pytest.approx(2.0)
    assert 1.9 < low <= ratio <= high < 2.1


def test_pairing_cancels_drift():
    a, b = [[2.0] * 4, [4.0] * 4, [8.0] * 4], [[1.0] * 4, [2.0] * 4, [4.0] * 4]
    _, low, high = ratio_interval(a, b, paired=True)
    assert (low, high) == (2.0, 2.0)
    _, low, high = ratio_interval(a, b, paired=False)
    assert low < 1.0 < 4.0 <= high


def test_percentiles():
    assert percentiles(list(range(101))) == {"p50": 50, "p95": 95, "p99": 99}


@pytest.mark.parametrize(
    "metric,low,high,expected",
    [
        ("rate", 1.10, 1.20, "better"),
        ("rate", 0.80, 0.90, "worse"),
        ("rate", 0.90, 1.10, "cannot tell"),
        ("rate", 0.99, 1.01, "no different"),
        ("latency", 1.10, 1.20, "worse"),
        ("latency", 0.80, 0.90, "better"),
        ("cpu_time", 0.5, 0.6, "better"),
    ],
)
def test_verdict(metric, low, high, expected):
    assert verdict(metric, low, high) == expected
