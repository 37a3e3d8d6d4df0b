"""HEDDLE_RACES=1: each race of racy.c is reported with both calls and what is missing; its cured twin is silent."""

import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"])
SOURCE = pathlib.Path(__file__).resolve().parent / "racy.c"
STATUS_RACES = 66
TIMEOUT_S = 300  # a hang: anything here ends within a second on a machine that is free

ORDER_RUNS = 200  # at most, of a mistake whose report needs the PEs to come in some order

# What is missing, of each case; and the PEs that it needs.
CASES = {
    "no_wait": "a wait",
    "posted_barrier": "a wait",
    "no_fence": "shmem_fence on PE 0 between it and the flag that PE 1 has waited for",
    "sync_for_quiet": "shmem_quiet on PE 0 before the synchronization with PE",
    "fence_for_quiet": "shmem_quiet on PE 0 between it and the flag that PE 1 has seen",
    "two_puts": "a wait",
    "own_puts": "shmem_fence or shmem_quiet between them",
    "own_put_and_get": "shmem_quiet between them",
    "source_of_nbi": "shmem_quiet before the buffer is used again",
    "value_of_nbi": "shmem_quiet before the buffer is used again",
    "exchange_source": "a wait for the call's request before the buffer is used again",
    "exchange_value": "a wait for the call's request before the buffer is used again",
    "wait_on_data": "a wait of PE 1 for the signal (shmem_signal_wait_until)",
    "put_before_signal": "shmem_fence on PE 0 between it and the flag that PE 1 has waited for",
    "atomic_and_plain": "atomics on both sides, or a wait or barrier between them",
    "wrong_context": "shmem_ctx_quiet of the call's context on PE 0",
    "put_over_read": "a wait",
    "lock_for_one": "a wait",
    "broadcast_for_barrier": "a wait",
    "counter_without_fence": "shmem_fence on PE",
    "strided": "a wait",
    "sum_then_broadcast": "shmem_quiet ",
    "result_of_reduction": "a wait",
    "result_elsewhere": "a wait",
    "freed_block": "shmem_ctx_quiet of the call's context on PE 0",
}
NEEDS = {"fence_for_quiet": 3}
RUNS = [(case, pes) for case in CASES for pes in (2, 3, 4) if pes >= NEEDS.get(case, 2)]


def line_of(mark, case):
    """The line of racy.c with "MARK: ... CASE"."""
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if re.search(rf"{mark}: [\w ]*\b{case}\b", line))


def run(pes, *arguments, **environment):
    command = [BUILD / "bin" / "oshrun", "-n", pes, BUILD / "tests" / "races" / "racy", *arguments]
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=TIMEOUT_S, check=False, env={**os.environ, "HEDDLE_RACES": "1", **environment})


def require_report(result, case, pes):
    assert result.returncode == STATUS_RACES, result
    assert result.stdout == "goes on\n" * pes, result
    races = [line for line in result.stderr.splitlines() if " race: " in line]
    assert len(races) == 1, result
    for mark in ("first", "second"):
        assert f", racy.c:{line_of(mark, case)})" in races[0], races
    assert f"missing: {CASES[case]}" in races[0], races
    assert "oshrun: HEDDLE_RACES has reported 1 race\n" in result.stderr, result


@pytest.mark.parametrize(("case", "pes"), RUNS)
def test_a_race_is_reported(case, pes):
    require_report(run(pes, case, "racy"), case, pes)


@pytest.mark.parametrize(("case", "pes"), RUNS)
def test_its_cure_is_silent(case, pes):
    result = run(pes, case, "cured")
    assert (result.returncode, result.stdout, result.stderr) == (0, "goes on\n" * pes, ""), result


def between_nodes(per_node):
    return {"HEDDLE_TEST_PES_PER_NODE": str(per_node), "HEDDLE_NET_TRANSPORTS": "tcp"}


@pytest.mark.parametrize("case", CASES)
def test_a_race_between_nodes_is_reported(case):
    pes = NEEDS.get(case, 2)
    require_report(run(pes, case, "racy", **between_nodes(1)), case, pes)


@pytest.mark.parametrize("case", CASES)
def test_its_cure_is_silent_between_nodes(case):
    result = run(4, case, "cured", **between_nodes(2))
    assert (result.returncode, result.stdout, result.stderr) == (0, "goes on\n" * 4, ""), result


@pytest.mark.parametrize("without", [0, 2])
def test_a_pe_that_lacks_the_setting_is_named(tmp_path, without):
    """As with mpirun, which hands on to other hosts what it is told alone. Otherwise PEs waited for each other."""
    script = tmp_path / "some"
    script.write_text(f'#!/bin/sh\n[ "$HEDDLE_PE" = {without} ] && unset HEDDLE_RACES\nexec "$@"\n')
    script.chmod(0o755)
    command = [BUILD / "bin" / "oshrun", "-n", "3", script, BUILD / "tests" / "races" / "racy", "no_fence", "cured"]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S,
                            check=False, env={**os.environ, "HEDDLE_RACES": "1", **between_nodes(1)})
    assert result.returncode == 1, result
    assert re.search(rf"PE [012] looks for races \(HEDDLE_RACES\), and PE {without} does not: right would be the same",
                     result.stderr), result


def test_the_search_goes_on_where_the_program_alone_makes_progress():
    result = run(3, "no_fence", "racy", HEDDLE_PROGRESS="manual", **between_nodes(1))
    require_report(result, "no_fence", 3)


def test_pes_come_in_more_than_one_order():
    """Most runs have the flags behind what they are to wait for, and no race."""
    for _ in range(ORDER_RUNS):
        assert run(2, "credits", "cured").returncode == 0
        result = run(2, "credits", "racy")
        if result.returncode == STATUS_RACES:
            break
    races = [line for line in result.stderr.splitlines() if " race: " in line]
    assert len(races) == 1, result
    for mark in ("first", "second"):
        assert f", racy.c:{line_of(mark, 'credits')})" in races[0], races
    assert "missing: a wait" in races[0], races


def test_calls_behind_the_end_of_main():
    """What a thread has freed at its end is no longer looked at: MALLOC_PERTURB_ makes it other values."""
    result = run(3, "at_exit", "cured", MALLOC_PERTURB_="165")
    assert (result.returncode, result.stdout, result.stderr) == (0, "goes on\n" * 3, ""), result


def test_the_object_is_named():
    result = run(2, "no_fence", "racy")
    line = next(number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if "the block" in line)
    assert re.search(rf"from byte 0 of the 256 of shmem_malloc \(called at racy\+0x[0-9a-f]+, racy.c:{line}\)",
                     result.stderr), result


def test_without_the_setting_nothing_is_said():
    result = run(2, "no_fence", "racy", HEDDLE_RACES="0")
    assert (result.returncode, result.stderr) == (0, ""), result


def test_a_failure_keeps_its_status():
    result = run(2, "no_fence", "racy", HEDDLE_RACES="1", HEDDLE_CHAOS="1")
    assert result.returncode == 1, result
    assert "HEDDLE_CHAOS is set, too: right would be one of them in a run" in result.stderr, result
