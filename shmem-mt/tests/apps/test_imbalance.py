"""How uneven the computing of a mini-app is: known of one that only books (uneven.cpp), and there for others."""

from pathlib import Path

import pytest
from conftest import app_events, compiled_alone


@pytest.fixture(scope="module")
def uneven(implementation, tmp_path_factory):
    return compiled_alone(implementation, tmp_path_factory, Path(__file__).parent / "uneven.cpp")


@pytest.mark.parametrize("pes,threads", [(1, 1), (2, 2), (3, 1)])
def test_it_is_the_most_over_the_mean_of_the_pes(uneven, pes, threads):
    """Phases of computing count, those of communication and spans of several phases do not."""
    found = app_events(uneven, "uneven", pes, threads, "--samples", 3)
    points = {e["params"]["op"]: e for e in found if e["event"] == "point" and e["metric"] == "imbalance"}
    verdicts = {e["form"]: e for e in found if e["event"] == "verdict"}
    assert set(points) == {"uneven"} and set(verdicts) == {"uneven", "idle"}
    assert points["uneven"]["samples"] == pytest.approx([2 * pes / (pes + 1)] * 3, rel=1e-3)
    assert points["uneven"]["unit"] == "x" and points["uneven"]["params"]["part"] == "imbalance"
    assert verdicts["uneven"]["imbalance"] == pytest.approx(2 * pes / (pes + 1), rel=1e-3)
    assert "imbalance" not in verdicts["idle"]


@pytest.mark.parametrize("app,has_one", [("hpccg", True), ("cg", True), ("gups", False)])
def test_which_apps_have_one(implementation, app, has_one):
    """All of gups is communication."""
    found = app_events(implementation, app, 2, 1, "--form", "atomic" if app == "gups" else "blocking")
    (verdict,) = [event for event in found if event["event"] == "verdict"]
    assert ("imbalance" in verdict) == has_one and 1 <= verdict.get("imbalance", 1) <= 2
