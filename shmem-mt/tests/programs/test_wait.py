"""Wait: what is asked for is measured and right, who returns too early is caught, and settings reach Heddle alone."""

import pytest
from conftest import compiled_without, make_point, read_results, run_points
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.runner.points import describe
from shmem_mt.runner.process import run_program
from shmem_mt.targets import fabrics, libraries

METRICS = {("wake_latency", "s"), ("cpu_time", "s"), ("cpu_share", "%")}
COST = {("time", "barrier", "s"), ("time", "switch", "s"), ("switches", "barrier", "x")}


def measure(implementation, tmp_path, pes, threads, *arguments):
    return run_points(implementation, tmp_path, "wait", pes, threads, "--waits-ms", "20,60", *arguments)


def ops_of(implementation):
    """Those that block while a peer sleeps."""
    found = {"wait_until", "barrier_all"}
    found |= {"team_sync"} if implementation.features["SHMEM_MT_HAVE_TEAM_COLLECTIVES"] else set()
    return found | ({"request_wait"} if implementation.features["SHMEM_MT_HAVE_PROGRESS"] else set())


def waits(points):
    return [p for p in points if p["params"]["op"] != "barrier_cost"]


@pytest.mark.parametrize("pes", [2, 3, 8])
def test_all_are_there_and_valid(implementation, tmp_path, pes):
    points, skipped = measure(implementation, tmp_path, pes, 1)
    found = {(p["params"]["op"], p["params"]["wait_s"], p["metric"], p["unit"]): p["valid"] for p in waits(points)}
    ops = ops_of(implementation)
    assert found == {(op, s, *what): True for op in ops for s in (0.02, 0.06) for what in METRICS}
    assert skipped == {"team_sync", "request_wait"} - ops
    costs = {(p["metric"], p["params"]["part"], p["unit"]): p for p in points if p not in waits(points)}
    assert {key: p["valid"] for key, p in costs.items()} == dict.fromkeys(COST, True)
    ratio, barrier, switch = (costs[key]["samples"][0] for key in sorted(COST))
    assert ratio == pytest.approx(barrier / (pes * switch), rel=1e-4)
    assert all(p["params"]["oversubscribed"] == (pes > libraries.usable_cpus()) for p in points)


def test_shares_are_of_the_time_waited(implementation, tmp_path):
    """A PE waits as long as asked, whoever else uses the cores, and one thread burns at most one core."""
    points, _ = measure(implementation, tmp_path, 2, 1, "--ops", "wait_until", "--waits-ms", "200")
    cpu, share = (next(p["samples"][0] for p in points if p["metric"] == m) for m in ("cpu_time", "cpu_share"))
    assert 0 < share < 250  # the library may have threads of its own
    assert 0.19 < 100 * cpu / share < 10


def test_every_thread_waits(implementation, tmp_path):
    points, skipped = measure(implementation, tmp_path, 2, 3)
    if not points and skipped == {"threads=3"}:
        pytest.skip("the library does not give SHMEM_THREAD_MULTIPLE")
    assert {(p["params"]["op"], p["params"]["threads"], p["valid"]) for p in points} == {("wait_until", 3, True)}
    assert skipped >= {"barrier_all", "barrier_cost"}


FAULTS = ["skipped-operation", "stale-result", "check-never-runs", "one-pe-reduction"]


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_caught(implementation, tmp_path, fault):
    points, _ = measure(implementation, tmp_path, 2, 1, "--samples", "2", "--plant-fault", fault)
    assert {p["valid"] for p in waits(points)} == {False}


def test_barriers_that_return_at_once_are_caught(implementation, tmp_path):
    points, _ = measure(implementation, tmp_path, 2, 1, "--plant-fault", "early-barrier")
    barriers = {"barrier_all", "team_sync", "barrier_cost"}
    assert {p["params"]["op"] for p in points if p["valid"] is False} == barriers & {p["params"]["op"] for p in points}
    assert {p["valid"] for p in points if p["params"]["op"] in barriers} == {False}


def test_what_cannot_be_measured_is_skipped_by_name(implementation, tmp_path):
    features = ("SHMEM_MT_HAVE_PROGRESS", "SHMEM_MT_HAVE_TEAM_COLLECTIVES")
    without = compiled_without(implementation, tmp_path, "wait", *features)
    points, skipped = measure(without, tmp_path, 2, 1, "--ops", "team_sync,request_wait")
    assert (points, skipped) == ([], {"team_sync", "request_wait"})
    assert run_points(without, tmp_path, "wait", 1, 1) == ([], {"1 PE"})


@pytest.mark.long
def test_a_policy_that_is_not_there_is_skipped_by_name(implementation, tmp_path, monkeypatch):
    without = compiled_without(implementation, tmp_path, "wait", "SHMEM_MT_HAVE_PROGRESS")
    monkeypatch.setenv("HEDDLE_PROGRESS", "manual")
    assert measure(without, tmp_path, 2, 1) == ([], {"HEDDLE_PROGRESS=manual"})


def test_every_setting_is_measured_or_skipped_by_name(implementation, tmp_path):
    if not implementation.features["SHMEM_MT_HAVE_PROGRESS"]:
        pytest.skip("the library has no progress policies (shmemx.h)")
    for setting in libraries.SETTINGS:
        points = []
        arguments = ["--ops", "wait_until,request_wait", "--waits-ms", "5", "--samples", "1"]
        command = implementation.launch_command("wait", 2, 1, arguments, setting=setting)
        outcome = run_program(command, str(tmp_path / "log.txt"), 120, points.append, True)
        assert outcome.ok, (setting, outcome.problem)
        skipped = [skip["what"] for skip in outcome.skips]
        assert bool(points) != (skipped == [f"HEDDLE_PROGRESS={setting}"]), setting
        assert points or setting == "thread:monitor"  # the others are there on every machine
        assert all(point["valid"] for point in points), setting


def test_settings_are_planned_side_by_side_and_told_to_heddle_alone():
    starts = plan.starts(plan.PROFILES["full"], catalogue.select(["wait"]), plan.Choices(pes=(2,)), cores=2)
    assert [start.setting for start in starts] == list(libraries.SETTINGS)
    assert len({start.key("A", 0) for start in starts}) == len(starts)
    heddle, other = (libraries.class_of(name)(name, "oshcc", ["oshrun"], "1", "cc") for name in ("Heddle", "Other"))
    for start in starts:
        assert [one.measures(start) for one in (heddle, other)] == [True, start.setting == "default"]
        for one in (heddle, other):
            one.binaries["wait"] = "wait"
            command = one.launch_command("wait", 2, 1, [], start.fabric, "", None, start.setting)
            told = [f"{name}={value}" for name, value in libraries.SETTINGS[start.setting].items()]
            assert [word for word in command if "=" in word] == (told if one is heddle else [])


def test_describe_tells_lengths_and_settings_apart():
    params = make_point(op="wait_until", wait_s=0.1, setting="spin", fabric="tcp")["params"]
    assert describe("wait", params) == "wait, wait_until, 8 B, 0.1 s, tcp, setting spin, 2 PEs"


@pytest.mark.long
def test_the_driver_measures_it(shmem_mt, wrappers, tmp_path):
    arguments = ["--only", "wait", "--pes", "2", "--sync", "wait_until", "--rounds", "1"]
    status, _, stderr = shmem_mt(
        "run", "--oshcc", wrappers[0], "--oshrun", wrappers[1], "--out", tmp_path / "run", *arguments
    )
    assert status == 0, stderr
    results = read_results(tmp_path / "run")
    assert {r["metric"] for r in results} == {metric for metric, _ in METRICS}
    assert "default" in {r["params"]["setting"] for r in results}
    assert {r["params"]["fabric"] for r in results} == {fabrics.ON_NODE.name}
