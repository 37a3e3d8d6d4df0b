"""Medians with bootstrap intervals, of one point and of the ratio of two.

Samples come in rounds (program starts). Samples of one round resemble each other more than those of different rounds
(other pages, other clock frequency), so the bootstrap draws rounds first and samples within them second. With few
rounds the interval is approximate; with one round it covers only the noise within that round.
"""

import numpy

REPLICATES = 2000
CONFIDENCE = 0.95


def median_interval(rounds):
    """Median of all samples and its 95 % interval: (median, low, high).

    `rounds` is a list of lists of numbers, at least one of them not empty. The draw is seeded, so the same samples
    give the same interval.
    """
    everything = numpy.concatenate([numpy.asarray(r, dtype=float) for r in rounds])
    median = float(numpy.median(everything))
    if len(everything) == 1:
        return median, median, median
    low, high = _quantiles(_medians(rounds, _draw_rounds(len(rounds))))
    return median, low, high


def ratio_interval(rounds_a, rounds_b, paired):
    """Median of a divided by median of b, with its 95 % interval: (ratio, low, high).

    `paired`: round i of a ran next to round i of b (they were interleaved), so both draw the same rounds.
    Samples must be positive.
    """
    ratio = float(numpy.median(numpy.concatenate(rounds_a)) / numpy.median(numpy.concatenate(rounds_b)))
    if sum(map(len, rounds_a)) == 1 and sum(map(len, rounds_b)) == 1:
        return ratio, ratio, ratio
    if paired and len(rounds_a) == len(rounds_b):
        drawn_a = drawn_b = _draw_rounds(len(rounds_a))
    else:
        drawn_a, drawn_b = _draw_rounds(len(rounds_a)), _draw_rounds(len(rounds_b), seed=2)
    low, high = _quantiles(_medians(rounds_a, drawn_a) / _medians(rounds_b, drawn_b, seed=4))
    return ratio, low, high


def percentiles(samples):
    """The 50th, 95th and 99th percentile of the samples, as a dict."""
    values = numpy.percentile(numpy.asarray(samples, dtype=float), [50, 95, 99])
    return {name: float(value) for name, value in zip(("p50", "p95", "p99"), values)}


def _draw_rounds(count, seed=1):
    return numpy.random.default_rng(seed).integers(0, count, size=(REPLICATES, count))


def _medians(rounds, drawn, seed=3):
    """The median of each bootstrap replicate; `drawn` says which rounds each replicate takes."""
    lengths = numpy.array([len(r) for r in rounds])
    longest = int(lengths.max())
    table = numpy.full((len(rounds), longest), numpy.nan)
    for row, samples in zip(table, rounds):
        row[: len(samples)] = samples
    uniform = numpy.random.default_rng(seed).random((*drawn.shape, longest))
    chosen = numpy.floor(uniform * lengths[drawn][:, :, None]).astype(int)
    values = table[drawn[:, :, None], chosen]
    if (lengths == longest).all():
        return numpy.median(values.reshape(len(drawn), -1), axis=1)
    beyond = numpy.arange(longest)[None, None, :] >= lengths[drawn][:, :, None]
    values = numpy.where(beyond, numpy.nan, values)
    return numpy.nanmedian(values.reshape(len(drawn), -1), axis=1)


def _quantiles(values):
    tail = (1 - CONFIDENCE) / 2
    low, high = numpy.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
