"""What the points of the study of order say: how much faster messages go without order than under each rule that keeps
one, how much concurrency each rule needs, and from which size on which mechanism carries them best.

A rule's rate at a size is its peak: that of the number of outstanding messages with which it is fastest. Every second
start chooses that number, and the other starts are reported: the best of several is best by luck, too. Every ratio
names its baseline, for each flatters differently (BASELINES)."""

import statistics
from collections import namedtuple
from dataclasses import dataclass

from shmem_mt.catalogue.catalogue import MPI_RULES
from shmem_mt.runner.results import merge_rounds, numbered_rounds, ratio_of_results, rounds_of, starts_of_ratio
from shmem_mt.statistics import FEWEST_STARTS
from shmem_mt.studies.judging import near_peak, side

BENCHMARK = "ordering"
FREE = "relaxed"
BASELINES = {  # rule -> what a ratio of relaxed to it stands for
    "quiet": "acknowledged-strict (flatters)",
    "ordered": "ordered pipeline (fair)",
    "reorder-buffer": "reorder buffer at the target",
    "fence": "fence behind each put",
    "two-sided": "MPI two-sided",
    "two-sided-any": "MPI two-sided, wildcards",
    "mpi-put": "MPI put, a flush a window",
    "mpi-put-flush": "MPI put and flush each",
}
MECHANISMS = ("store", "batch", "eager", "rendezvous", "library")

# Where rates may be compared: same links, same PEs and threads.
Place = namedtuple("Place", "link_rate rails pes threads")


@dataclass
class Reach:
    """How much it takes to come near a peak (judging.py): `at` is the least of what was tried that does."""

    peak_at: int
    peak: dict
    at: int
    result: dict
    rising: bool  # only the last of several reached it, so that more may bring more
    whole: dict  # the peak with all its starts, to choose by


@dataclass
class CutOver:
    """From `at` on the later mechanism stays ahead of the earlier one; None: not even at the largest size. Up to `low`
    the earlier one is clearly ahead, from `high` on the later one (95 % intervals apart); None: that is so at no size,
    or too few starts have no such intervals."""

    at: int | None
    low: int | None
    high: int | None
    sizes: list  # at which both were measured


def place_of(params):
    return Place(params.get("link_rate", ""), max(1, params.get("rails", 1)), params["pes"], params["threads"])


def pes_and_threads(place):
    """Such as ``2 PEs x 2 threads``."""
    return f"{place.pes} PEs" + f" x {place.threads} threads" * (place.threads > 1)


def links(place):
    """Such as ``, 2 rails, links of 100mbit``; empty for one link as fast as the machine."""
    return f", {place.rails} rails" * (place.rails > 1) + f", links of {place.link_rate}" * bool(place.link_rate)


def active_cores(params):
    """Threads that send."""
    return params["pes"] // 2 * params["threads"]


def chooses(result):
    """The median of every second start from the first on: what is best is chosen by these."""
    return statistics.median(map(statistics.median, rounds_of(result)[::2]))


def reported(result):
    """The result of the other starts. What was chosen because of its luck in some starts has no more of it in others;
    a result of one start has no others."""
    rounds = list(numbered_rounds(result).items())[1::2]
    if not rounds:
        return result
    return {**result, **merge_rounds([{**result, "samples": samples, "round": number} for number, samples in rounds])}


def best_of(results):
    """Of several results the one that is chosen, as it is reported."""
    return reported(max(results, key=chooses))


def reach(by_amount):
    """The Reach of {amount: result}, None without any."""
    if not by_amount:
        return None
    peak_at, at = near_peak({amount: chooses(result) for amount, result in by_amount.items()})
    peak, first = reported(by_amount[peak_at]), reported(by_amount[at])
    return Reach(peak_at, peak, at, first, len(by_amount) > 1 and at == max(by_amount), by_amount[peak_at])


def cut_over(earlier, later):
    """The CutOver of two mechanisms, {size: bandwidth result} each; None when no size has both."""
    sizes = sorted(set(earlier) & set(later))
    if not sizes:
        return None
    at = _stays(sizes, lambda size: later[size]["median"] > earlier[size]["median"])
    high = _stays(sizes, lambda size: _is_above(later[size], earlier[size]))
    before = [s for s in sizes if _is_above(earlier[s], later[s]) and (at is None or s < at)]
    return CutOver(at, before[-1] if before else None, high, sizes)


def _is_above(one, other):
    """Whether the intervals are apart; what has no more than a range is above nothing."""
    return min(one["starts"], other["starts"]) >= FEWEST_STARTS and one["interval"][0] > other["interval"][1]


def _stays(sizes, ahead):
    """The smallest size from which ahead(size) holds for all, None when it does not for the largest."""
    found = None
    for size in reversed(sizes):
        if not ahead(size):
            break
        found = size
    return found


def ratio(above, below):
    """The ratio of two rates as a result that charts can draw; None where one is missing, invalid or not positive."""
    if not above or not below or above["valid"] is False or below["valid"] is False:
        return None
    if min(above["samples"]) <= 0 or min(below["samples"]) <= 0:
        return None
    paired = above.get("run") == below.get("run")
    value, low, high = ratio_of_results(above, below, paired)
    starts, values = starts_of_ratio(above, below, paired), _values(above, below) if paired else []
    made = {"unit": "x", "median": value, "interval": [low, high], "starts": starts, "modes": []}
    return {**above, **made, "samples": values or [value], "round_sizes": [1] * len(values or [value])}


def _values(above, below):
    """The ratio of each start that both have."""
    over, under = numbered_rounds(above), numbered_rounds(below)
    return [statistics.median(over[n]) / statistics.median(under[n]) for n in over if n in under]


def verdict(result):
    """What a ratio of relaxed to a baseline says, as words."""
    words = {"above": "faster", "below": "slower", "same": "no clear difference", "unknown": "too few starts to tell"}
    low, high = result["interval"]
    return words[side(low, high, result["starts"])]


class Study:
    """The points of one fabric, by what is compared."""

    def __init__(self, points):
        self.points = points.find(BENCHMARK)

    def whole(self, metric="rate"):
        """Those that compare rules: messages in one piece, sent as the library does by itself."""
        return [
            point
            for point in self.points
            if point["metric"] == metric
            and "slice_bytes" not in point["params"]
            and point["params"].get("coalescing") != "off"
        ]

    def curves(self):
        """{(label, place, rule, size): {outstanding: result}}, in the order in which they were measured."""
        found: dict[tuple, dict[int, dict]] = {}
        for point in self.whole():
            params = point["params"]
            key = (point["label"], place_of(params), params["rule"], params["size_bytes"])
            found.setdefault(key, {})[params["outstanding"]] = point
        return found

    def peaks(self):
        """{(label, place, rule): {size: Reach}}"""
        found: dict[tuple, dict[int, Reach]] = {}
        for (label, place, rule, size), curve in self.curves().items():
            found.setdefault((label, place, rule), {})[size] = reach(curve)
        return found

    def cores(self):
        """{(label, rule, size): Reach over active cores}, where several numbers of them were tried."""
        by_cores: dict[tuple, dict[int, dict]] = {}
        for (label, _place, rule), sizes in self.peaks().items():
            for size, found in sizes.items():
                rates = by_cores.setdefault((label, rule, size), {})
                cores = active_cores(found.peak["params"])
                if cores not in rates or chooses(found.whole) > chooses(rates[cores]):
                    rates[cores] = found.whole
        return {key: reach(rates) for key, rates in by_cores.items() if len(rates) > 1}

    def ratios(self):
        """{(label, place, baseline's label, rule): {size: ratio result}}. Baselines are the library's own rules, and
        those of MPI for every library."""
        peaks, found = self.peaks(), {}
        for (label, place, rule), sizes in peaks.items():
            for (other, there, baseline), theirs in peaks.items() if rule == FREE else ():
                if there != place or baseline not in BASELINES or (other != label and baseline not in MPI_RULES):
                    continue
                both = [(size, ratio(sizes[size].peak, theirs[size].peak)) for size in sorted(set(sizes) & set(theirs))]
                found[label, place, other, baseline] = {size: result for size, result in both if result}
        return found

    def mechanisms(self):
        """{(library, place): {mechanism: {size: bandwidth result}}} of messages without order, at their peaks."""
        tried: dict[tuple, dict[str, dict[int, list]]] = {}
        for point in self.points:
            params = point["params"]
            if point["metric"] != "bandwidth" or params["rule"] != FREE:
                continue
            sizes = tried.setdefault((point.get("library", point["label"]), place_of(params)), {})
            sizes.setdefault(params["mechanism"], {}).setdefault(params["size_bytes"], []).append(point)
        return {key: {name: _peaks(sizes) for name, sizes in found.items()} for key, found in tried.items()}

    def cut_overs(self):
        """[(library, place, earlier, later, CutOver)] of each two mechanisms that share sizes."""
        found = []
        for (library, place), mechanisms in self.mechanisms().items():
            present = [name for name in MECHANISMS if name in mechanisms]
            for index, earlier in enumerate(present):
                for later in present[index + 1 :]:
                    crossing = cut_over(mechanisms[earlier], mechanisms[later])
                    if crossing:
                        found.append((library, place, earlier, later, crossing))
        return found

    def rails(self):
        """{(library, pes, threads, rule): {(link rate, rails): {size: bandwidth result}}}, at the peaks, where there
        are points of several rails."""
        tried: dict[tuple, dict[tuple, dict[int, list]]] = {}
        for point in self.whole("bandwidth"):
            params, place = point["params"], place_of(point["params"])
            key = (point.get("library", point["label"]), place.pes, place.threads, params["rule"])
            by_size = tried.setdefault(key, {}).setdefault((place.link_rate, place.rails), {})
            by_size.setdefault(params["size_bytes"], []).append(point)
        several = {key: links for key, links in tried.items() if len({rails for _, rails in links}) > 1}
        return {key: {link: _peaks(sizes) for link, sizes in links.items()} for key, links in several.items()}


def _peaks(by_size):
    """{size: the best of its results}"""
    return {size: best_of(results) for size, results in by_size.items()}
