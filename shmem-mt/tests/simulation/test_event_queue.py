"""The simulator's calendar queue pops what a plain priority queue pops (event_queue.cpp)."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from shmem_mt import sources

LOADS = 40


@pytest.mark.skipif(shutil.which("c++") is None, reason="no c++ on PATH")
def test_events_come_in_the_order_of_a_priority_queue(tmp_path):
    """Spreads from 1 ps to 2^48 ps, bursts, equal times, up to 10^5 pending events, and loads that change, so that
    buckets become wider and narrower. Undefined behaviour ends the program."""
    source, binary = Path(__file__).parent / "event_queue.cpp", tmp_path / "event_queue"
    checks = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    flags = ["-std=c++17", "-O2", "-Wall", "-Werror", *checks, "-I", sources.root()]
    done = subprocess.run(["c++", *flags, source, "-o", binary], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seeds = [str(random.randrange(2**32)) for _ in range(LOADS)]
    done = subprocess.run([binary, *seeds], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"seeds {' '.join(seeds)}: {done.stdout}"
