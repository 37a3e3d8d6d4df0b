"""Memory lies where the threads run that compute with it: each has the faults of its own pages (placement.cpp), and a
CPU of its own where there are enough (seats.cpp)."""

import os
import subprocess
from pathlib import Path

import pytest
from conftest import app_events, compiled_alone
from shmem_mt import sources
from shmem_mt.targets import build


@pytest.fixture(scope="module")
def placement(implementation, tmp_path_factory):
    return compiled_alone(implementation, tmp_path_factory, Path(__file__).parent / "placement.cpp")


@pytest.mark.parametrize("pes,threads", [(1, 1), (1, 2), (2, 3)])
def test_each_thread_writes_first_to_its_own_rows(placement, pes, threads):
    """Thread 0 has besides what it needs to make lists; no thread has much of the pages of another."""
    (found,) = [e for e in app_events(placement, "placement", pes, threads) if e["event"] == "placed"]
    share = found["pages"] / threads
    assert found["pages"] > 1000
    for faults in found["faults"][1:]:
        assert 0.9 * share < faults < 1.2 * share
    assert 0.9 * share < found["faults"][0] < 1.4 * share
    mean = sum(found["cg"]) / threads  # in rows of several lengths
    assert mean > 500 and min(found["cg"]) > 0.8 * mean


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_bound_where_there_are_cpus(placement, threads):
    if len(os.sched_getaffinity(0)) < threads:
        pytest.skip("this machine has no CPU for each thread")
    found = app_events(placement, "placement", 1, threads)
    (placed,) = [event for event in found if event["event"] == "placed"]
    assert placed["is_bound"] is True and placed["cpus"] == [1] * threads


def test_threads_without_cpus_are_not_bound(placement):
    threads = min(62, 2 * os.cpu_count())
    if threads < 2 * os.cpu_count():
        pytest.skip("this machine has a CPU for each thread")
    (placed,) = [event for event in app_events(placement, "placement", 1, threads) if event["event"] == "placed"]
    assert placed["is_bound"] is False


def test_points_say_that_threads_are_bound(implementation):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine has one CPU")
    found = app_events(implementation, "hpccg", 1, 2, "--form", "blocking")
    told = {event["binding"] for event in found if event["event"] == "point"}
    assert len(told) == 1 and told.pop().endswith("a PE, each thread to one")


def test_cpus_of_made_up_machines(implementation, tmp_path):
    source, binary = str(Path(__file__).parent / "seats.cpp"), str(tmp_path / "seats")
    problem = build.run_compiler(implementation, ["-I", sources.root()], source, binary)
    assert problem is None, problem
    done = subprocess.run([binary], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
