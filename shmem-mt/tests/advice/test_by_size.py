"""What sizes say together, of messages whose times are known."""

import pytest
from drawn import raw_point
from shmem_mt.advice.by_size import changes_at, half_bandwidth, step_at
from shmem_mt.advice.ranking import rank
from shmem_mt.advice.setups import Setup
from shmem_mt.runner.results import merge_rounds

ONE, TWO = Setup(2, 1, "default", "quiet"), Setup(1, 2, "private", "quiet")
WOBBLE = (1.0, 1.01, 0.99, 1.005, 0.995, 1.0)


def sizes_of(rates, starts=6, **more):
    """{bytes: ranking} of {bytes: {setup: value}}."""
    return {
        size: rank({setup: merge_rounds([raw_point(setup, value * wobble, number, size=size, **more)
                                         for number, wobble in enumerate(WOBBLE[:starts])])
                    for setup, value in values.items()})
        for size, values in rates.items()
    }  # fmt: skip


SIZES = [8 << i for i in range(0, 20, 2)]


def test_half_of_the_bandwidth_is_where_the_constant_part_is_as_long_as_the_bytes():
    """A message takes 1 us and 1 ns a byte: its bandwidth is half of the highest, 1 GB/s, at 1000 bytes."""
    rates = {size: {ONE: size / (1e-6 + 1e-9 * size), TWO: 1.0} for size in SIZES}
    assert half_bandwidth(sizes_of(rates)) == pytest.approx(1000, rel=0.05)


def test_half_of_the_bandwidth_of_what_has_none():
    flat = {size: {ONE: 1e9, TWO: 1.0} for size in (8, 64, 512)}
    assert half_bandwidth(sizes_of(flat)) == 8
    assert half_bandwidth(sizes_of({8: flat[8], 64: flat[64]})) is None
    assert half_bandwidth(sizes_of(flat, metric="time", unit="s")) is None
    falls_again = {8: {ONE: 1e8}, 64: {ONE: 2e9}, 512: {ONE: 1e8}}
    assert 8 < half_bandwidth(sizes_of(falls_again)) < 64


def test_the_size_at_which_another_setup_is_better():
    found = sizes_of({8: {ONE: 2.0, TWO: 1.0}, 64: {ONE: 3.0, TWO: 3.05}, 512: {ONE: 3.0, TWO: 4.0}})
    assert (changes_at(found, 8), changes_at(found, 64), changes_at(found, 512)) == (512, None, None)
    few = sizes_of({8: {ONE: 2.0, TWO: 1.0}, 512: {ONE: 3.0, TWO: 4.0}}, starts=3)
    assert changes_at(few, 8) is None
    assert changes_at(sizes_of({8: {ONE: 2.0}, 64: {TWO: 3.0}}), 8) is None


def test_a_larger_message_that_takes_less_time():
    """64 bytes in 10 us, 128 in 5 us, 256 in 6 us."""
    times = {64: 10e-6, 128: 5e-6, 256: 6e-6}
    of_rates = sizes_of({size: {ONE: size / seconds} for size, seconds in times.items()})
    of_times = sizes_of({size: {ONE: seconds} for size, seconds in times.items()}, metric="time", unit="s")
    for found in (of_rates, of_times):
        assert (step_at(found, 64), step_at(found, 128), step_at(found, 256)) == (128, None, None)
    few = sizes_of({size: {ONE: seconds} for size, seconds in times.items()}, starts=3, metric="time", unit="s")
    assert step_at(few, 64) is None
