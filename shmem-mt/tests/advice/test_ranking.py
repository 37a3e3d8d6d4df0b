"""Which setup is called best, and when that cannot be told."""

import pytest
from drawn import raw_point
from shmem_mt.advice.ranking import BEST, CANNOT_TELL, rank
from shmem_mt.advice.setups import Setup, questions
from shmem_mt.runner.results import merge_rounds

QUIET = Setup(4, 1, "default", "quiet", level="multiple")
MERGED = Setup(4, 1, "private", "request_merged", level="multiple")
THREADED = Setup(1, 4, "shared", "barrier_all", level="multiple")
EACH = Setup(1, 4, "default", "quiet_each", level="multiple")


def result(setup, values, **more):
    return merge_rounds([raw_point(setup, value, number, **more) for number, value in enumerate(values)])


def ranked(by_setup, **more):
    return rank({setup: result(setup, values, **more) for setup, values in by_setup.items()})


SIX = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0]


def scaled(factor, values=SIX):
    return [factor * value for value in values]


def test_the_best_its_margin_and_what_is_near():
    found = ranked({QUIET: scaled(10), MERGED: scaled(12), THREADED: scaled(11.8), EACH: scaled(6)})
    assert (found.best, found.verdict, found.why) == (MERGED, BEST, "")
    assert list(found.behind) == [THREADED, QUIET, EACH] and found.near == [THREADED]
    margin = found.behind[THREADED]
    assert margin.ratio == pytest.approx(12 / 11.8) and margin.starts == 6 and margin.is_sure
    assert found.default == QUIET and found.times(QUIET).loss[0] == pytest.approx(1 - 10 / 12)
    assert found.worst_common == EACH


def test_of_times_the_lower_is_better():
    found = ranked({QUIET: scaled(1e-6), MERGED: scaled(2e-6)}, metric="time", unit="s")
    assert found.best == QUIET and found.behind[MERGED].ratio == pytest.approx(2)
    assert found.times(found.default).loss == (0, 0, 0)


def test_starts_of_one_round_are_compared():
    """All that a round does to both is no difference."""
    moves = [1.0, 2.0, 0.5, 3.0, 1.5, 0.7]
    found = ranked({QUIET: scaled(10, moves), MERGED: scaled(11, moves)})
    assert found.verdict == BEST and found.behind[QUIET].low == pytest.approx(1.1)


@pytest.mark.parametrize(
    "by_setup,why",
    [
        ({QUIET: SIX[:5], MERGED: scaled(2)[:5]}, "5 starts each, and an interval needs 6"),
        ({QUIET: SIX[:1]}, "only one setup was measured"),
        ({QUIET: [1, 3, 1, 3, 1, 3], MERGED: [3, 1, 3, 1, 3, 1.1]}, "may be up to"),
        ({QUIET: SIX, MERGED: [1.1]}, "was not behind in 1 start"),
    ],
)
def test_it_says_why_it_cannot_tell(by_setup, why):
    found = ranked(by_setup)
    assert found.verdict == CANNOT_TELL and why in found.why


def test_two_that_differ_by_less_than_matters_are_no_reason_not_to_tell():
    found = ranked({QUIET: SIX, MERGED: [1.0, 0.99, 1.01, 1.0, 1.01, 0.99]})
    assert found.verdict == BEST and len(found.near) == 1


def test_of_two_that_are_equal_the_plainer_one_is_best():
    assert ranked({MERGED: SIX, EACH: SIX, QUIET: SIX}).best == QUIET


def test_few_starts_are_not_chosen_over_many():
    found = ranked({QUIET: SIX, MERGED: [0.9]})
    assert found.best == QUIET and found.verdict == BEST
    assert not found.times(MERGED).is_sure
    assert ranked({QUIET: SIX, MERGED: [5.0]}).best == QUIET


def test_points_that_say_nothing_are_left_out():
    good = {**result(QUIET, SIX)}
    bad = [{**good, "valid": False}, {**good, "benchmark": "latency"}, {**good, "metric": "rate"}]
    bad += [{**good, "params": {**good["params"], "oversubscribed": True}}]
    bad += [{**good, "samples": [0.0, *good["samples"][1:]]}]
    assert questions(bad) == {}
    other = {**good, "params": {**good["params"], "link_rate": "100mbit"}}
    (one, two) = questions([good, other, *bad])
    assert (one.op, one.size_bytes, one.where) == ("stream", 1024, ()) and two.where == (("link_rate", "100mbit"),)
    assert two.of_other_size(8).size_bytes == 8


def test_the_default_is_a_pe_a_core_under_the_plainest_completion():
    single = Setup(4, 1, "default", "quiet", level="single")
    told = Setup(4, 1, "default", "quiet", setting="channels:2", level="single")
    every = {QUIET: SIX, single: SIX, told: SIX, Setup(2, 1, "default", "quiet", level="single"): SIX, EACH: SIX}
    assert ranked(every).default == single
    assert ranked({EACH: SIX, MERGED: SIX}).default is None
    assert ranked({Setup(4, 1, "default", "fence_flag"): SIX, EACH: SIX}).default.sync == "fence_flag"
    assert ranked({MERGED: SIX, THREADED: SIX}).worst_common is None


def test_times_of_fewer_cores_are_not_compared():
    """A sum over two PEs takes less than one over eight, and a round trip beside one other less than beside four. Of
    throughput fewer cores that get more are better."""
    few, many, threads = (Setup(p, t, "default", "blocking", level="multiple") for p, t in ((2, 1), (8, 1), (1, 8)))
    for op, metric, unit, best in (("collective", "time", "s", threads), ("stream", "throughput", "bytes/s", many)):
        points = [result(setup, scaled(value), op=op, metric=metric, unit=unit)
                  for setup, value in ((few, 2e-6), (many, 9e-6), (threads, 8e-6))]  # fmt: skip
        (results,) = questions(points).values()
        assert rank(results).best == best and (few in results) == (metric == "throughput")


def test_the_default_and_the_worst_choice_use_all_cores():
    """Two PEs on eight cores are not a PE a core, and lose by the cores that they leave idle."""
    few, threads, mixed = (Setup(p, t, "private" if t > 1 else "default", "quiet") for p, t in ((2, 1), (1, 8), (4, 2)))
    found = ranked({few: scaled(1), threads: scaled(4), mixed: scaled(3)})
    assert found.best == threads and few in found.behind
    assert (found.default, found.worst_common) == (None, mixed)
