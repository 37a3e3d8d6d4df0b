"""Completion: every way to know is right on every context, with and without blocks beside, and faults are caught."""

import pytest
from conftest import compiled_without, run_points
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.runner.points import describe
from shmem_mt.targets import libraries

FEATURES = {"request": "SHMEM_MT_HAVE_SHMEMX", "signal": "SHMEM_MT_HAVE_PUT_SIGNAL"}


def measure(implementation, tmp_path, pes, threads, *arguments):
    asked = ["--sizes", "1000,8", "--samples", "2", "--point-ms", "20", *arguments]
    return run_points(implementation, tmp_path, "completion", pes, threads, *asked)


def ways_of(implementation):
    return {"quiet"} | {way for way, feature in FEATURES.items() if implementation.features[feature]}


@pytest.mark.parametrize("pes,threads", [(2, 1), (2, 2), (4, 3)])
def test_all_are_valid(implementation, tmp_path, pes, threads):
    points, skipped = measure(implementation, tmp_path, pes, threads)
    if not points and skipped == {f"threads={threads}"}:
        pytest.skip("the library does not give SHMEM_THREAD_MULTIPLE")
    names = ("sync", "size_bytes", "context")
    metrics = ("time", "stream_bandwidth") if threads > 1 else ("time",)
    wanted = {
        (metric, way, size, context)
        for metric in metrics
        for way in ways_of(implementation)
        for size in (8, 1000)
        for context in ("default", "private")
    }
    found = {(p["metric"], *(p["params"][name] for name in names)): p["valid"] for p in points}
    assert found == dict.fromkeys(wanted, True)
    assert all(value > 0 for p in points for value in p["samples"] if p["metric"] == "time")
    assert skipped == set(FEATURES) - ways_of(implementation)


@pytest.mark.long
@pytest.mark.parametrize("way", FEATURES)
def test_what_the_library_has_not_is_skipped_by_name(implementation, tmp_path, way):
    without = compiled_without(implementation, tmp_path, "completion", FEATURES[way])
    points, skipped = measure(without, tmp_path, 2, 2)
    assert way in skipped
    assert {p["params"]["sync"] for p in points} == ways_of(implementation) - {way}


@pytest.mark.parametrize("fault", ["skipped-operation", "stale-result", "check-never-runs", "idle-timed-pass",
                                   "last-element-missing", "one-pe-reduction"])  # fmt: skip
def test_faults_are_caught(implementation, tmp_path, fault):
    points, _ = measure(implementation, tmp_path, 2, 2, "--plant-fault", fault)
    assert {p["valid"] for p in points} == {False}


@pytest.mark.parametrize("pes,fault", [(2, "rank-as-size"), (4, "rank-as-size"), (4, "peer-list-ignored")])
def test_wrong_peers_are_caught(implementation, tmp_path, pes, fault):
    points, _ = measure(implementation, tmp_path, pes, 2, "--plant-fault", fault)
    assert {p["valid"] for p in points} == {False}


def test_plan():
    for profile in (*plan.PROFILES.values(), *plan.NETWORK_PROFILES.values()):
        starts = plan.starts(profile, catalogue.select(["completion"]), plan.Choices(), cores=2)
        assert {start.program for start in starts} == {"completion"}
        assert {start.threads for start in starts} >= {1, 2}
        assert all("default,private" in start.arguments for start in starts)


def test_channels_are_an_axis_over_networks_and_told_to_heddle_alone():
    choices = plan.Choices(pes=(2,), threads=(2,))
    starts = plan.starts(plan.NETWORK_PROFILES["full"], catalogue.select(["completion"]), choices, cores=2)
    assert [start.setting for start in starts] == ["default", "channels:2", "channels:4"]
    heddle, other = (libraries.class_of(name)(name, "oshcc", ["oshrun"], "1", "cc") for name in ("Heddle", "Other"))
    heddle.binaries["completion"] = "completion"
    assert [other.measures(start) for start in starts] == [True, False, False]
    for start, told in zip(starts, ([], ["HEDDLE_NET_CHANNELS=2"], ["HEDDLE_NET_CHANNELS=4"])):
        command = heddle.launch_command("completion", 2, 2, [], start.fabric, "", None, start.setting)
        assert [word for word in command if "CHANNELS" in word] == told


def test_describe_tells_the_ways_apart():
    params = dict(op="put", size_bytes=65536, sync="request", context="private", fabric="tcp", pes=2, threads=2)
    assert "request" in describe("completion", params)
