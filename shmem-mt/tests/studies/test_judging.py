"""What a ratio says, and what is near a peak."""

import pytest
from shmem_mt.studies.judging import near_peak, side


@pytest.mark.parametrize(
    "low,high,starts,says",
    [
        (1.021, 1.5, 6, "above"),
        (1.019, 1.5, 6, "same"),
        (0.5, 0.979, 6, "below"),
        (0.5, 0.981, 6, "same"),
        (0.9, 1.1, 60, "same"),
        (3.0, 4.0, 5, "unknown"),
    ],
)
def test_a_ratio_says_something_beyond_two_percent(low, high, starts, says):
    assert side(low, high, starts) == says


@pytest.mark.parametrize(
    "rates,peak_at,at",
    [({8: 100, 1: 89, 2: 90}, 8, 2), ({1: 100, 8: 100}, 1, 1), ({4: 10}, 4, 4), ({1: 95, 2: 50, 4: 100}, 4, 1)],
)
def test_the_least_amount_with_90_percent_is_near_the_peak(rates, peak_at, at):
    assert near_peak(rates) == (peak_at, at)
