"""Where a form places its polls: at the distance with which a step usually takes least time."""

import subprocess
from pathlib import Path

import pytest
from conftest import app_events
from shmem_mt import sources
from shmem_mt.targets import build

APPS = ("cg", "hpccg", "minife")


def test_one_lucky_step_does_not_choose(implementation, tmp_path):
    source, binary = str(Path(__file__).parent / "poll_choice.cpp"), str(tmp_path / "poll_choice")
    features = [f"-D{macro}={int(works)}" for macro, works in implementation.features.items()]
    problem = build.run_compiler(implementation, [*features, "-I", sources.root()], source, binary)
    assert problem is None, problem
    assert subprocess.run([binary], timeout=60).returncode == 0


@pytest.mark.parametrize("app", APPS)
def test_a_distance_is_chosen_and_told(implementation, app):
    if not implementation.features["SHMEM_MT_HAVE_PROGRESS"]:
        pytest.skip("the library has no progress policies")
    found = app_events(implementation, app, 2, 1, "--form", "manual")
    (tuned,) = [event for event in found if event["event"] == "tuned"]
    assert tuned["poll_rows"] in (8, 32, 128, 512, 2048) and tuned["form"] == "manual"
    (verdict,) = [event for event in found if event["event"] == "verdict"]
    assert verdict["verdict"] == "pass"
