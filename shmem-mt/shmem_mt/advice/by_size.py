"""What the sizes of one pattern say together: where the answer changes, where half of the bandwidth is reached, and
where a larger message takes less time than a smaller one."""

import math

from shmem_mt.advice.ranking import NEAR
from shmem_mt.runner.results import ratio_of_results, starts_of_ratio
from shmem_mt.studies.judging import side

BYTES_A_SECOND = "bytes/s"


def changes_at(sizes, size):
    """The next larger size at which the best setup of that size is no longer within NEAR of the best; None where there
    is none, or where it was not measured there. `sizes`: {bytes: Ranking} of one pattern."""
    best = sizes[size].best
    for larger in sorted(at for at in sizes if at > size):
        if best not in sizes[larger].results:
            return None
        times = sizes[larger].times(best)
        if times.ratio > 1 + NEAR:
            return larger if times.is_sure and times.low > 1 else None
    return None


def half_bandwidth(sizes):
    """The least size, in bytes, whose messages have half of the highest bandwidth of any size (n1/2), each size with
    its best setup; between two sizes on the line between them, by the logarithm of the size. None of fewer than three
    sizes, and of what is no bandwidth."""
    best = {size: ranking.results[ranking.best] for size, ranking in sorted(sizes.items())}
    if len(best) < 3 or any(result["unit"] != BYTES_A_SECOND for result in best.values()):
        return None
    rates = {size: result["median"] for size, result in best.items()}
    peak = max(rates, key=rates.__getitem__)
    half = rates[peak] / 2
    below = [size for size in rates if size < peak and rates[size] < half]
    if not below:
        return float(min(rates))
    last = max(below)
    above = min(size for size in rates if size > last)
    share = (half - rates[last]) / (rates[above] - rates[last])
    return 2 ** (math.log2(last) + share * (math.log2(above) - math.log2(last)))


def step_at(sizes, size):
    """The next larger size whose messages take less time than those of that size, with the setup that is best there;
    None where they take longer, as they should, or where it cannot be told."""
    setup = sizes[size].best
    larger = min((at for at in sizes if at > size), default=None)
    if larger is None or not size:
        return None
    own, other = sizes[size].results[setup], sizes[larger].results.get(setup)
    if other is None:
        return None
    if own["metric"] == "time":
        ratio, scale = ratio_of_results(own, other, True), 1.0
    elif own["unit"] == BYTES_A_SECOND:
        ratio, scale = ratio_of_results(other, own, True), size / larger  # of rates of messages
    else:
        ratio, scale = ratio_of_results(other, own, True), 1.0
    _, low, high = (scale * value for value in ratio)
    return larger if side(low, high, starts_of_ratio(own, other, True)) == "above" else None
