"""What two sides of a comparison say of each point: worse, better, no different, or that they cannot tell.

A side is one invocation of `run` or several; an invocation has one value a program start (its median), as a logarithm
whose sign makes larger better. What varies, and where its size comes from:

    start to start     each point's own values, drawn towards what is usual in its benchmark (Smyth 2004, as in limma):
                       six values that happen to agree do not make a quiet point
    run to run, all    what moves all points of an invocation. Several invocations of a side show it. With one each, it
                       is taken to be as large as what moves all points from one round to the next.
    run to run, each   what moves one point of an invocation: a multiple of what moves its starts, for what is restless
                       from start to start is so from run to run. With one invocation each, the multiple is what the
                       starts leave unexplained of the changes' distances from their median, so that few changed points
                       do not count. Points differ in it (lines that PEs contend for vary most), so that it is worth
                       few degrees of freedom.

Where a change may be the machine's (`is_told` false; runs.disturbed) none is called.

Each has its degrees of freedom; they are put together as Welch and Satterthwaite do. All p-values of a comparison, the
benchmarks' geometric means among them, are adjusted together (Benjamini and Hochberg).
"""

from dataclasses import dataclass, field

import numpy
from scipy import optimize, special, stats

from shmem_mt.statistics import CONFIDENCE, FEWEST_STARTS

ALPHA = (1 - CONFIDENCE) / 2  # of "worse", and of "better"
POWER = 0.9  # of what is said to be seen
FEWEST_POINTS = 8  # a benchmark with fewer takes what varies from all points
MEDIAN_VARIANCE = numpy.pi / 2  # of the median of many values, beside that of their mean
MOST_FREEDOM = 100.0  # that other points lend to one
# Of what moves one point from run to run. Among 40 runs of the same code, 4 % of 74 comparisons of three runs with a
# fourth call a point worse, and 6 % of 78 of one run with the next; with as many as there are points, 12 % and 8 %.
DRIFT_FREEDOM = 3.0


@dataclass
class Pair:
    """A point, or the geometric mean of a benchmark, in both sides; judge() fills in the rest."""

    name: object
    group: str  # the benchmark
    first: dict  # the number of an invocation -> {round: value}, values as the module says
    second: dict
    change: float = 0.0  # of the logarithms' means
    low: float = 0.0
    high: float = 0.0
    q_worse: float = 1.0
    verdict: str = "too few starts"
    seen: float | None = None  # the smallest change that would be called with a probability of POWER, alone
    parts: list = field(default_factory=list)  # (variance of the change, its degrees of freedom)

    def starts(self):
        return tuple(sum(map(len, side.values())) for side in (self.first, self.second))

    def is_enough(self):
        runs = [*self.first.values(), *self.second.values()]
        return min(self.starts()) >= FEWEST_STARTS and min(map(len, runs)) > 1

    def is_seen_with(self, change, tests, margin):
        """How many times as many starts would call that change with a probability of POWER; None: no number would."""
        deviations = stats.norm.isf(ALPHA / tests) + stats.norm.isf(1 - POWER)
        wanted = (numpy.log1p(change) - numpy.log1p(margin)) / deviations
        own = sum(variance for variance, _ in self.parts[:-2])
        left = wanted**2 - sum(variance for variance, _ in self.parts[-2:])
        return None if wanted <= 0 or left <= 0 else own / left


def judge(pairs, margin, is_told=True):
    """Judges all pairs, and returns the geometric means of their benchmarks, judged with them. Without `is_told` all
    that have starts enough cannot be told."""
    able = [pair for pair in pairs if pair.is_enough()]
    drifts = _drifts(able)
    for pair in able:
        drift = drifts[pair.group]
        pair.parts = [*_own(pair, drift.usual), _every(pair, drift), (_each(pair, drift), DRIFT_FREEDOM)]
    means = [_mean_of(group, [pair for pair in able if pair.group == group], drifts[group]) for group in drifts]
    decided = [*able, *filter(Pair.is_enough, means)]
    _decide(decided, margin)
    for pair in decided if not is_told else ():
        pair.verdict = "cannot tell"
    return means


@dataclass
class _Drift:
    """What varies in a benchmark."""

    usual: list  # of starts, for each side: as _usual says
    every: tuple  # a variance and its degrees of freedom
    each: float  # a multiple of the variance of a point's starts


def _drifts(pairs):
    """Of each benchmark. What varies from run to run is what its points show, or all points where that is more: few
    points may hide it by chance."""
    every, each = _run_variances(pairs, _usual_of(pairs)) if pairs else ((0.0, 1), 0.0)
    found = {}
    for group in dict.fromkeys(pair.group for pair in pairs):
        own = [pair for pair in pairs if pair.group == group]
        found[group] = _Drift(_usual_of(pairs), every, each)
        if len(own) >= FEWEST_POINTS:
            theirs = _run_variances(own, _usual_of(own))
            found[group] = _Drift(_usual_of(own), max(every, theirs[0]), max(each, theirs[1]))
    return found


def _run_variances(pairs, usual):
    several = [side for side in ("first", "second") if len(_full(pairs, side)[1]) > 1]
    return _between(pairs, several, usual) if several else _within(pairs, usual)


def _usual_of(pairs):
    """Of the starts of both sides."""
    return [_usual([_spread(getattr(pair, side)) for pair in pairs]) for side in ("first", "second")]


def _spread(side):
    """(variance of a point's starts about the means of their invocations, its degrees of freedom)"""
    freedom = sum(len(run) - 1 for run in side.values())
    return sum(_variance(run) * (len(run) - 1) for run in side.values()) / freedom, freedom


def _usual(spreads):
    """(the usual variance of so many points, how many degrees of freedom that knowledge is worth): the scaled inverse
    chi-square distribution that the logarithms of their variances fit, by moments."""
    found = [(variance, freedom / 2) for variance, freedom in spreads if variance > 0]
    if len(found) < 2:
        return 0.0, 0.0
    variances, halves = numpy.array(found).T
    moved = numpy.log(variances) - special.digamma(halves) + numpy.log(halves)
    excess = float(numpy.var(moved, ddof=1) - special.polygamma(1, halves).mean())
    half = MOST_FREEDOM / 2
    if excess > special.polygamma(1, half):
        half = optimize.brentq(lambda at: special.polygamma(1, at) - excess, 1e-3, half)
    return float(numpy.exp(moved.mean() + special.digamma(half) - numpy.log(half))), 2 * half


def _variance(run):
    return float(numpy.var(list(run.values()), ddof=1))


def _mean(side):
    """Of a side: the mean of its invocations' means."""
    return float(numpy.mean([numpy.mean(list(run.values())) for run in side.values()]))


def _full(pairs, side):
    """(pairs, the numbers of invocations that all of them have), so chosen that they say most of what varies from run
    to run: a point that few invocations have is left out."""
    found = []
    for numbers in dict.fromkeys(tuple(sorted(getattr(pair, side))) for pair in pairs):
        having = [pair for pair in pairs if getattr(pair, side).keys() >= set(numbers)]
        found.append((having, numbers))
    return max(found, key=lambda one: ((len(one[1]) - 1) * len(one[0]), len(one[0])))


def _within(pairs, usual):
    """Of one invocation each: what moves all points from round to round, and what is left of the changes."""
    sums, freedom = 0.0, 0
    for side in ("first", "second"):
        moves: dict[tuple, list] = {}  # by invocation and round
        runs = [(index, run) for pair in pairs for index, run in getattr(pair, side).items()]
        for index, run in runs:
            centre = numpy.mean(list(run.values()))
            for number, value in run.items():
                moves.setdefault((index, number), []).append(value - centre)
        effects = [numpy.median(values) for values in moves.values()]
        noise = MEDIAN_VARIANCE * numpy.mean([_variance(run) for _, run in runs]) / len(pairs)
        sums += max(0.0, float(numpy.var(effects, ddof=1)) - noise) * (len(effects) - 1)
        freedom += len(effects) - 1
    return (sums / freedom, freedom), _left(pairs, usual)


def _left(pairs, usual):
    """The multiple of the variance of its starts that each change has about the changes' median beyond what the starts
    explain: with it, half of the changes are as near as half of a normal distribution is."""
    changes = numpy.array([_mean(pair.second) - _mean(pair.first) for pair in pairs])
    squares = (changes - numpy.median(changes)) ** 2
    own = numpy.array([sum(variance for variance, _ in _own(pair, usual)) for pair in pairs])
    starts = numpy.array([_starts(pair, usual) for pair in pairs])
    squares, own, starts = (values[starts > 0] for values in (squares, own, starts))  # nothing is a multiple of 0

    def excess(multiple):
        return float(numpy.median(squares / (own + multiple * starts)) - stats.chi2.ppf(0.5, 1))

    if not len(starts) or excess(0.0) <= 0:
        return 0.0
    return optimize.brentq(excess, 0.0, 4 * float((squares / starts).max()))  # where no quotient is above 1/4


def _starts(pair, usual):
    """What the starts of a run vary by, in the difference of a run of both sides."""
    return sum(_drawn(side, one)[0] for side, one in zip((pair.first, pair.second), usual))


def _between(pairs, sides, usual):
    """Of several invocations of a side: how far their means lie apart, together and point by point."""
    every, freedom, multiples = 0.0, 0, []
    for side in sides:
        having, numbers = _full(pairs, side)
        count = len(numbers)
        runs = [[getattr(pair, side)[number] for number in numbers] for pair in having]
        means = numpy.array([[numpy.mean(list(run.values())) for run in side_runs] for side_runs in runs])
        means -= means.mean(axis=1, keepdims=True)
        every += float(numpy.var(means.mean(axis=0), ddof=1)) * (count - 1)
        rest = ((means - means.mean(axis=0)) ** 2).sum(axis=1) / (count - 1) * len(having) / max(1, len(having) - 1)
        for pair, side_runs, apart in zip(having, runs, rest):
            starts = _drawn(getattr(pair, side), usual[side == "second"])[0]
            if starts > 0:  # nothing is a multiple of 0
                multiples.append(apart / starts - numpy.mean([1 / len(run) for run in side_runs]))
        freedom += count - 1
    return (every / freedom, freedom), max(0.0, float(numpy.mean(multiples or [0.0])))


def _drawn(side, usual):
    """(what the starts of a side vary by, drawn towards what is usual, its degrees of freedom)"""
    (variance, freedom), (prior, worth) = _spread(side), usual
    return (variance * freedom + prior * worth) / (freedom + worth), freedom + worth


def _own(pair, usual):
    """What starts bring into the change, by side: (variance, its degrees of freedom)."""
    parts = []
    for side, one in zip((pair.first, pair.second), usual):
        drawn, freedom = _drawn(side, one)
        parts.append((drawn * sum(1 / len(run) for run in side.values()) / len(side) ** 2, freedom))
    return parts


def _every(pair, drift):
    return drift.every[0] * (1 / len(pair.first) + 1 / len(pair.second)), drift.every[1]


def _each(pair, drift):
    return drift.each * sum(
        _drawn(side, one)[0] / len(side) for side, one in zip((pair.first, pair.second), drift.usual)
    )


def _mean_of(group, pairs, drift):
    """The geometric mean of a benchmark, of the points that its invocations share (_full), by their common rounds."""
    sides: list[dict] = []
    pairs, first = _full(pairs, "first")
    pairs, second = _full(pairs, "second")
    for side, numbers in (("first", first), ("second", second)):
        sides.append({})
        for index in numbers:
            runs = [getattr(pair, side)[index] for pair in pairs]
            common = sorted(set.intersection(*map(set, runs)))
            sides[-1][index] = {number: float(numpy.mean([run[number] for run in runs])) for number in common}
    mean = Pair(None, group, sides[0], sides[1])
    if mean.is_enough():
        each = sum(_each(pair, drift) for pair in pairs) / len(pairs) ** 2
        mean.parts = [*_own(mean, [(0.0, 0.0)] * 2), _every(mean, drift), (each, DRIFT_FREEDOM * len(pairs))]
    return mean


def _decide(pairs, margin):
    if not pairs:
        return
    limit, tests = float(numpy.log1p(margin)), len(pairs)
    variances = numpy.array([sum(variance for variance, _ in pair.parts) for pair in pairs])
    squares = numpy.array([sum(variance**2 / freedom for variance, freedom in pair.parts) for pair in pairs])
    freedom = numpy.where(squares > 0, variances**2 / numpy.where(squares > 0, squares, 1), 1e6)
    deviation = numpy.maximum(numpy.sqrt(variances), 1e-12)
    change = numpy.array([_mean(pair.second) - _mean(pair.first) for pair in pairs])
    above, below = (change + limit) / deviation, (change - limit) / deviation
    q_worse = stats.false_discovery_control(stats.t.cdf(above, freedom))
    q_better = stats.false_discovery_control(stats.t.sf(below, freedom))
    same = numpy.maximum(stats.t.sf(above, freedom), stats.t.cdf(below, freedom))  # two one-sided tests
    width = stats.t.isf(ALPHA, freedom) * deviation
    seen = limit + (stats.t.isf(ALPHA / tests, freedom) + stats.t.isf(1 - POWER, freedom)) * deviation
    for index, pair in enumerate(pairs):
        pair.change = float(change[index])
        pair.low, pair.high = float(change[index] - width[index]), float(change[index] + width[index])
        pair.q_worse, pair.seen = float(q_worse[index]), float(numpy.expm1(min(seen[index], 50)))
        if q_worse[index] <= ALPHA:
            pair.verdict = "worse"
        elif q_better[index] <= ALPHA:
            pair.verdict = "better"
        else:
            pair.verdict = "no different" if same[index] <= 2 * ALPHA else "cannot tell"
