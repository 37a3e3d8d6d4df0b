"""Run folders: merging rounds, damaged files, and the commands that read them."""

import json

import pytest
from conftest import make_point, read_results
from shmem_mt.runner.results import RunFolder, load_results


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
            json.dumps({**make_point(), "median": 1, "ci95": [1, 2], "samples": []}),
            "samples is not a list of numbers",
        ),
        (json.dumps({**make_point(), "median": 1, "ci95": [1]}), "median and ci95"),
        (json.dumps({**make_point(), "median": 1, "ci95": [1, 2], "params": {}}), "params"),
        (json.dumps({**make_point(), "median": 1, "ci95": [1, 2], "round_sizes": [3]}), "round_sizes"),
        (json.dumps({**make_point(fabric="wire"), "median": 1, "ci95": [1, 2]}), "no fabric"),
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


def test_compare_says_what_changed(shmem_mt, run_folder):
    first, second = run_folder("first", {"A": 1.0}), run_folder("second", {"A": 2.0})
    status, stdout, _ = shmem_mt("compare", first, second)
    assert status == 0
    assert "better" in stdout and "worse" not in stdout
    status, stdout, _ = shmem_mt("compare", second, first)
    assert status == 1 and "worse" in stdout


def test_compare_the_same_run(shmem_mt, run_folder):
    folder = run_folder("same", {"A": 1.0, "B": 3.0})
    status, stdout, _ = shmem_mt("compare", folder, folder)
    assert status == 0 and "worse" not in stdout and "better" not in stdout


def test_compare_two_libraries_of_different_name(shmem_mt, run_folder):
    assert shmem_mt("compare", run_folder("first", {"A": 1.0}), run_folder("second", {"B": 2.0}))[0] == 0


def test_compare_runs_with_nothing_in_common(shmem_mt, run_folder):
    status, _, stderr = shmem_mt("compare", run_folder("first", {"A": 1.0, "C": 1.0}), run_folder("second", {"B": 2.0}))
    assert status == 2 and "no implementation in common" in stderr


def test_list_names_everything(shmem_mt):
    status, stdout, _ = shmem_mt("list")
    assert status == 0
    for name in ("latency", "bandwidth", "bibandwidth", "message-rate", "fence_flag"):
        assert name in stdout


def test_results_load(run_folder):
    points = load_results(run_folder("run", {"A": 1.0}))
    assert all(len(point["samples"]) == 24 for point in points)
