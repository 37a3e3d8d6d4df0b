"""Run folders: merging rounds, damaged files, and the commands that read them."""

import json
import re

import pytest
from conftest import make_point, read_results
from shmem_mt.runner.points import how_sure, tail
from shmem_mt.runner.results import RunFolder, load_results, numbered_rounds, ratio_of_results, starts_of_ratio


def test_a_round_measured_twice_counts_once(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    folder.add_point({**make_point(scale=1.0), "round": 0})
    folder.add_point({**make_point(scale=2.0), "round": 0})
    folder.add_point({**make_point(scale=2.0), "round": 1})
    folder.write_results()
    (result,) = read_results(tmp_path)
    assert result["round_sizes"] == [8, 8]
    assert result["median"] == pytest.approx(2.0, rel=0.02)


def test_one_invalid_round_makes_the_point_invalid(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    folder.add_point({**make_point(), "round": 0})
    assert folder.add_point({**make_point(valid=False), "round": 1})["valid"] is False


def test_a_line_cut_off_by_a_kill_is_dropped_on_resume(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    folder.add_point({**make_point(), "round": 0})
    with open(tmp_path / "raw.jsonl", "a", encoding="utf-8") as file:
        file.write('{"benchmark": "mess')
    again = RunFolder.open(str(tmp_path))
    again.add_point({**make_point(), "round": 1})
    assert len(RunFolder.open(str(tmp_path)).results()[0]["round_sizes"]) == 2


@pytest.mark.parametrize(
    "line,words",
    [
        ("not json", "not JSON"),
        ("[1]", "not a JSON object"),
        ("{}", "has no benchmark"),
        (
            json.dumps({**make_point(), "median": 1, "interval": [1, 2], "samples": []}),
            "samples is not a list of numbers",
        ),
        (json.dumps({**make_point(), "median": 1, "interval": [1, 2], "samples": [1, "2"]}), "samples is not a list"),
        (json.dumps({**make_point(), "median": 1, "interval": [1]}), "line 1: interval is not a list of two numbers"),
        (json.dumps({**make_point(), "median": 1, "interval": [1, 2], "params": {}}), "params"),
        (json.dumps({**make_point(), "median": 1, "interval": [1, 2], "round_sizes": [3]}), "round_sizes"),
        (json.dumps({**make_point(fabric="wire"), "median": 1, "interval": [1, 2]}), "no fabric"),
        (json.dumps({**make_point(valid="yes"), "median": 1, "interval": [1, 2]}), "valid is 'yes'"),
        (json.dumps({**make_point(), "median": float("nan"), "interval": [1, 2]}), "median is nan, not a number"),
        (json.dumps({**make_point(scale=float("nan")), "median": 1, "interval": [1, 2]}), "samples is not a list"),
        ("", "no results yet"),
    ],
)
@pytest.mark.parametrize("command", ["report", "compare"])
def test_damaged_results_are_one_line_and_status_2(shmem_mt, tmp_path, command, line, words):
    (tmp_path / "results.jsonl").write_text(line + "\n")
    status, _, stderr = shmem_mt(command, tmp_path, *([tmp_path] if command == "compare" else []))
    assert status == 2
    assert words in stderr and "results.jsonl" in stderr
    assert stderr.count("\n") == 1


def test_folders_that_are_none(shmem_mt, tmp_path):
    assert shmem_mt("report", tmp_path / "nowhere")[0] == 2
    status, _, stderr = shmem_mt("report", tmp_path)
    assert status == 2 and "not a run folder" in stderr


def test_list_names_everything(shmem_mt):
    status, stdout, _ = shmem_mt("list")
    assert status == 0
    for name in ("latency", "bandwidth", "bibandwidth", "message-rate", "fence_flag"):
        assert name in stdout


def test_results_load(run_folder):
    points = load_results(run_folder("run", {"A": 1.0}))
    assert all(len(point["samples"]) == 48 and point["starts"] == 6 for point in points)


def test_a_point_of_an_older_folder_gets_the_interval_of_its_starts(tmp_path):
    """Whatever interval an earlier version gave it."""
    samples = {"samples": [1.0, 9.0, 1.0, 2.0, 2.0, 2.0], "round_sizes": [3, 3]}
    old = {**make_point(), **samples, "median": 2, "ci95": [2, 2]}
    (tmp_path / "results.jsonl").write_text(json.dumps(old) + "\n")
    (point,) = load_results(tmp_path)
    assert (point["median"], point["interval"], point["starts"], point["confidence"]) == (1.5, [1.0, 2.0], 2, None)
    assert numbered_rounds(point) == {0: [1.0, 9.0, 1.0], 1: [2.0, 2.0, 2.0]}


def stamped(number, *seconds):
    """A round whose operations took that long, a thousand times each."""
    pairs = [[int(1e9 * one), 1000] for one in seconds]
    time = dict(benchmark="latency", metric="latency", unit="s", scale=seconds[0])
    return {**make_point(**time), "round": number, "durations_ns": pairs, "longest_s": max(seconds)}


def test_tails_are_those_of_all_starts(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    for number in range(3):
        folder.add_point(stamped(number, 1e-6, 1.02e-6, 1e-5 * (number + 1)))
    result = folder.results()[0]
    assert result["durations"]["operations"] == 9000 and result["durations"]["max"] == pytest.approx(3e-5)
    assert result["durations"]["p50"] == pytest.approx(1.02e-6, rel=0.04) and result["durations"]["p999"] is None
    assert tail(result) == "p99 30.0 µs, max 30.0 µs"
    assert "durations_ns" not in result


@pytest.mark.parametrize("bimodal,told", [(1, False), (2, True), (3, True)])
def test_two_modes_of_most_starts_are_told(tmp_path, bimodal, told):
    folder = RunFolder.open(str(tmp_path))
    for number in range(3):
        folder.add_point(stamped(number, *((1e-6, 3e-6) if number < bimodal else (1e-6, 1.02e-6))))
    words = how_sure(folder.results()[0])
    assert ("modes" in folder.results()[0]) == told
    assert words.startswith("range of 3 starts")
    assert bool(re.search(r"; two modes: 1\.0\d µs \(50 %\), 3\.0\d µs \(50 %\)$", words)) == told


def test_two_groups_of_starts_are_told(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    for number in range(6):
        folder.add_point({**make_point(scale=4.0 if number % 3 else 1.0), "round": number})
    assert how_sure(folder.results()[0]) == "95 %, 6 starts; two modes: 1.00 /s (33 %), 4.01 /s (67 %)"


def test_operations_of_a_sample_are_told_by_round(tmp_path):
    """A round that does not say so has null."""
    folder = RunFolder.open(str(tmp_path))
    for number, operations in ((2, 300), (0, 100), (1, None)):
        said = {"operations_per_sample": operations} if operations else {}
        folder.add_point({**make_point(), "round": number, **said})
        folder.add_point({**make_point(op="silent"), "round": number})
    said, silent = folder.results()
    assert said["rounds"] == [0, 1, 2] and said["operations_per_sample"] == [100, None, 300]
    assert "operations_per_sample" not in silent and "p99" not in said


def test_the_error_of_clocks_is_the_largest(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    for number, error in enumerate((1e-6, 3e-6, 2e-6)):
        folder.add_point({**make_point(), "round": number, "clock_error_s": error})
    assert folder.results()[0]["clock_error_s"] == 3e-6


def test_preemptions_of_all_starts_count(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    for number, times in enumerate((0, 3, 2)):
        folder.add_point({**make_point(), "round": number, "preempted": times})
    assert folder.results()[0]["preempted"] == 5


def test_rounds_pair_by_their_number(tmp_path):
    """A start that failed must not shift the others: the ratio is that of the rounds that both have."""
    folder = RunFolder.open(str(tmp_path))
    for label, rounds in (("A", (0, 2)), ("B", (0, 1, 2))):
        for number in rounds:
            scale = 10.0**number * (2 if label == "A" else 1)
            folder.add_point({**make_point(label, scale=scale), "round": number})
    ratio, low, high = ratio_of_results(*folder.results(), paired=True)
    assert low == pytest.approx(2) and high == pytest.approx(2) and ratio == pytest.approx(2)
    assert starts_of_ratio(*folder.results(), paired=True) == 2
    low, high = ratio_of_results(*folder.results(), paired=False)[1:]
    assert (low, high) == (pytest.approx(0.02), pytest.approx(200))  # of runs apart, whatever their numbers


def test_of_runs_apart_equal_numbers_are_no_pairs(tmp_path):
    """Drift that both have would cancel, were they pairs; the side that has fewer starts says how many values count."""
    folder = RunFolder.open(str(tmp_path))
    for number in range(6):
        folder.add_point({**make_point("A", scale=2.0**number), "round": number})
        folder.add_point({**make_point("B", scale=2.0**number), "round": number})
    first, second = folder.results()
    assert ratio_of_results(first, second, paired=True)[1:] == (1.0, 1.0)
    low, high = ratio_of_results(first, second, paired=False)[1:]
    assert low < 0.5 and high > 2
    for above, below in ((first, second), (second, first)):
        assert starts_of_ratio({**above, "starts": 7}, {**below, "starts": 9}, paired=False) == 7
        assert starts_of_ratio({**above, "starts": 9}, {**below, "starts": 7}, paired=False) == 7


def test_a_start_is_done_when_it_went_well(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    for key, status in (("good", "ok"), ("bad", "failed")):
        folder.add_job({"key": key, "status": status})
    assert (folder.has_job("good"), folder.has_job("bad"), folder.has_job("unknown")) == (True, False, False)
