"""What ends the exchanges of hpccg, minife and minimd is chosen by --syncs: each way is verified as the first one, and
a wrong answer is seen as one."""

import pytest
from conftest import app_events, compiled_without, make_point
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.runner.points import describe, form_of_app, problem_of_app

SYNCS, COLLECTIVES = catalogue.APP_SYNCS, ("neighbor_alltoallv", "plan")
FORMS = {"hpccg": "blocking,overlapped", "minife": "blocking,overlapped", "minimd": "default,auto"}


def verdicts(implementation, app, pes, threads, syncs, *more):
    """{(form, sync): its verdict}, and what was skipped."""
    asked = ("--form", FORMS[app], "--syncs", ",".join(syncs), *more)
    events = app_events(implementation, app, pes, threads, *asked)
    found = [event for event in events if event["event"] == "verdict"]
    points = [event for event in events if event["event"] == "point"]
    assert {(e["form"], e.get("sync")) for e in found} == {(p["params"]["op"], p["params"].get("sync")) for p in points}
    skipped = {event["what"] for event in events if event["event"] == "skip"}
    return {(event["form"], event.get("sync", "put_signal")): event for event in found}, skipped


def possible(implementation, app):
    extension = {"request_merged", *COLLECTIVES}
    return [s for s in SYNCS[app] if implementation.features["SHMEM_MT_HAVE_SHMEMX"] or s not in extension]


@pytest.mark.parametrize("app,pes,threads", [("hpccg", 1, 2), ("hpccg", 3, 2), ("minife", 4, 2), ("minimd", 3, 2)])
def test_every_way_is_right(implementation, app, pes, threads):
    found, _ = verdicts(implementation, app, pes, threads, SYNCS[app])
    forms = FORMS[app].split(",")
    assert set(found) == {(form, sync) for form in forms for sync in possible(implementation, app)}
    assert {verdict["verdict"] for verdict in found.values()} == {"pass"}
    same = "state" if app == "minimd" else "residual"
    assert len({verdict[same] for verdict in found.values()}) == 1  # not a bit differs


@pytest.mark.parametrize("fault", ["skipped-operation", "stale-result", "last-element-missing"])
@pytest.mark.parametrize("app", SYNCS)
def test_faults_are_caught(implementation, app, fault):
    found, _ = verdicts(implementation, app, 2, 2, SYNCS[app], "--plant-fault", fault)
    assert len(found) >= 4 and {verdict["verdict"] for verdict in found.values()} == {"fail"}


def test_put_signal_alone_is_measured_unless_asked(implementation):
    for syncs in ([], ["--syncs", "fence_flag"]):
        events = app_events(implementation, "hpccg", 2, 1, "--form", "blocking", *syncs)
        assert [e.get("sync") for e in events if e["event"] == "verdict"] == [None]


def test_forms_with_nonblocking_sums_have_put_signal(implementation):
    if not implementation.features["SHMEM_MT_HAVE_PROGRESS"]:
        pytest.skip("the library has no non-blocking collectives")
    events = app_events(implementation, "hpccg", 2, 1, "--form", "blocking,auto", "--syncs", "put_signal,plan")
    found = [(e["form"], e.get("sync")) for e in events if e["event"] == "verdict"]
    assert found == [("blocking", None), ("blocking", "plan"), ("auto", None)]


@pytest.mark.long
def test_what_the_library_lacks_is_skipped_by_name(implementation, tmp_path):
    lacks = [f"SHMEM_MT_HAVE_{name}" for name in ("SHMEMX", "PROGRESS", "PROGRESS_NETWORK")]
    without = compiled_without(implementation, tmp_path, "hpccg", *lacks)
    found, skipped = verdicts(without, "hpccg", 2, 1, SYNCS["hpccg"])
    assert {sync for _, sync in found} == {"put_signal", "quiet_barrier"}
    assert skipped == {"request_merged", *COLLECTIVES}


def test_points_are_told_apart_by_it():
    params = make_point(benchmark="hpccg", op="blocking", edge=12, sync="plan", fabric="on-node", part="sum")["params"]
    assert "plan" in describe("hpccg", params).split(", ") and form_of_app(params) == "blocking, plan"
    assert "plan" not in problem_of_app(params)
    assert form_of_app({**params, "sync": "put_signal"}) == "blocking"


def test_the_full_profile_measures_every_way():
    for name, ways in (("quick", dict.fromkeys(SYNCS, ())), ("full", SYNCS)):
        for app, syncs in ways.items():
            starts = plan.starts(plan.PROFILES[name], catalogue.select([app]), plan.Choices(), cores=2)
            for told in (start.arguments for start in starts):
                asked = told[told.index("--syncs") + 1] if "--syncs" in told else ""
                assert asked == ",".join(syncs)
