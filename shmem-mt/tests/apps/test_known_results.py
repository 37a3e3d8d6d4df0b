"""The results of serial runs that the mini-apps know by heart are those of the runs (known_results.cpp)."""

import subprocess
from pathlib import Path

import pytest
from shmem_mt import sources
from shmem_mt.targets import build


@pytest.fixture(scope="module")
def known_results(implementation, tmp_path_factory):
    binary = str(tmp_path_factory.mktemp("known") / "known_results")
    source = str(Path(__file__).parent / "known_results.cpp")
    problem = build.run_compiler(implementation, ["-I", sources.root()], source, binary)
    assert problem is None, problem
    return lambda *run: subprocess.run([binary, *map(str, run)], capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("run", [("hpccg", 60), ("minimd", 24, 100)])
def test_what_is_known_is_right(known_results, run):
    """The sizes that take longer were made by the same program."""
    done = known_results(*run)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("run", [("hpccg", 61), ("minimd", 5, 100)])
def test_what_is_not_known_is_said(known_results, run):
    assert known_results(*run).returncode == 1
