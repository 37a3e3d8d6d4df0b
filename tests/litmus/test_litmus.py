"""No place shows an outcome that OpenSHMEM 1.6 forbids, and chaos shows every weak outcome that it allows.

LITMUS_SEEDS=N: chaos runs with the seeds 1 to N, and from 100 on every weak outcome must have been seen.
LITMUS_ROUNDS=N: of each test in one job without chaos."""

import os
import pathlib
import re
import subprocess
import sys

import jobs
import pytest

HERE = pathlib.Path(__file__).resolve().parent
SEEDS = int(os.environ.get("LITMUS_SEEDS", "3"))
ROUNDS = int(os.environ.get("LITMUS_ROUNDS", "100"))
CHAOS_ROUNDS = 10
NETWORK_SHARE = 5  # a round between nodes takes longer
NEEDED_SEEDS = 100  # so many show all that is allowed

needs_network = pytest.mark.skipif(not jobs.HAS_NETWORK, reason="libheddle_ucx.so has not been built")


def is_right(job, pes):
    assert job.status == 0 and job.errors == "", job
    tests = [name for name, test in jobs.described().items() if len(test["program"]) <= pes]
    assert list(job.seen) == tests, job


def test_the_tests():
    tests = jobs.described()
    assert len(tests) >= 40
    for test in tests.values():
        kinds = list(test["outcomes"].values())
        assert "strong" in kinds and test["why"].startswith(("3.", "4.", "9.")), test
        assert all(re.fullmatch("[0-9?*]{1,4}", outcome) for outcome in test["outcomes"]), test


@pytest.mark.parametrize("settings", [{}, {"HEDDLE_CHECK": "1"}], ids=["plain", "checked"])
@pytest.mark.parametrize("pes", [1, 2, 3, 4, 7, 8])
def test_on_the_node(pes, settings):
    is_right(jobs.Job(pes, ROUNDS, {**jobs.ON_NODE, **settings}), pes)


@needs_network
@pytest.mark.parametrize("place", [jobs.ACROSS_NODES, jobs.TWO_PER_NODE], ids=["alone", "two"])
@pytest.mark.parametrize("pes", [4, 7])
def test_across_nodes(pes, place):
    is_right(jobs.Job(pes, max(ROUNDS // NETWORK_SHARE, 1), place), pes)


def test_under_chaos():
    """Nothing that is forbidden with any seed; with enough seeds, all that is allowed."""
    finished = [jobs.Job(4, CHAOS_ROUNDS, jobs.chaos(seed)) for seed in range(1, SEEDS + 1)]
    for job in finished:
        is_right(job, 4)
    seen = jobs.added(finished)
    assert any(seen[name]["0"] for name in ("mp", "put_get", "put_self", "set_fetch")), "chaos does nothing"
    if SEEDS >= NEEDED_SEEDS:
        missing = [(name, outcome) for name, test in jobs.described().items()
                   for outcome, kind in test["outcomes"].items() if kind == "weak" and not seen[name][outcome]]
        assert not missing, f"allowed, and not shown by {SEEDS} seeds: {missing}"


@needs_network
def test_chaos_across_nodes():
    is_right(jobs.Job(4, CHAOS_ROUNDS, {**jobs.ACROSS_NODES, **jobs.chaos(SEEDS)}), 4)


def test_calls_on_the_node():
    is_right(jobs.Job(4, ROUNDS, jobs.ON_NODE, program="litmus_calls"), 4)


def test_what_is_forbidden_is_found():
    lost = {"LD_PRELOAD": str(jobs.PROGRAMS / "liblost_puts.so")}
    job = jobs.Job(2, ROUNDS, lost, "mp_fence", "sync_store", program="litmus_calls")
    assert job.status == 1 and job.seen["mp_fence"] == {"0": ROUNDS} and job.seen["sync_store"] == {"1": ROUNDS}, job
    assert re.search(rf"^litmus: mp_fence: 0 is forbidden, and was seen {ROUNDS} times; 2 PEs, HEDDLE_TEST_SEED=\d+: 9",
                     job.errors, flags=re.M), job
    assert "sync_store" not in job.errors, job


def test_wrong_arguments():
    ended = subprocess.run([jobs.PROGRAMS / "litmus", "many"], capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and ended.stderr.startswith("usage: litmus --describe |"), ended


def test_the_page():
    ended = subprocess.run([sys.executable, "-B", HERE / "write_page.py", "--check"], capture_output=True, text=True,
                           check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
