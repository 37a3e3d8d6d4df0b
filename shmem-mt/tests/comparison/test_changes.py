"""The statistics of a comparison against simulated machines, on which it is known what changed."""

import numpy
import pytest
from scipy import special, stats
from shmem_mt.comparison.changes import Pair, judge

POINTS, BENCHMARKS, SAMPLES = 80, 4, 8
COMPARISONS = 100
WITHIN = 0.08  # between samples of a start
STEPS = numpy.array([3, -1, 2, -4, 1, 1, 1, -3]) / numpy.sqrt(6)  # of eight starts: mean 0, variance 1, a median beside
MEDIAN = stats.chi2.ppf(0.5, 1)  # of the squares of normal values
# From the logarithm of a variance of 7 degrees of freedom, that all points have, to that of what is usual.
USUAL_OF_8 = numpy.log(3.5) - special.digamma(3.5) + special.digamma(50) - numpy.log(50)


def run_of(random, means, deviations, starts, noise):
    """One invocation: {round: value} a point. Deviations are between starts; `noise` says what else varies."""
    values = means[:, None] + random.normal(0, 1, (POINTS, starts)) * deviations[:, None]
    values += numpy.median(random.normal(0, WITHIN, (POINTS, starts, SAMPLES)), axis=2)
    if "bursts" in noise:  # another job slows all points of a round
        values -= (random.random(starts) < 0.15) * random.exponential(0.3, starts)
    if "modes" in noise:  # a third of the points falls into one of two modes with each start
        values -= (random.random((POINTS, starts)) < 0.4) * 0.35 * (numpy.arange(POINTS) % 3 == 0)[:, None]
    if "tails" in noise:
        values += 0.05 * random.standard_t(3, (POINTS, starts))
    if "each" in noise:  # points move from run to run, one by one
        values += random.normal(0, 0.05, (POINTS, 1))
    if "drift" in noise:  # all points move together, slowly
        moved = [random.normal(0, 0.05)]
        for _ in range(starts - 1):
            moved.append(0.7 * moved[-1] + random.normal(0, 0.05 * numpy.sqrt(1 - 0.7**2)))
        values += numpy.array(moved)
    if "shift" in noise:  # all points move together from run to run, and not within one
        values += random.normal(0, 0.05)
    return [dict(enumerate(row)) for row in values]


def compared(random, starts, noise=(), runs=(1, 1), between=0.15, slower=0.0, changed=3):
    """The pairs and geometric means of a comparison in which `changed` points are slower by that share."""
    means, deviations = random.normal(0, 1, POINTS), between * numpy.exp(random.normal(0, 0.5, POINTS))
    shifted = means - numpy.log1p(slower) * (numpy.arange(POINTS) < changed)
    first = [run_of(random, means, deviations, starts, noise) for _ in range(runs[0])]
    second = [run_of(random, shifted, deviations, starts, noise) for _ in range(runs[1])]
    pairs = [
        Pair(point, f"benchmark {point % BENCHMARKS}", *(_of_point(point, side) for side in (first, second)))
        for point in range(POINTS)
    ]
    return pairs, judge(pairs, margin=0.02)


def _of_point(point, runs):
    return {number: run[point] for number, run in enumerate(runs)}


def worse(found):
    return [pair for pair in found if pair.verdict == "worse"]


@pytest.mark.parametrize(
    "starts,noise,runs",
    [
        (6, (), (1, 1)),
        (10, (), (1, 1)),
        (6, ("bursts",), (1, 1)),
        (6, ("modes",), (1, 1)),
        (6, ("tails",), (1, 1)),
        (6, ("each",), (1, 1)),
        (6, ("drift",), (1, 1)),
        (8, ("bursts", "modes", "each", "drift"), (1, 1)),
        (6, ("shift", "each"), (4, 1)),
        (6, ("shift", "each", "bursts"), (3, 3)),
    ],
)
def test_the_same_code_is_seldom_called_worse(starts, noise, runs):
    """Fewer than 5 % of the comparisons of a code with itself call anything worse."""
    random = numpy.random.default_rng(7)
    called = sum(any(map(worse, compared(random, starts, noise, runs))) for _ in range(COMPARISONS))
    assert called < 0.05 * COMPARISONS


@pytest.mark.long
@pytest.mark.parametrize("kept", [range(1), range(1, 4)])
def test_a_point_that_few_runs_have_hides_nothing_of_the_others(kept):
    """One point of each benchmark is missing from some of four baselines, which lie apart as a whole."""
    random = numpy.random.default_rng(23)
    called = 0
    for _ in range(COMPARISONS):
        pairs, _ = compared(random, 6, ("shift",), (4, 1), between=0.01)
        for pair in pairs[:BENCHMARKS]:
            pair.first = {number: pair.first[number] for number in kept}
        called += any(map(worse, (judge(pairs, margin=0.02), pairs)))
    assert called < 0.05 * COMPARISONS


@pytest.mark.parametrize("slower,between,starts", [(0.10, 0.03, 24), (0.30, 0.08, 24)])
def test_a_planted_slowdown_is_found_given_the_starts_that_it_needs(slower, between, starts):
    """In 9 of 10 of those points of which the comparison says that it could see that much."""
    random = numpy.random.default_rng(11)
    found, able = 0, 0
    for _ in range(30):
        pairs, _ = compared(random, starts, between=between, slower=slower)
        shown = [pair for pair in pairs[:3] if pair.seen <= slower]
        able += len(shown)
        found += len(worse(shown))
    assert able >= 30
    assert found >= 0.9 * able


def test_what_would_be_seen_with_more_starts():
    """A comparison that says that so many times as many starts would show 10 % is right within a factor of 2."""
    random = numpy.random.default_rng(13)
    pairs, means = compared(random, 8, between=0.03)
    factors = [pair.is_seen_with(0.1, len(pairs) + len(means), 0.02) or numpy.inf for pair in pairs]
    factor = numpy.median(factors)
    assert factor < 10
    more, _ = compared(random, int(numpy.ceil(2 * factor * 8)), between=0.03)
    assert numpy.median([pair.seen for pair in more]) < 0.1 < numpy.median([pair.seen for pair in pairs])


def test_equivalence_is_proved_and_not_taken_for_granted():
    random = numpy.random.default_rng(17)
    noisy, _ = compared(random, 6, between=0.15)
    assert not any(pair.verdict == "no different" for pair in noisy)
    first, second = ({0: dict(enumerate(random.normal(0, 1e-3, 8)))} for _ in range(2))
    quiet = [Pair(0, "b", first, second)]
    judge(quiet, margin=0.02)
    assert quiet[0].verdict == "no different"


def test_one_benchmark_slower_as_a_whole_shows_in_its_mean():
    """By so little that no point of it shows."""
    random = numpy.random.default_rng(19)
    pairs, _ = compared(random, 8, between=0.06)
    for pair in pairs:
        if pair.group == "benchmark 1":
            pair.second = {0: {number: value - 0.12 for number, value in pair.second[0].items()}}
    means = {mean.group: mean for mean in judge(pairs, margin=0.02)}
    assert means["benchmark 1"].verdict == "worse"
    assert all(mean.verdict != "worse" for group, mean in means.items() if group != "benchmark 1")


def steady(number, means, deviation=1e-6, moves=0.0):
    """A side of a point, a run for each of the means. Its starts vary by `deviation` and, with those of all points, by
    `moves`. Points of even and of odd number vary against each other, so that together they do not move by more."""
    values = deviation * (-1) ** number * STEPS + moves
    return {run: dict(enumerate(map(float, mean + values))) for run, mean in enumerate(means)}


def half_width(pair):
    return (pair.high - pair.low) / 2


def expected_width(parts):
    """Of (variance, degrees of freedom)."""
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / its for part, its in parts)
    return stats.t.isf(0.025, freedom) * numpy.sqrt(variance)


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_a_point_alone_is_judged_as_welch_would(margin):
    """It is its benchmark's mean as well, so that there are two tests."""
    random = numpy.random.default_rng(29)
    before, after = random.normal(0.2, 0.05, 7), random.normal(0, 0.1, 12)
    pair = Pair(0, "b", {0: dict(enumerate(before))}, {3: dict(enumerate(after))})
    (mean,) = judge([pair], margin)
    for one in (pair, mean):
        welch = stats.ttest_ind(after, before, equal_var=False)
        interval = welch.confidence_interval(0.95)
        assert (one.change, one.low, one.high) == pytest.approx((after.mean() - before.mean(), *interval))
        below = stats.ttest_ind(after + numpy.log1p(margin), before, equal_var=False, alternative="less")
        assert one.q_worse == pytest.approx(below.pvalue)
        deviation = (after.mean() - before.mean()) / welch.statistic
        quantiles = stats.t.isf(0.025 / 2, welch.df) + stats.t.isf(0.1, welch.df)
        assert one.seen == pytest.approx(numpy.expm1(numpy.log1p(margin) + quantiles * deviation))


@pytest.mark.parametrize("worse_by", [-1, 1])
def test_a_verdict_turns_where_its_test_does(worse_by):
    """At a chance of 2.5 % for worse and for better, and at the two one-sided tests of 5 % for no different."""
    random = numpy.random.default_rng(31)
    before, after = random.normal(0, 0.05, 9), random.normal(-0.2 * worse_by, 0.05, 9)

    def verdict(margin):
        pair = Pair(0, "b", {0: dict(enumerate(before))}, {0: dict(enumerate(after))})
        judge([pair], margin)
        return pair.verdict

    welch = stats.ttest_ind(before, after, equal_var=False)
    near, far = numpy.sort(numpy.abs(welch.confidence_interval(0.95)))
    assert verdict(numpy.expm1(near - 1e-4)) == ("worse" if worse_by > 0 else "better")
    assert verdict(numpy.expm1(near + 1e-4)) == "cannot tell"
    far = numpy.abs(welch.confidence_interval(0.9)).max()
    assert verdict(numpy.expm1(far - 1e-4)) == "cannot tell"
    assert verdict(numpy.expm1(far + 1e-4)) == "no different"


@pytest.mark.parametrize(
    "first,second,enough",
    [
        ((6,), (6,), True),
        ((5,), (6,), False),
        ((6,), (5,), False),
        ((3, 3), (2, 4), True),
        ((2, 3), (6,), False),
        ((6, 1), (6,), False),
        ((6,), (1, 6), False),
    ],
)
def test_six_starts_a_side_and_two_a_run_are_enough(first, second, enough):
    random = numpy.random.default_rng(37)
    sides = [{run: dict(enumerate(random.normal(0, 1, n))) for run, n in enumerate(side)} for side in (first, second)]
    pair = Pair(0, "b", *sides)
    means = judge([pair], 0.02)
    assert pair.starts() == (sum(first), sum(second))
    assert (pair.verdict != "too few starts", pair.seen is not None, len(means)) == (enough, enough, enough)


def test_how_many_more_starts_it_takes():
    """What the starts bring in shrinks with their number, and what runs bring in does not."""
    pair = Pair(0, "b", {}, {}, parts=[(0.01, 7), (0.02, 7), (0.0003, 2), (0.0005, 3)])
    quantiles = stats.norm.isf(0.025 / 5) + stats.norm.isf(0.1)
    wanted = (numpy.log(1.5) - numpy.log(1.02)) / quantiles
    assert pair.is_seen_with(0.5, 5, 0.02) == pytest.approx(0.03 / (wanted**2 - 0.0008))
    assert pair.is_seen_with(0.01, 5, 0.02) is None
    assert pair.is_seen_with(0.05, 5, 0.02) is None
    quiet = Pair(0, "b", {}, {}, parts=[(0.01, 7), (0.02, 7), (0.0, 2), (0.0, 3)])
    assert quiet.is_seen_with(0.01, 5, 0.02) is None


def test_starts_of_points_that_vary_alike_are_pooled():
    """As if 100 more degrees of freedom had shown what is usual; points that never vary say nothing of it."""
    pairs = [Pair(n, "b", steady(n, [0.0], 0.1), steady(n, [0.0], 0.2)) for n in range(4)]
    constant = Pair(4, "b", steady(4, [0.0], 0.0), steady(4, [0.0], 0.0))
    judge([*pairs, constant], 0.02)
    usual = numpy.array([0.01, 0.04]) * numpy.exp(USUAL_OF_8)
    drawn = (numpy.array([0.01, 0.04]) * 7 + usual * 100) / 107
    assert [half_width(pair) for pair in pairs] == pytest.approx([expected_width([(v / 8, 107) for v in drawn])] * 4)
    assert half_width(constant) == pytest.approx(expected_width([(v * 100 / 107 / 8, 107) for v in usual]))


@pytest.mark.parametrize("excess,worth", [(special.polygamma(1, 1), 2), (0.01, 100)])
def test_starts_of_points_that_vary_differently_are_hardly_pooled(excess, worth):
    """Two points. The more their variances lie apart beyond chance, the fewer degrees of freedom is the usual worth."""
    apart = numpy.sqrt(2 * (excess + special.polygamma(1, 3.5)))  # of the variances' logarithms
    deviations = 0.1 * numpy.exp(numpy.array([-1, 1]) * apart / 4)
    pairs = [Pair(n, "b", *(steady(n, [0.0], d) for _ in range(2))) for n, d in enumerate(deviations)]
    judge(pairs, 0.02)
    usual = 0.01 * numpy.exp(numpy.log(3.5) - special.digamma(3.5))
    usual *= numpy.exp(special.digamma(worth / 2) - numpy.log(worth / 2))
    noise = numpy.pi / 2 * (deviations**2).mean() / 2
    moves = numpy.median([deviations[0] * STEPS, -deviations[1] * STEPS], axis=0).var(ddof=1)
    assert moves < noise
    for pair, deviation in zip(pairs, deviations):
        drawn = (deviation**2 * 7 + usual * worth) / (7 + worth)
        assert half_width(pair) == pytest.approx(expected_width([(drawn / 8, 7 + worth)] * 2), rel=1e-6)


def test_what_moves_all_points_from_round_to_round_may_move_them_from_run_to_run():
    """Less what the median of the points moves by chance, where that is not all of it."""
    pairs = [Pair(n, "b", steady(n, [0.0], 1e-6, 0.1 * STEPS), steady(n, [0.0], 1e-6)) for n in range(4)]
    pairs[2].second = {1: pairs[2].second[0]}
    judge(pairs, 0.02)
    every = 0.01 * (1 - numpy.pi / 2 / 4) * 7 / 22
    own = 0.01 * (7 + 100 * numpy.exp(USUAL_OF_8)) / 107 / 8
    assert half_width(pairs[0]) == pytest.approx(expected_width([(own, 107), (2 * every, 22)]), rel=1e-3)


def test_what_moves_all_points_is_their_median_less_what_it_moves_by_chance():
    """Of three points that vary by 0.1 to 0.4 around what moves all of them."""
    random = numpy.random.default_rng(43)
    values = random.normal(0, 1, (3, 8)) * [[0.1], [0.2], [0.4]] + random.exponential(0.5, 8)
    pairs = [Pair(n, "b", *({0: dict(enumerate(values[n]))} for _ in range(2))) for n in range(3)]
    (mean,) = judge(pairs, 0.02)
    moves = numpy.median(values - values.mean(axis=1, keepdims=True), axis=0)
    every = moves.var(ddof=1) - numpy.pi / 2 * values.var(axis=1, ddof=1).mean() / 3
    assert every > 0
    own = values.mean(axis=0).var(ddof=1) / 8
    assert half_width(mean) == pytest.approx(expected_width([(own, 7), (own, 7), (2 * every, 14)]))


def test_what_the_starts_leave_unexplained_of_the_changes_is_what_moves_each_point():
    """The median change is of no point: the squared distances from it are told by their own median."""
    changes = numpy.array([0.0, 0.01, 0.03, -0.02, 0.5, 0.04, -0.4])
    pairs = [Pair(n, "b", steady(n, [0.0]), steady(n, [change])) for n, change in enumerate(changes)]
    (mean,) = judge(pairs, 0.02)
    each = 0.03**2 / MEDIAN
    assert numpy.median(abs(changes)) == 0.03
    parts = [(each, 3)]
    assert [half_width(pair) for pair in pairs] == pytest.approx([expected_width(parts)] * 7, rel=1e-3)
    assert half_width(mean) == pytest.approx(expected_width([(each / 7, 21)]), rel=1e-3)


def test_of_what_each_point_moves_by_the_starts_explain_their_part():
    """The changes lie so far apart that a fifth of the variance of a start is left."""
    scale = numpy.array([-20, -3, -1, -0.5, 0.5, 1, 3, 20])  # the median of the squares is 5
    variance = 0.01 * (7 + 100 * numpy.exp(USUAL_OF_8)) / 107
    changes = scale * numpy.sqrt(MEDIAN * (variance / 4 + 2 * variance / 5) / 5)
    pairs = [Pair(n, "b", steady(n, [0.0], 0.1), steady(n, [change], 0.1)) for n, change in enumerate(changes)]
    judge(pairs, 0.02)
    parts = [(variance / 8, 107)] * 2 + [(2 * variance / 5, 3)]
    assert [half_width(pair) for pair in pairs] == pytest.approx([expected_width(parts)] * 8)


@pytest.mark.parametrize("runs", [(2, 1), (3, 1), (1, 3), (3, 4)])
def test_runs_that_lie_apart_as_a_whole_widen_the_interval_of_each_point_and_mean(runs):
    shifts = [0.1 * numpy.array([0, 1, -2, 4])[:count] for count in runs]
    pairs = [Pair(n, "b", *(steady(n, n + shift) for shift in shifts)) for n in range(3)]
    (mean,) = judge(pairs, 0.02)
    freedom = sum(runs) - 2
    every = sum(shift.var() * len(shift) for shift in shifts) / freedom * (1 / runs[0] + 1 / runs[1])
    assert [half_width(pair) for pair in [*pairs, mean]] == pytest.approx([expected_width([(every, freedom)])] * 4)
    assert mean.change == pytest.approx(shifts[1].mean() - shifts[0].mean())


def test_points_that_move_one_by_one_from_run_to_run_widen_their_own_intervals():
    """In the mean of a benchmark they cancel out in part."""
    shifts = 0.1 * numpy.array([0, 1, 2, -3])
    pairs = [Pair(n, "b", *(steady(n, n + (-1) ** n * shifts) for _ in range(2))) for n in range(2)]
    (mean,) = judge(pairs, 0.02)
    each = (shifts**2).sum() / 3 * 2 * (1 / 4 + 1 / 4)
    assert [half_width(pair) for pair in pairs] == pytest.approx([expected_width([(each, 3)])] * 2)
    assert half_width(mean) == pytest.approx(expected_width([(each / 2, 6)]))


@pytest.mark.parametrize("several", ["first", "second"])
def test_what_the_starts_explain_of_how_runs_lie_apart_is_not_counted_twice(several):
    """Of two points that move against each other between runs of eight starts, and one of four."""
    shifts, lengths = 0.1 * numpy.array([0, 1, 2, -3]), numpy.array([8, 8, 8, 4])
    pairs = [Pair(n, "b", steady(n, (-1) ** n * shifts, 0.1), steady(n, [0.0], 0.3)) for n in range(2)]
    for pair in pairs:
        pair.first[3] = {number: pair.first[3][number] for number in range(4)}
        if several == "second":
            pair.first, pair.second = pair.second, pair.first
    judge(pairs, 0.02)
    squares = numpy.array([0.01 * (3 * 7 + 5), 0.09 * 7])
    freedom = numpy.array([24, 7])
    usual = squares / freedom * numpy.exp(numpy.log(freedom / 2) - special.digamma(freedom / 2))
    drawn = (squares + 100 * usual * numpy.exp(special.digamma(50) - numpy.log(50))) / (freedom + 100)
    each = (shifts**2).sum() / 3 * 2 / drawn[0] - (1 / lengths).mean()
    own = [(drawn[0] * (1 / lengths).sum() / 16, 124), (drawn[1] / 8, 107)]
    assert half_width(pairs[0]) == pytest.approx(expected_width([*own, (each * (drawn[0] / 4 + drawn[1]), 3)]))


@pytest.mark.filterwarnings("error")
def test_runs_of_two_starts_show_how_far_starts_lie_apart():
    first = {run: {0: -0.1, 1: 0.1} for run in range(3)}
    pair = Pair(0, "b", first, steady(0, [0.0], 0.2))
    judge([pair], 0.02)
    assert half_width(pair) == pytest.approx(expected_width([(0.02 / 6, 3), (0.04 / 8, 7)]))


@pytest.mark.parametrize("points,own", [(7, False), (8, True)])
def test_a_benchmark_of_eight_points_shows_itself_how_far_its_runs_lie_apart(points, own):
    """One of seven takes it from all points; one that shows less than all of them takes theirs."""
    shifts, share = 0.1 * numpy.array([0, 1, -1]), points / (points + 24)
    pairs = [Pair(n, "apart" if n < points else "still", {}, steady(n, [0.0] * 3)) for n in range(points + 24)]
    for n, pair in enumerate(pairs):
        pair.first = steady(n, n + shifts * (n < points))
    judge(pairs, 0.02)
    scale = 0.01 / 2 * (1 / 3 + 1 / 3)  # of the second side's runs none moves
    each = (scale * share * (1 - share) * len(pairs) / (len(pairs) - 1), 3)
    together = (scale * share**2, 4)
    assert half_width(pairs[0]) == pytest.approx(expected_width([(scale, 4) if own else together, each]))
    assert half_width(pairs[-1]) == pytest.approx(expected_width([together, each]))


def test_a_benchmark_of_eight_points_shows_itself_how_far_each_of_them_moves():
    shifts = 0.1 * numpy.array([0, 1, -1])
    pairs = [
        Pair(n, "b" if n < 8 else "c", steady(n, (-1) ** n * shifts * (n < 8)), steady(n, [0.0] * 3)) for n in range(32)
    ]
    judge(pairs, 0.02)
    scale = 0.01 / 2 * (1 / 3 + 1 / 3)
    assert half_width(pairs[0]) == pytest.approx(expected_width([(scale * 8 / 7, 3)]))
    assert half_width(pairs[-1]) == pytest.approx(expected_width([(scale * 8 / 31, 3)]))


def test_all_tests_of_a_comparison_are_adjusted_together():
    """As Benjamini and Hochberg do; the benchmarks' means, each of one point here, count as tests of their own."""
    random = numpy.random.default_rng(41)
    pairs = [
        Pair(n, n, *({0: dict(enumerate(random.normal(mean, 0.1, 8)))} for mean in (0, -0.05 * n))) for n in range(4)
    ]
    means = judge(pairs, 0.0)
    both = [*pairs, *means]
    changes, widths = numpy.array([(one.change, half_width(one)) for one in both]).T
    freedoms = []
    for one in both:
        freedoms.append(sum(v for v, _ in one.parts) ** 2 / sum(v**2 / f for v, f in one.parts))
    below = stats.t.cdf(changes / widths * stats.t.isf(0.025, freedoms), freedoms)
    assert [one.q_worse for one in both] == pytest.approx(stats.false_discovery_control(below))


def test_the_mean_of_a_benchmark_is_of_what_its_points_have_in_common():
    """So many runs and points that they say most of how runs differ, and of these the rounds that all points have."""
    pairs = [Pair(n, "b", steady(n, [0.0] * 4), steady(n, [0.2])) for n in range(4)]
    pairs[3].first = {2: pairs[3].first[2]}
    del pairs[0].first[1][0], pairs[1].first[1][3]
    pairs[3].second[0].clear()
    pairs[3].second[0].update(enumerate([9.0] * 6 + [9.1] * 2))
    (mean,) = judge(pairs, 0.02)
    assert list(mean.first) == [0, 1, 2, 3] and mean.starts() == (30, 8)
    assert sorted(mean.first[1]) == [1, 2, 4, 5, 6, 7]
    assert mean.change == pytest.approx(0.2, abs=1e-5)


def test_a_benchmark_whose_points_have_no_round_in_common_has_no_mean():
    pairs = [Pair(n, "b", steady(n, [0.0]), steady(n, [0.0])) for n in range(2)]
    pairs[1].first = {0: {number + 8: value for number, value in pairs[1].first[0].items()}}
    (mean,) = judge(pairs, 0.02)
    assert (mean.verdict, mean.starts()) == ("too few starts", (0, 8))
    assert all(pair.verdict == "no different" for pair in pairs)


@pytest.mark.parametrize("counts,kept", [((4, 2, 2, 2), 2), ((3, 3, 2), 3), ((3, 2), 2)])
def test_the_runs_that_count_are_those_that_show_most_differences(counts, kept):
    """Each point that has n runs shows n - 1. Of equals, those count that more points have."""
    pairs = [Pair(n, "b", steady(n, [0.0] * count), steady(n, [0.2])) for n, count in enumerate(counts)]
    assert list(judge(pairs, 0.02)[0].first) == list(range(kept))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("runs", [1, 3])
def test_points_whose_starts_do_not_vary_are_compared_all_the_same(runs):
    changes = [0.0, 0.0, -0.3, 0.3, 0.01]
    pairs = [Pair(n, "b", steady(n, [0.0] * runs, 0.0), steady(n, [change], 0.0)) for n, change in enumerate(changes)]
    judge(pairs, 0.02)
    assert [pair.verdict for pair in pairs] == ["no different", "no different", "worse", "better", "no different"]


def test_a_point_whose_starts_do_not_vary_hides_nothing_of_the_others():
    """How far its runs lie apart is no multiple of how far its starts do."""
    restless = Pair(0, "b", steady(0, [0.0] * 3, 0.1), steady(0, [1.0], 0.1))
    constant = Pair(1, "b", steady(1, [0.0, 0.01, 0.0], 0.0), steady(1, [0.0], 0.0))
    judge([restless, constant], 0.02)
    assert restless.verdict == "better"


def test_runs_whose_starts_do_not_vary_say_nothing_of_the_other_side():
    """What moves a point from run to run is a multiple of what moves its starts, and of nothing there is none."""
    pair = Pair(0, "b", steady(0, [0.0] * 3, 0.0), steady(0, [0.0], 0.1))
    judge([pair], 0.02)
    assert half_width(pair) == pytest.approx(expected_width([(0.01 / 8, 7)]))


@pytest.mark.filterwarnings("error")
def test_what_does_not_vary_at_all_is_no_change_beyond_a_margin_of_nothing():
    pairs = [Pair(n, "b", steady(n, [0.0], 0.0), steady(n, [0.0], 0.0)) for n in range(2)]
    judge(pairs, 0.0)
    assert [pair.verdict for pair in pairs] == ["cannot tell"] * 2


def test_what_would_be_seen_is_a_number_however_much_the_starts_vary():
    """JSON has no infinity."""
    pair = Pair(0, "b", steady(0, [0.0], 1e4), steady(0, [0.0], 1e4))
    judge([pair], 0.02)
    assert pair.seen == pytest.approx(numpy.exp(50))
