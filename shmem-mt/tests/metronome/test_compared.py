"""Two runs of the metronome, the second of a library that is 10 % slower, through `shmem-mt compare`."""

import json

import pytest
from metronome import Times, measure
from shmem_mt.runner.results import RunFolder

SLOWER = 1.1
ASKED = {
    "latency": ["--ops", "put_round_trip,g,atomic_fetch_add,barrier_all", "--sizes", "64"],
    "message_rate": ["--ops", "put,get_nbi,consumed", "--sizes", "64", "--placements", "heap"],
    "bandwidth": ["--ops", "put", "--sizes", "4096"],
}


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    """The run folders of the library and of the slower one."""
    made = []
    for scale in (1, SLOWER):
        path = tmp_path_factory.mktemp("run")
        folder = RunFolder.open(str(path))
        for number in range(6):
            for program, arguments in ASKED.items():
                points = measure(path, program, Times(scale), *arguments, "--contexts", "private")
                for point in points:
                    folder.keep_point({**point, "label": "metronome", "round": number})
        folder.write_results()
        folder.write_json("machine.json", {"machine": {"cpu": "none", "cores": 2}})
        made.append(str(path))
    return made


@pytest.mark.parametrize("turned", [False, True])
def test_a_library_that_is_slower_by_a_tenth_is_called_so(shmem_mt, sides, tmp_path, turned):
    """By that tenth, be the metric a time or a rate; the other way round it is better by as much."""
    status, _, _ = shmem_mt("compare", *(reversed(sides) if turned else sides), "--json", tmp_path / "told.json")
    told = json.loads((tmp_path / "told.json").read_text())
    better_by = SLOWER if turned else 1 / SLOWER
    assert status == (0 if turned else 1) and told["not_comparable"] == []
    assert {point["metric"] for point in told["points"]} == {"latency", "rate", "consumed_rate", "bandwidth"}
    for point in told["points"]:
        assert point["verdict"] == ("better" if turned else "worse") and point["starts"] == [6, 6]
        assert point["better_by"] == pytest.approx(better_by, rel=0.005)
        first, second = point["medians"]
        assert (second > first) == ((point["metric"] == "latency") != turned)
    for mean in told["geometric_means"]:
        assert mean["better_by"] == pytest.approx(better_by, rel=0.005)
    assert len(told["geometric_means"]) == 3
