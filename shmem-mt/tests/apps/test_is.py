"""Integer sort: every form ranks as published, on any number of PEs and threads, and a wrong answer is seen as one."""

import json
import subprocess

import pytest
from conftest import app_verdicts, compiled_without, run_points
from shmem_mt.catalogue import catalogue
from shmem_mt.targets.libraries import Heddle

FORMS = catalogue.select(["is"])[0].ops
SHORT = ["--class", "S", "--samples", "1", "--sample-ms", "0.1", "--point-ms", "1"]


def possible(implementation):
    """The forms that must be there."""
    found = {"default"}
    if implementation.features["SHMEM_MT_HAVE_CTX"]:
        found |= {"private", "pieces"} | ({"requests"} if implementation.features["SHMEM_MT_HAVE_SHMEMX"] else set())
    return found


def assert_sorted(implementation, found):
    assert set(found) == possible(implementation)
    assert {verdict["verdict"] for verdict in found.values()} == {"pass"}


@pytest.mark.parametrize(
    "pes,threads",
    [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 3), (6, 1), (6, 2)],
)
def test_every_form_sorts(implementation, pes, threads):
    assert_sorted(implementation, app_verdicts(implementation, "is", pes, threads))


@pytest.mark.parametrize("name", ["W", "A", "B"])
def test_larger_classes_are_sorted(implementation, name):
    """Each class changes its ranks from iteration to iteration by a rule of its own."""
    found = app_verdicts(implementation, "is", 2, 2, "--class", name)
    assert_sorted(implementation, found)
    assert {verdict["keys"] for verdict in found.values()} == {{"W": 1 << 20, "A": 1 << 23, "B": 1 << 25}[name]}


@pytest.mark.parametrize("pieces", [1, 7, 64])
def test_any_number_of_pieces_will_do(implementation, pieces):
    found = app_verdicts(implementation, "is", 3, 2, "--pieces", str(pieces))
    assert_sorted(implementation, found)
    in_pieces = {"pieces", "requests"}
    assert {form: verdict["pieces"] for form, verdict in found.items()} == {
        form: pieces if form in in_pieces else 1 for form in found
    }


def test_active_sets_and_flags_will_do(implementation, tmp_path):
    """As with a library before OpenSHMEM 1.5."""
    missing = ("SHMEM_MT_HAVE_TEAM_COLLECTIVES", "SHMEM_MT_HAVE_PUT_SIGNAL")
    old = compiled_without(implementation, tmp_path, "is", *missing)
    assert_sorted(implementation, app_verdicts(old, "is", 3, 2))


def test_it_sorts_over_a_network(implementation):
    if not isinstance(implementation, Heddle):
        pytest.skip("SHMEM-MT knows only how to tell Heddle to make each PE a node of its own")
    environment = ["--env", "HEDDLE_NET_TRANSPORTS=tcp", "--env", "HEDDLE_TEST_PES_PER_NODE=1"]
    command = implementation.launch_command("is", 3, 2, [*SHORT, "--threads", "2"])
    place = command.index("-n")
    command = [*command[:place], *environment, *command[place:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert_sorted(implementation, {event["form"]: event for event in found if event["event"] == "verdict"})


def test_points_add_up(implementation, tmp_path):
    points, _ = run_points(implementation, tmp_path, "is", 2, 1, *SHORT, "--samples", "3")
    by_name = {(p["params"]["op"], p["metric"], p["params"]["part"], p["unit"]): p for p in points}
    assert len(by_name) == len(points)
    phases = ("count", "reduce", "pack", "exchange", "rank", "compute")
    for form in possible(implementation):
        rate = by_name[form, "rate", "total", "keys/s"]
        total = by_name[form, "time", "total", "s"]
        parts = [by_name[form, "time", part, "s"] for part in phases]
        share = by_name[form, "communication", "communication", "%"]
        for each in (rate, total, share, *parts):
            assert each["valid"] is True and each["params"]["class"] == "S" and each["params"]["pes"] == 2
        for r, seconds, percent, *split in zip(*(p["samples"] for p in (rate, total, share, *parts))):
            assert min(split[:-1]) > 0 and sum(split) == pytest.approx(seconds, rel=1e-6)
            assert r == pytest.approx(10 * 65536 / seconds, rel=1e-6)
            assert percent == pytest.approx(100 * (split[1] + split[3]) / seconds, rel=1e-6)
        merit = by_name[form, "figure_of_merit", "total", "Mop/s"]["samples"]
        assert merit == pytest.approx([1e-6 * r for r in rate["samples"]], rel=1e-6)


@pytest.mark.parametrize(
    "feature,missing",
    [("SHMEM_MT_HAVE_SHMEMX", {"requests"}), ("SHMEM_MT_HAVE_CTX", {"private", "pieces", "requests"})],
)
def test_forms_missing_are_skipped_by_name(implementation, tmp_path, feature, missing):
    without = compiled_without(implementation, tmp_path, "is", feature, "SHMEM_MT_HAVE_SHMEMX")
    points, skipped = run_points(without, tmp_path, "is", 2, 1, *SHORT)
    assert missing <= skipped
    assert {p["params"]["op"] for p in points} == set(FORMS) - skipped


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["--class", "D"], "--class: there is no class D; there are S, W, A, B, C"),
        (["--size", "7"], "--size 7: there are tiny (class S), small (W), medium (A) and large (C)"),
        (["--form", "odd"], "unknown operation odd; there are default, private, pieces, requests"),
        (["--pieces", "65"], "--pieces: '65' is not a number between 1 and 64"),
        (["--threads", "0"], "--threads: '0' is not a number between 1 and"),
    ],
)
def test_bad_options_end_with_status_2(implementation, arguments, words):
    done = subprocess.run([implementation.binaries["is"], *arguments], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert words in done.stderr
