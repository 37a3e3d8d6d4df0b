"""Run folders: merging rounds, damaged files, and the commands that read them."""

import json
import locale
import os
import re

import pytest
from conftest import make_point, read_results
from shmem_mt.errors import UserError
from shmem_mt.runner.points import how_sure, tail
from shmem_mt.runner.results import (
    RunFolder,
    load_results,
    numbered_rounds,
    ratio_of_results,
    starts_of_ratio,
    why_invalid,
)


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


def test_busy_cores_are_the_mean_of_all_starts(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    for number, cores in enumerate((0.5, 1.0, 1.5)):
        more = {"origin_cores": cores, **({"target_cores": 2 * cores} if number else {})}
        folder.add_point({**make_point(), "round": number, **more})
    assert (folder.results()[0]["origin_cores"], folder.results()[0]["target_cores"]) == (1.0, 2.5)


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


def test_a_result_says_what_its_rounds_said(tmp_path):
    """Each in its way: the upper median of the spreads, each reason once, the mean of the context switches."""
    said = [
        {"start_spread_s": 5e-6, "valid": False, "why": "late", "binding": "one", "voluntary_switches_per_s": 1.0},
        {"start_spread_s": None, "valid": False, "why": "wrong", "binding": "two", "voluntary_switches_per_s": 6.0},
        {"start_spread_s": 2e-6, "valid": False, "why": "late", "staggered": True, "binding": "one"},
        {"start_spread_s": 9e-6, "involuntary_switches_per_s": 8.0},
    ]
    folder = RunFolder.open(str(tmp_path))
    for number, fields in enumerate(said):
        folder.add_point({**make_point(), **fields, "round": number})
    folder.add_point({**make_point(op="silent"), "start_spread_s": None, "round": 0})
    folder.write_results()
    result, silent = read_results(tmp_path)
    assert {name: result[name] for name in sorted(result.keys() - {"samples", "params"})} == {
        "benchmark": "message-rate",
        "binding": "one or two",
        "confidence": None,
        "interval": [1.0025, 1.0025],
        "involuntary_switches_per_s": 8.0,
        "label": "A",
        "median": 1.0025,
        "metric": "rate",
        "round_sizes": [8] * 4,
        "rounds": [0, 1, 2, 3],
        "staggered": True,
        "start_spread_s": 5e-6,
        "starts": 4,
        "unit": "messages/s",
        "valid": False,
        "voluntary_switches_per_s": 3.5,
        "why": "late; wrong",
    }
    assert result["params"] == {**make_point()["params"], "fabric": "on-node"}
    assert result["samples"] == make_point()["samples"] * 4
    assert silent.keys() == result.keys() - {
        *("start_spread_s", "why", "voluntary_switches_per_s", "involuntary_switches_per_s")
    }
    assert (silent["staggered"], silent["binding"], silent["valid"]) == (False, "", True)


def test_the_spread_of_a_point_is_the_median_of_those_of_its_starts(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    for number, spread in enumerate((3e-6, 2e-6, 9e-6, 5e-6, 4e-6)):
        folder.add_point({**make_point(), "start_spread_s": spread, "round": number})
    assert folder.results()[0]["start_spread_s"] == 4e-6


def test_six_starts_have_a_confidence(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    found = [folder.add_point({**make_point(), "round": number})["confidence"] for number in range(7)]
    assert found == [None] * 5 + [0.95] * 2


def test_what_makes_a_point_invalid():
    assert why_invalid({"why": "late"}) == "late"
    assert why_invalid({}) == "the bytes are wrong, or the check failed"


def test_points_over_two_fabrics_are_two_and_the_order_of_params_makes_none(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    plain, tcp = make_point(), make_point(fabric="tcp")
    turned = {**plain, "params": dict(reversed([*plain["params"].items(), ("fabric", "on-node")]))}
    for number, point in enumerate((plain, tcp, turned)):
        folder.add_point({**point, "round": number})
    folder.write_results()
    told = [(point["params"]["fabric"], point["rounds"]) for point in load_results(tmp_path)]
    assert told == [("on-node", [0, 2]), ("tcp", [1])]


@pytest.mark.parametrize("bimodal,told", [((0, 1), False), ((0, 1, 3), True)])
def test_modes_of_half_of_the_starts_are_not_those_of_most(tmp_path, bimodal, told):
    """Of four starts; what is told is the start in the middle of those that have modes."""
    folder = RunFolder.open(str(tmp_path))
    for number in range(4):
        slow = 3e-6 + number * 1e-6 if number in bimodal else 1.02e-6
        folder.add_point(stamped(number, 1e-6, slow))
    modes = folder.results()[0].get("modes")
    assert (modes is not None) == told and (not told or modes[1][0] == pytest.approx(4e-6, rel=0.04))


def test_modes_of_two_starts_are_those_of_the_later(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    for number in range(2):
        folder.add_point(stamped(number, 1e-6, (3 + 3 * number) * 1e-6))
    assert folder.results()[0]["modes"][1][0] == pytest.approx(6e-6, rel=0.04)


def test_the_interval_of_a_folder_of_today_is_kept(tmp_path):
    """It is not made anew of the samples."""
    kept = {"median": 7.0, "interval": [6.0, 8.0], "confidence": 0.95, "starts": 1}
    (tmp_path / "results.jsonl").write_text(json.dumps({**make_point(), **kept}) + "\n")
    (point,) = load_results(tmp_path)
    assert {name: point[name] for name in kept} == kept


def test_results_are_read_to_their_last_line(tmp_path):
    """Nobody writes half of results.jsonl: an end without a newline is a point, and half a line is damage."""
    lines = [json.dumps({**make_point(op=op), "median": 1.0, "interval": [1.0, 1.0]}) for op in ("p", "put")]
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(lines))
    assert [point["params"]["op"] for point in load_results(tmp_path)] == ["p", "put"]
    path.write_text("\n".join(lines)[:-5])
    with pytest.raises(UserError, match="line 2: not JSON"):
        load_results(tmp_path)


@pytest.mark.parametrize("raw", ["", '{"benchmark": "mess'])
def test_a_folder_whose_first_line_was_never_finished_goes_on(tmp_path, raw):
    for name in ("raw.jsonl", "jobs.jsonl"):
        (tmp_path / name).write_text(raw)
    folder = RunFolder.open(str(tmp_path))
    folder.add_point({**make_point(), "round": 0})
    folder.write_results()
    assert len(read_results(tmp_path)) == 1 and (tmp_path / "logs").is_dir()


@pytest.mark.parametrize(
    "name,content,words",
    [
        ("results.jsonl", None, "Is a directory"),
        ("results.jsonl", b"\xff", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        ("machine.json", None, "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line_and_status_2(shmem_mt, run_folder, name, content, words):
    directory = run_folder("run", {"A": 1.0})
    path = f"{directory}/{name}"
    os.remove(path)
    if content is None:
        os.mkdir(path)
    else:
        with open(path, "wb") as file:
            file.write(content)
    status, _, stderr = shmem_mt("compare", directory, directory)
    assert status == 2 and stderr == f"shmem-mt: cannot read {path}: {words}\n"


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=f"^cannot make the run folder {tmp_path}/file/run: Not a directory$"):
        RunFolder.open(str(tmp_path / "file" / "run"))


def test_files_are_utf_8_whatever_the_locale_is(tmp_path):
    before = locale.setlocale(locale.LC_CTYPE)
    line = json.dumps({**make_point("µ"), "median": 1.0, "interval": [1.0, 1.0]}, ensure_ascii=False)
    (tmp_path / "results.jsonl").write_text(line + "\n", encoding="utf-8")
    try:
        locale.setlocale(locale.LC_CTYPE, "C")
        (point,) = load_results(tmp_path)
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    assert point["label"] == "µ"


def test_json_of_a_folder_is_for_people_too(tmp_path):
    folder = RunFolder.open(str(tmp_path))
    folder.write_json("machine.json", {"machine": {"cores": 2}})
    assert (tmp_path / "machine.json").read_text() == '{\n  "machine": {\n    "cores": 2\n  }\n}\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "logs", "machine.json"]
