"""The sides of a comparison: what is paired, and what is not comparable, to the word."""

import pytest
from conftest import make_point
from shmem_mt.comparison.runs import Run, differences, rename, rows
from shmem_mt.runner.results import RunFolder

MACHINE = {"machine": {"cpu": "CPU"}}


def run_of(*points, name="run", **machine):
    """A run of points by their place."""
    return Run(name, dict(enumerate(points)), {**MACHINE, **machine})


def merged(tmp_path, name, scale, starts=2):
    folder = RunFolder.open(str(tmp_path / name))
    for number in range(starts):
        result = folder.add_point({**make_point(scale=scale), "round": number})
    return result


@pytest.mark.parametrize(
    "first,second,told",
    [
        ([3.0, 1.0, 2.0], [5.0], (2.0, 5.0)),
        ([1.0], [6.0, 5.0], (1.0, 6.0)),
        ([4.0, 1.0, 3.0, 2.0], [9.0, 8.0, 7.0, 6.0, 5.0], (3.0, 7.0)),
    ],
)
def test_the_medians_of_a_row_are_those_of_its_runs(tmp_path, first, second, told):
    """Of an even number the larger one of the middle."""
    sides = [[run_of(merged(tmp_path, f"{side}{n}", scale)) for n, scale in enumerate(scales)]
             for side, scales in (("a", first), ("b", second))]  # fmt: skip
    (row,) = rows(*sides, None)
    assert row.medians == pytest.approx([told[0] * 1.0025, told[1] * 1.0025])
    assert row.pair.starts() == (2 * len(first), 2 * len(second))


def test_where_pes_were_bound_is_told_of_the_points_of_both_runs():
    """Those that do not say so are not compared, and hide nothing of those that do."""
    bindings = [
        *[("1 CPU a PE", "2 CPUs a PE")] * 2,
        ("free", "1 CPU a PE"),
        (None, "1 CPU a PE"),
        ("free", None),
        (None, None),
        ("free", "free"),
    ]
    sides = [
        run_of(*({"benchmark": "wait", "binding": one} if one else {"benchmark": "wait"} for one in side))
        for side in zip(*bindings)
    ]
    assert differences([sides[0]], [sides[1]], {}) == [
        "binding of 2 points: 1 CPU a PE and 2 CPUs a PE",
        "binding of 1 point: free and 1 CPU a PE",
    ]


def test_names_are_those_of_the_second_side_alone():
    """A folder may name implementations that it has no point of."""
    both = [{"label": "A", "compiler": "gcc"}, {"label": "B", "compiler": "clang"}]
    point = {**make_point("A"), "median": 1.0}
    first = [run_of(point, implementations=both), run_of(point, implementations=both)]
    second = [run_of({**make_point("B"), "median": 1.0}, implementations=[{"label": "B", "compiler": "gcc"}])]
    names = rename(first, second)
    assert names == {"B": "A"} and differences(first, second, names) == []
    assert differences(first, [run_of(point, implementations=[{"label": "A", "compiler": "icc"}])], {}) == [
        "compiler, A: gcc and icc"
    ]
