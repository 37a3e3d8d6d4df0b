"""Requests: every way to complete operations is right, on every context, and faults are caught; libraries without them
skip them by name. The contexts of the message rate."""

import pytest
from conftest import compiled_without, run_points
from shmem_mt.catalogue import catalogue, plan

REQUESTS = {"request_each", "request_merged", "request_shared"}
WAYS = {"put": {"quiet_each", "quiet"} | REQUESTS, "get": {"blocking", "quiet"} | REQUESTS}
EVERYTHING = ["--ops", "requests_put,requests_get", "--sizes", "8,1000", "--placements", "heap"]


def measure(implementation, tmp_path, pes, threads, *arguments):
    return run_points(implementation, tmp_path, "message_rate", pes, threads, *EVERYTHING, *arguments)


def has_requests(implementation):
    return implementation.features["SHMEM_MT_HAVE_SHMEMX"]


def ways_of(implementation):
    """(op, sync) of every point."""
    return {
        (op, sync) for op, syncs in WAYS.items() for sync in syncs if has_requests(implementation) or sync[:3] != "req"
    }


@pytest.mark.parametrize("pes,threads", [(2, 1), (4, 1), (2, 2), (2, 5)])
def test_all_are_valid(implementation, tmp_path, pes, threads):
    points, skipped = measure(implementation, tmp_path, pes, threads)
    wanted = {
        (*way, size, context)
        for way in ways_of(implementation)
        for size in (8, 1000)
        for context in ("default", "shared", "private")
    }
    names = ("op", "sync", "size_bytes", "context")
    assert {tuple(p["params"][name] for name in names): p["valid"] for p in points} == dict.fromkeys(wanted, True)
    assert {p["benchmark"] for p in points} == {"requests"} and {p["metric"] for p in points} == {"rate"}
    assert all(p["params"]["threads"] == threads for p in points)
    assert bool(skipped) != has_requests(implementation)


@pytest.mark.long
def test_without_requests_they_are_skipped_by_name(implementation, tmp_path):
    without = compiled_without(implementation, tmp_path, "message_rate", "SHMEM_MT_HAVE_SHMEMX")
    points, skipped = measure(without, tmp_path, 2, 1, "--contexts", "default")
    assert skipped == {f"requests_{op} with {sync}" for op in WAYS for sync in REQUESTS}
    assert {(p["params"]["op"], p["params"]["sync"]) for p in points} == ways_of(without)


FAULTS = ["rank-as-size", "one-pe-reduction", "check-never-runs", "skipped-operation"]


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_caught(implementation, tmp_path, fault):
    points, _ = measure(implementation, tmp_path, 2, 2, "--plant-fault", fault)
    assert {p["valid"] for p in points} == {False}


def test_wrong_peers_are_caught(implementation, tmp_path):
    points, _ = measure(implementation, tmp_path, 4, 1, "--plant-fault", "peer-list-ignored")
    assert {p["valid"] for p in points} == {False}


def test_get_named_put_is_caught(implementation, tmp_path):
    points, _ = measure(implementation, tmp_path, 2, 1, "--plant-fault", "get-named-put")
    assert {(p["params"]["op"], p["valid"]) for p in points} == {("put", False), ("get", True)}


@pytest.mark.parametrize("fault", ["none", "skipped-operation"])
def test_fetching_atomics_in_flight(implementation, tmp_path, fault):
    arguments = ["--ops", "requests_fetch_add,atomic_fetch_add_nbi", "--placements", "heap", "--plant-fault", fault]
    points, skipped = run_points(implementation, tmp_path, "message_rate", 2, 2, *arguments)
    syncs = {"blocking"} | (REQUESTS if has_requests(implementation) else set())
    wanted = {("requests", sync) for sync in syncs}
    if implementation.features["SHMEM_MT_HAVE_FETCH_NBI"]:
        wanted |= {("requests", "quiet"), ("message-rate", "quiet")}
    else:
        assert {"requests_fetch_add with quiet", "atomic_fetch_add_nbi with quiet"} <= skipped
    assert {(p["benchmark"], p["params"]["sync"]) for p in points} == wanted
    assert {p["valid"] for p in points} == {fault == "none"}


def test_message_rate_has_requests_and_contexts(implementation, tmp_path):
    arguments = ["--ops", "put_quiet,put_nbe,get_nbe", "--sizes", "64", "--placements", "heap"]
    points, _ = run_points(implementation, tmp_path, "message_rate", 2, 2, *arguments)
    wanted = {("put_quiet", "quiet_each")}
    if has_requests(implementation):
        wanted |= {(op, sync) for op in ("put_nbe", "get_nbe") for sync in REQUESTS}
    assert {(p["params"]["op"], p["params"]["sync"]) for p in points if p["valid"]} == wanted
    assert {p["params"]["context"] for p in points} == {"default", "shared", "private"}


def test_plan():
    profile = plan.PROFILES["quick"]
    starts = plan.starts(profile, catalogue.select(["requests"]), plan.Choices(), cores=2)
    assert [(start.program, start.pes, start.threads) for start in starts] == [
        ("message_rate", 2, 1),
        ("message_rate", 2, 2),
    ]
    assert {start.arguments[:2] for start in starts} == {("--ops", "requests_put,requests_get")}
    rates = plan.starts(profile, catalogue.select(["message-rate"]), plan.Choices(), cores=2)
    assert all("requests" not in start.arguments[1] and "nbe" not in start.arguments[1] for start in rates)
    assert all("fetch_add_nbi" not in start.arguments[1] for start in rates)  # only over a network
    every = plan.starts(plan.PROFILES["full"], catalogue.select(["message-rate"]), plan.Choices(), cores=2)
    for starts, contexts in ((rates, "default,private"), (every, "default,shared,private")):
        assert contexts in next(start for start in starts if start.threads == 2).arguments
