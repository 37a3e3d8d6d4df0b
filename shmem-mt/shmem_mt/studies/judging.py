"""What a ratio says, and where a curve comes near its peak: one rule for all tables, chapters and charts."""

from shmem_mt.statistics import FEWEST_STARTS

MARGIN = 0.02  # nearer to 1 than this, no ratio is said to differ from it
PEAK_SHARE = 0.9  # of a peak, which is "near" it


def side(low, high, starts):
    """On which side of 1 a ratio with that interval lies: above, below, same; unknown with too few starts to tell."""
    if starts < FEWEST_STARTS:
        return "unknown"
    return "above" if low > 1 + MARGIN else "below" if high < 1 - MARGIN else "same"


def near_peak(rates):
    """(amount with the highest rate, least amount whose rate is near that one) of {amount: rate}."""
    amounts = sorted(rates)
    peak_at = max(amounts, key=rates.__getitem__)
    return peak_at, next(amount for amount in amounts if rates[amount] >= PEAK_SHARE * rates[peak_at])
