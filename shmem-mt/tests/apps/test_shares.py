"""How evenly the mini-apps share their work among 256 threads and more, counted without a run (shares.cpp)."""

import subprocess
from pathlib import Path

import pytest
from conftest import app_verdicts
from shmem_mt import sources
from shmem_mt.targets import build

PES, THREADS = 8, 32  # 256 workers


@pytest.fixture(scope="module")
def shares(implementation, tmp_path_factory):
    binary = str(tmp_path_factory.mktemp("shares") / "shares")
    features = [f"-D{macro}={int(works)}" for macro, works in implementation.features.items()]
    source = str(Path(__file__).parent / "shares.cpp")
    problem = build.run_compiler(implementation, [*features, "-I", sources.root()], source, binary)
    assert problem is None, problem

    def call(*arguments):
        done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True, timeout=600, check=True)
        return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}

    return call


@pytest.mark.parametrize("workers,buckets,streams", [(1, 512, 512), (8, 512, 512), (256, 1 << 14, 512 + 256)])
def test_is_deals_keys_evenly(shares, workers, buckets, streams):
    """With 512 buckets the fullest of 256 workers would have 1.85 times the mean."""
    found = shares("is", "W", workers)
    assert found["buckets"] == buckets and 500 < found["streams"] <= streams
    assert found["shared_streams"] == 0
    assert 1 <= found["imbalance"] <= 1 + 1 / 24 + 0.01  # and what chance does to 4,096 keys of a worker


def test_is_has_no_more_buckets_than_keys_allow(shares):
    """Of class S, whose keys lie below 2^11."""
    assert shares("is", "S", 256)["buckets"] == 1024


def test_more_buckets_than_streams_sort_the_keys(implementation):
    """17 workers: 2,048 buckets in 512 streams. The ranks are the published ones."""
    found = app_verdicts(implementation, "is", 1, 17, "--class", "W", "--form", "default,pieces")
    assert {verdict["verdict"] for verdict in found.values()} == {"pass"}
    assert all(v["buckets"] == 2048 and 1 <= v["deal_imbalance"] < 1.06 for v in found.values())


@pytest.mark.parametrize("edge,pes,threads", [(96, PES, THREADS), (64, 4, 62), (48, 1, 16)])
def test_minife_blocks_are_many_enough(shares, edge, pes, threads):
    found = shares("minife", edge, pes, threads)
    assert 1 <= found["imbalance"] < 1.15


@pytest.mark.parametrize("edge,pes", [(12, 1), (12, 3), (5, 7), (31, 2)])
def test_minife_blocks_of_a_colour_are_apart(shares, edge, pes):
    assert shares("minife", edge, pes, 2)["touched_twice"] == 0


@pytest.mark.parametrize("edge,workers,rows", [(3200, 4, 4), (3200, 50, 2), (12800, 256, 1), (192, 4, 1)])
def test_mandelbrot_has_32_pieces_a_worker_or_rows(shares, edge, workers, rows):
    assert shares("mandelbrot", edge, workers)["rows"] == rows


def test_short_lists_are_one_message_each(shares):
    """26 neighbours of minife and 16 threads: 300 messages where each list is cut for all threads."""
    faces, edges, corners = [576] * 6, [24] * 12, [1] * 8
    found = shares("halo", 16, *faces, *edges, *corners)
    assert found["messages"] == 26 and found["whole"] == 1


def test_long_lists_are_shared_by_all_threads(shares):
    """The two planes of hpccg: 90,000 points each."""
    found = shares("halo", 32, 90000, 90000)
    assert found["messages"] == 64 and found["whole"] == 1 and found["imbalance"] < 1.01
    assert shares("halo", 4, 0, 1, 1025)["messages"] == 3  # nothing, a point, and two parts of 4 KiB


def test_an_exchange_sends_as_many_messages(implementation):
    """2 PEs of hpccg have one plane of 144 points to send: one message, whatever the number of threads."""
    for threads in (1, 3):
        (verdict,) = app_verdicts(implementation, "hpccg", 2, threads, "--form", "blocking").values()
        assert verdict["verdict"] == "pass" and verdict["exchange_messages"] == 1
