"""What a few program starts say of a point, and of the ratio of two.

The start is the unit: samples of one start share its pages, its cores and what else ran, so they count as one value,
their median. Fewer than FEWEST_STARTS values have no 95 % interval, however many samples they are made of; what stands
in its place is their range.
"""

import numpy
from scipy import stats

CONFIDENCE = 0.95
# Of the interval that ends the starts of a point when it is narrow. Each look at it is a chance to stop too early: of
# points that stop by the 95 % interval itself, as few as 89 % have one that holds the truth.
STOPPING = 0.99
FEWEST_STARTS = 6  # the extremes of n values hold the median with 1 - 2^(1-n): of 5 with 93.75 %, of 6 with 96.9 %


def start_values(rounds):
    """One value a start: the median of its samples."""
    return numpy.array([numpy.median(samples) for samples in rounds], dtype=float)


def interval_of(values, confidence=CONFIDENCE):
    """(low, high) around the median of independent values: a 95 % interval from order statistics, which no shape of
    their distribution upsets; of fewer than FEWEST_STARTS, or than the confidence asked for needs, the range."""
    if len(values) < FEWEST_STARTS or 1 - 2.0 ** (1 - len(values)) < confidence:
        return float(numpy.min(values)), float(numpy.max(values))
    found = stats.quantile_test(values, p=0.5).confidence_interval(confidence)
    return float(found.low), float(found.high)


def is_settled(values, half_width):
    """Whether further starts are not worth their time: there are enough for an interval, and half of that of STOPPING
    is at most that share of the median."""
    low, high = interval_of(values, STOPPING)
    return len(values) >= FEWEST_STARTS and high - low <= 2 * half_width * abs(float(numpy.median(values)))


def starts_to_settle(values, half_width):
    """About how many starts it takes until `is_settled`, judged by those that there are, as if their distribution were
    normal; None of fewer than 3, which say too little."""
    if len(values) < 3:
        return None
    error = stats.norm.ppf((1 + STOPPING) / 2) * numpy.sqrt(numpy.pi / 2) * numpy.std(values, ddof=1)  # of a median
    wanted = (error / (half_width * abs(numpy.median(values)))) ** 2 if error else 0.0
    return max(FEWEST_STARTS, int(numpy.ceil(min(wanted, 1e6))))


def median_interval(rounds):
    """Median of the starts' values and its interval: (median, low, high). `rounds` has a list of samples a start."""
    values = start_values(rounds)
    return float(numpy.median(values)), *interval_of(values)


def ratio_interval(rounds_a, rounds_b, paired):
    """a divided by b, with its interval: (ratio, low, high).

    `paired`: start i of a ran next to start i of b, so that the ratio of each two is one value. Otherwise ratio and
    interval are those of the logarithms' means (Welch). Samples must be positive.
    """
    a, b = start_values(rounds_a), start_values(rounds_b)
    if paired and len(a) == len(b):
        return float(numpy.median(a / b)), *interval_of(a / b)
    if min(len(a), len(b)) < FEWEST_STARTS:
        return float(numpy.median(a) / numpy.median(b)), float(a.min() / b.max()), float(a.max() / b.min())
    a, b = numpy.log(a), numpy.log(b)
    difference = float(a.mean() - b.mean())
    if max(numpy.ptp(a), numpy.ptp(b)) < 1e-9:
        low, high = difference, difference
    else:
        low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(CONFIDENCE)
    return float(numpy.exp(difference)), float(numpy.exp(low)), float(numpy.exp(high))
