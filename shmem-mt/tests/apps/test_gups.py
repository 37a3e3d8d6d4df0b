"""Random updates and the hash table: right with any number of PEs, threads and words; what is wrong is seen."""

import json
import subprocess

import pytest
from conftest import app_events, app_verdicts, compiled_without, run_points
from shmem_mt.catalogue import catalogue
from shmem_mt.targets.libraries import Heddle

FORMS = catalogue.select(["gups"])[0].ops
UPDATES, HASHES = {"atomic", "private", "windowed", "batched"}, {"hash", "hash_nbi", "hash_batched"}
SHORT = ["--size", "2000", "--samples", "1", "--sample-ms", "0.1", "--point-ms", "1"]


def possible(implementation):
    """The forms that must be there."""
    found = {"atomic", "hash"}
    found |= {"hash_nbi"} if implementation.features["SHMEM_MT_HAVE_FETCH_NBI"] else set()
    found |= {"private", "windowed"} if implementation.features["SHMEM_MT_HAVE_CTX"] else set()
    batched = {"batched", "hash_batched"} if implementation.features["SHMEM_MT_HAVE_CTX"] else {"hash_batched"}
    return found | (batched if implementation.features["SHMEM_MT_HAVE_SHMEMX"] else set())


def assert_right(implementation, found, words, pes):
    assert set(found) == possible(implementation)
    for form, verdict in found.items():
        assert verdict["verdict"] == "pass" and verdict["words"] == words, form
        if form in UPDATES:
            assert verdict["wrong_words"] == 0
        else:
            assert verdict["entries"] == verdict["keys"] == -(-words // pes) * pes // 4 * 2


@pytest.mark.parametrize(
    "pes,threads,words",
    [(1, 1, 256), (1, 3, 1021), (2, 1, 8191), (2, 2, 600), (3, 1, 3000),
     (3, 2, 771), (4, 1, 3997), (4, 3, 2048), (6, 1, 4659), (6, 2, 6144)],
)
def test_every_form_is_right(implementation, pes, threads, words):
    found = app_verdicts(implementation, "gups", pes, threads, "--size", str(words))
    assert_right(implementation, found, words, pes)


@pytest.mark.parametrize("seed", [0, 2, 999999999])
def test_keys_may_be_others(implementation, seed):
    """With some of them a search goes on at the first word of a part behind the last."""
    found = app_verdicts(implementation, "gups", 3, 2, "--form", "hash", "--seed", str(seed), "--size", "6000")
    assert {(v["verdict"], v["seed"], v["entries"]) for v in found.values()} == {("pass", seed, 3000)}


def test_they_are_right_over_a_network(implementation):
    if not isinstance(implementation, Heddle):
        pytest.skip("SHMEM-MT knows only how to tell Heddle to make each PE a node of its own")
    environment = ["--env", "HEDDLE_NET_TRANSPORTS=tcp", "--env", "HEDDLE_TEST_PES_PER_NODE=1"]
    command = implementation.launch_command("gups", 3, 2, [*SHORT, "--threads", "2"])
    place = command.index("-n")
    command = [*command[:place], *environment, *command[place:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert_right(implementation, {e["form"]: e for e in found if e["event"] == "verdict"}, 2000, 3)


def test_points_add_up(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "gups", 2, 1, *SHORT, "--samples", "3")
    by_name = {(p["params"]["op"], p["metric"], p["params"]["part"], p["unit"]): p for p in points}
    assert len(by_name) == len(points)
    for form in possible(implementation):
        phases = ("update",) if form in UPDATES else ("insert", "lookup")
        work, unit = (8000, "updates/s") if form in UPDATES else (2500, "operations/s")
        rate, total = by_name[form, "rate", "total", unit], by_name[form, "time", "total", "s"]
        parts = [by_name[form, "time", part, "s"] for part in (*phases, "compute")]
        for each in (rate, total, *parts):
            assert each["valid"] is True and each["params"]["words"] == 2000 and each["params"]["pes"] == 2
        for r, seconds, *split in zip(*(p["samples"] for p in (rate, total, *parts))):
            assert min(split[:-1]) > 0 and sum(split) == pytest.approx(seconds, rel=1e-6)
            assert r == pytest.approx(work / seconds, rel=1e-6)
        if form in UPDATES:
            bounded = form in ("windowed", "batched")  # as RandomAccess wants it
            name = "atomic RandomAccess" if bounded else "atomic updates"
            merit = by_name[form, "figure_of_merit", name, "GUP/s"]["samples"]
            assert merit == pytest.approx([1e-9 * r for r in rate["samples"]], rel=1e-6)


@pytest.mark.parametrize(
    "fault,forms",
    [
        ("one-pe-reduction", UPDATES | HASHES),
        ("check-never-runs", UPDATES | HASHES),
        ("skipped-operation", UPDATES | HASHES),
        ("stale-result", UPDATES | HASHES),
        ("last-element-missing", UPDATES | HASHES),
        ("skipped-computation", HASHES),
    ],
)
def test_faults_are_caught(implementation, fault, forms):
    forms = forms & possible(implementation)
    found = app_events(implementation, "gups", 2, 2, "--plant-fault", fault, "--form", ",".join(sorted(forms)))
    failed = {event["form"] for event in found if event["event"] == "verdict" and event["verdict"] == "fail"}
    assert failed == forms
    points = [event for event in found if event["event"] == "point"]
    assert points and {point["valid"] for point in points} == {False}


@pytest.mark.parametrize(
    "feature,missing",
    [
        ("SHMEM_MT_HAVE_SHMEMX", {"batched", "hash_batched"}),
        ("SHMEM_MT_HAVE_CTX", {"private", "windowed", "batched"}),
        ("SHMEM_MT_HAVE_FETCH_NBI", {"hash_nbi"}),
    ],
)
def test_forms_missing_are_skipped_by_name(implementation, tmp_path, feature, missing):
    without = compiled_without(implementation, tmp_path, "gups", feature)
    points, skipped = run_points(without, tmp_path, "gups", 2, 1, *SHORT)
    assert missing <= skipped
    assert {p["params"]["op"] for p in points} == set(FORMS) - skipped == possible(without)


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--size", "255"], "--size 255: the table needs 256 words or more"),
        (["--size", "2e9"], "--size: '2e9' is not a number between 1 and 1e+09"),
        (["--form", "get_put"], "unknown operation get_put; there are atomic, private,"),
        (["--seed", "-1"], "--seed: '-1' is not a number between 0 and"),
    ],
)
def test_bad_options_end_with_status_2(implementation, arguments, words):
    done = subprocess.run([implementation.binaries["gups"], *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_table_that_does_not_fit_is_told(implementation):
    command = implementation.launch_command("gups", 2, 1, ["--size", "1000000000"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode != 0
    assert "shmem_align of 4000000000 bytes failed: raise SHMEM_SYMMETRIC_SIZE" in done.stderr


def test_a_part_that_is_too_small_is_told(implementation):
    command = implementation.launch_command("gups", 4, 1, ["--size", "1000"])
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode != 0
    assert "--size 1000 for 4 PEs: the table needs 256 words or more on each" in done.stderr
