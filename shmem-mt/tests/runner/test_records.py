"""What a run folder's files hold: the published schema, and that what a run writes is read back by it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import make_point
from shmem_mt.runner import records
from shmem_mt.runner.results import RunFolder, load_machine, load_results
from shmem_mt.targets import machine

PUBLISHED = Path(records.__file__).with_name("run_folder.schema.json")
EXAMPLES = {
    "results.jsonl": {**make_point(), "median": 1.0},
    "raw.jsonl": {**make_point(), "round": 0},
    "jobs.jsonl": {"key": "k"},
    "machine.json": {"machine": {"cores": 2}, "implementations": [{"label": "A"}]},
}


def test_the_published_schema_is_that_of_the_types():
    """python3 -m shmem_mt.runner.records > shmem_mt/runner/run_folder.schema.json"""
    printed = subprocess.run(
        [sys.executable, "-m", "shmem_mt.runner.records"], capture_output=True, text=True, check=True,
        cwd=PUBLISHED.parents[2],
    ).stdout  # fmt: skip
    assert printed == PUBLISHED.read_text(encoding="utf-8")
    assert json.loads(printed)["properties"].keys() == EXAMPLES.keys()


def test_every_field_says_what_it_is():
    """Messages name what was expected in those words."""
    for name, record in records.schema()["$defs"].items():
        assert record["description"] and all("description" in field for field in record["properties"].values()), name


@pytest.mark.parametrize(
    "name,changed,words",
    [
        ("results.jsonl", {"durations": {"operations": 9, "p50": "x"}}, "has no durations.p99"),
        ("results.jsonl", {"rounds": [0, 1], "round_sizes": [8]}, "rounds and round_sizes are not of one length"),
        ("results.jsonl", {"rounds": [0, 1]}, "rounds and round_sizes are not of one length"),
        ("results.jsonl", {"modes": [[1, 2, 3]]}, "modes is not a list of pairs of numbers"),
        ("results.jsonl", {"params": {"op": "p", "x": []}}, "params is not an object of texts, numbers and flags with"),
        ("results.jsonl", {"unit": "s" * 99, "why": 3}, "why is 3, not text"),
        ("results.jsonl", {"median": "m" * 99}, f"median is '{'m' * 56}..., not a number"),
        ("results.jsonl", {"median": True}, "median is True, not a number"),
        ("raw.jsonl", {"round": -1}, "round is -1, not a whole number from 0 on"),
        ("raw.jsonl", {"round": None}, "round is None, not a whole number from 0 on"),
        ("raw.jsonl", {"durations_ns": [[1, 2], [3]]}, "durations_ns is not a list of pairs of whole numbers"),
        ("jobs.jsonl", {"key": 3}, "key is 3, not text"),
        ("jobs.jsonl", {"verdicts": [3]}, "verdicts is not a list of objects"),
        ("machine.json", {"machine": {"cores": 0}}, "machine.cores is 0, not a whole number from 1 on"),
        ("machine.json", {"machine": {"cpu": ["x"]}}, "machine.cpu is not text or null"),
        ("machine.json", {"machine": []}, "machine is not an object"),
        ("machine.json", {"implementations": [{"label": 3}]}, "implementations.label is not text"),
    ],
)
def test_what_is_wrong_is_said_in_words(name, changed, words):
    assert records.parse(name, json.dumps(EXAMPLES[name])) == EXAMPLES[name]
    with pytest.raises(ValueError) as raised:
        records.parse(name, json.dumps({**EXAMPLES[name], **changed}))
    assert str(raised.value).startswith(words)


def test_what_no_type_names_is_kept():
    point = {**EXAMPLES["results.jsonl"], "later": {"version": [1]}}
    assert records.parse("results.jsonl", json.dumps(point)) == point
    assert list(records.parse("results.jsonl", json.dumps(point))["params"]) == list(point["params"])


@pytest.mark.parametrize("name", ["raw.jsonl", "jobs.jsonl"])
@pytest.mark.parametrize("line,words", [("{}", "has no "), ("[]", "not a JSON object"), ("{", "not JSON (EOF")])
def test_damage_in_what_a_run_goes_on_with_is_named_with_its_line(shmem_mt, tmp_path, name, line, words):
    folder = RunFolder.open(str(tmp_path))
    folder.add_point({**make_point(), "round": 0})
    folder.add_job({"key": "k"})
    with open(tmp_path / name, "a", encoding="utf-8") as file:
        file.write(line + "\n")
    pair = ["--oshcc", "true", "--oshrun", "true"]
    status, _, stderr = shmem_mt("run", *pair, "--only", "bandwidth", "--out", tmp_path)
    assert status == 2 and f"{name}, line 2: {words}" in stderr and stderr.count("\n") == 1


def test_damage_in_machine_json_is_named(shmem_mt, run_folder):
    run = Path(run_folder("run", {"A": 1.0}))
    for text, words in (("{", "not JSON"), ("[]", "not a JSON object"), ('{"machine": 3}', "machine is 3, not an obj")):
        (run / "machine.json").write_text(text)
        status, _, stderr = shmem_mt("compare", run, run)
        assert status == 2 and f"machine.json: {words}" in stderr and stderr.count("\n") == 1


def test_what_a_run_writes_is_read_back(tmp_path):
    """As it was written, with all that points may have, and this machine's facts."""
    folder = RunFolder.open(str(tmp_path))
    told = {"operations_per_sample": 9, "binding": "1 CPU a PE", "clock_error_s": 1e-9, "why": "", "staggered": False}
    for number in range(6):
        stamped = {"durations_ns": [[1000, 600], [3000, 500]], "longest_s": 3e-6, "checked_bytes": 64, "windows": 1}
        folder.add_point({**make_point(), **told, **stamped, "late_windows": 0, "round": number})
    folder.write_results()
    folder.add_job({"key": "k", "status": "ok", "seconds": 1.5, "points": 1, "results": ["r"], "problem": ""})
    facts = {**machine.facts(), **machine.since(machine.counters()), "hand_over_s": [5e-8]}
    folder.write_json("machine.json", {"machine": facts, "implementations": [], "settings": {"seed": 1}})
    (written,) = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert load_results(str(tmp_path)) == [{**written, "params": {**written["params"], "fabric": "on-node"}}]
    assert {"durations", "modes", "operations_per_sample", "binding"} <= written.keys()
    assert load_machine(str(tmp_path))["machine"] == facts
    raw = (tmp_path / "raw.jsonl").read_text()
    again = RunFolder.open(str(tmp_path))
    assert again.results() == folder.results() and again.has_job("k") and (tmp_path / "raw.jsonl").read_text() == raw
