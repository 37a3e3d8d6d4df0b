"""What a point's single operations say, beyond the median of its starts: tails, and whether there are two modes.

The programs count durations in buckets of equal width within each power of two (programs/common/histogram.hpp); a
histogram is a sorted tuple of (shortest ns, count). Starts are few, so whether they fall into two groups is another
question than whether the thousands of operations of one start do.
"""

from functools import cache, lru_cache
from itertools import pairwise

import numpy

QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
FEWEST_BEYOND = 10  # operations, without which a quantile says little
BUCKETS = 32  # to a power of two, as the programs have them
FEWEST_OPERATIONS = 500  # of a start, from which on modes are looked for
BANDWIDTH = 0.04  # of the density's kernel, at least: wider than a bucket
LEAST_SHARE = 0.1  # of a mode
DEEPEST_VALLEY = 0.5  # of the lower peak beside it; what is shallower is one mode
FEWEST_STARTS = 6
LEAST_GROUP = 0.2  # of the starts, and two at least: fewer are outliers
DRAWS = 4000  # of each shape, to know how far apart the halves of unimodal samples lie


def merged(histograms):
    """One histogram of several, sorted."""
    counts: dict[int, int] = {}
    for histogram in histograms:
        for least, count in histogram:
            counts[least] = counts.get(least, 0) + count
    return tuple(sorted(counts.items()))


def tails(histogram, longest_s):
    """{"operations": n, "p50": s, ..., "max": s} of a sorted histogram; a quantile that few operations lie beyond is
    None."""
    at, counts = _middles(histogram), numpy.array([count for _, count in histogram])
    total, up_to = int(counts.sum()), counts.cumsum()
    told: dict[str, float | None] = {}
    for name, share in QUANTILES.items():
        index = int(numpy.searchsorted(up_to, share * total))
        told[name] = min(1e-9 * float(at[index]), longest_s) if (1 - share) * total >= FEWEST_BEYOND else None
    return {"operations": total, **told, "max": longest_s}


def _middles(histogram):
    """Of the buckets, in nanoseconds."""
    least = numpy.array([least for least, _ in histogram], dtype=float)
    widths = numpy.maximum(1.0, 2.0 ** numpy.floor(numpy.log2(numpy.maximum(least, 1.0))) / BUCKETS)
    return least + widths / 2


@lru_cache(maxsize=4096)
def modes_of_operations(histogram):
    """[(seconds, share)] of the modes of one start's operations, from the fastest on; empty where those are few."""
    counts = numpy.array([count for _, count in histogram], dtype=float)
    if counts.sum() < FEWEST_OPERATIONS:
        return []
    return [(1e-9 * at, share) for at, share in _peaks(numpy.log(_middles(histogram)), counts)]


def _peaks(logs, weights):
    """[(where, share)] of the peaks of a kernel density: each with LEAST_SHARE of the weight, between each two a
    valley."""
    total = weights.sum()
    width = max(BANDWIDTH, 0.9 * _spread(logs, weights) * total**-0.2)
    grid = numpy.arange(logs.min() - 3 * width, logs.max() + 3 * width, width / 4)
    density = (weights * numpy.exp(-0.5 * ((grid[:, None] - logs) / width) ** 2)).sum(axis=1)
    inner = density[1:-1]
    peaks = [int(at) + 1 for at in numpy.flatnonzero((inner > density[:-2]) & (inner >= density[2:]))]
    while len(peaks) > 1:
        valleys = [a + int(density[a:b].argmin()) for a, b in pairwise(peaks)]
        edges = [-numpy.inf, *grid[valleys], numpy.inf]
        shares = [weights[(logs >= a) & (logs < b)].sum() / total for a, b in pairwise(edges)]
        depths = [density[v] / min(density[a], density[b]) for v, a, b in zip(valleys, peaks, peaks[1:])]
        if min(shares) < LEAST_SHARE:
            peaks.pop(int(numpy.argmin(shares)))
        elif max(depths) > DEEPEST_VALLEY:
            at = int(numpy.argmax(depths))
            peaks.pop(at if density[peaks[at]] < density[peaks[at + 1]] else at + 1)
        else:
            return [(float(numpy.exp(grid[peak])), float(share)) for peak, share in zip(peaks, shares)]
    return [(float(numpy.exp(grid[peak])), 1.0) for peak in peaks]


def _spread(logs, weights):
    """A deviation that tails do not widen: of the middle half, as a normal distribution has it; the whole one's where
    that is less."""
    order = numpy.argsort(logs)
    up_to = weights[order].cumsum() / weights.sum()
    low, high = (logs[order][int(numpy.searchsorted(up_to, share))] for share in (0.25, 0.75))
    mean = numpy.average(logs, weights=weights)
    deviation = numpy.sqrt(numpy.average((logs - mean) ** 2, weights=weights))
    return min(deviation, (high - low) / 1.34) or deviation


def modes_of_starts(values):
    """[(value, share)] of the two groups that the starts' values fall into, empty where they are one: where they lie
    farther apart than the halves of 99 of 100 samples of that size from distributions with one mode."""
    if len(values) < FEWEST_STARTS or min(values) <= 0:
        return []
    logs = numpy.sort(numpy.log(values))
    apart, at = _split(logs[None, :])
    if apart[0] <= _usual_split(len(logs)):
        return []
    groups = numpy.split(logs, [int(at[0])])
    return [(float(numpy.exp(numpy.median(group))), len(group) / len(logs)) for group in groups]


def _split(rows):
    """Of each row of sorted values: how far apart its two best groups lie, as the square between them over that within
    them, and where the second begins."""
    count = rows.shape[1]
    fewest = max(2, int(numpy.ceil(LEAST_GROUP * count)))
    places = numpy.arange(fewest, count - fewest + 1)
    rows = rows - rows.mean(axis=1, keepdims=True)
    sums = rows.cumsum(axis=1)[:, places - 1]
    between = sums**2 * (1 / places + 1 / (count - places))
    within = numpy.maximum((rows**2).sum(axis=1, keepdims=True) - between, 1e-30)
    apart = between / within
    best = apart.argmax(axis=1)
    return apart[numpy.arange(len(rows)), best], places[best]


@cache
def _usual_split(count):
    """What 99 of 100 samples of that size stay below, whichever of these shapes they have: normal, a tail to one side,
    tails to both."""
    random = numpy.random.default_rng(count)
    shapes = (random.normal, lambda size: random.exponential(size=size), lambda size: random.standard_t(3, size=size))
    found = []
    for shape in shapes:
        rows = numpy.sort(shape(size=(DRAWS, count)), axis=1)
        found.append(float(numpy.quantile(_split(rows)[0], 0.99)))
    return max(found)
