"""What holds for every mini-app: planted faults are caught, the plan names a size, and the driver measures it."""

import pytest
from conftest import app_events, read_results
from shmem_mt import sources
from shmem_mt.catalogue import catalogue, plan

APPS = {b.name: b for b in catalogue.BENCHMARKS if sources.is_app(b.program)}
FAULTS = (
    "one-pe-reduction",
    "check-never-runs",
    "skipped-operation",
    "stale-result",
    "last-element-missing",
    "skipped-computation",
)
# Arguments with which a fault has something to spoil. gups' faults differ from form to form (test_gups.py).
SPOILED = {
    "cg": (1, "--pieces", "3", "--poll-rows", "100"),
    "hpccg": (2, "--poll-rows", "100"),
    "minife": (2, "--poll-rows", "100"),
    "minimd": (2,),
    "is": (2,),
    "mandelbrot": (2,),
    "halo": (2, "--ops", "jacobi7,jacobi7-overlapped,jacobi27,async7,async27", "--contexts", "private"),
}


def test_every_app_is_looked_at():
    assert set(SPOILED) | {"gups"} == set(APPS)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("app", SPOILED)
def test_faults_are_caught(implementation, app, fault):
    threads, *more = SPOILED[app]
    found = app_events(implementation, app, 2, threads, *more, "--plant-fault", fault)
    verdicts = {event["form"]: event["verdict"] for event in found if event["event"] == "verdict"}
    skipped = {event["what"] for event in found if event["event"] == "skip"}
    assert set(verdicts) == set(APPS[app].ops) - skipped - {"exchange"} and set(verdicts.values()) == {"fail"}
    points = [event for event in found if event["event"] == "point"]
    assert len(points) >= 4 * len(verdicts) and {point["valid"] for point in points} == {False}


@pytest.mark.parametrize("app", APPS)
def test_plan_takes_any_number_of_pes_and_names_a_size(app):
    chosen = plan.Choices(pes=(1, 3), threads=(2,))
    only = catalogue.select([app])
    catalogue.check_pes(only, chosen.pes)
    for profiles in (plan.PROFILES, plan.NETWORK_PROFILES):
        for name, sizes in (("quick", {"tiny"}), ("full", {"small", "medium", "16384"})):
            starts = plan.starts(profiles[name], only, chosen, cores=2)
            assert {(s.program, s.pes, s.threads) for s in starts} == {(app, pes, 2) for pes in (1, 3)}
            assert {s.arguments[s.arguments.index("--size") + 1] for s in starts} <= sizes
            spins = any("thread:spin" in s.arguments[s.arguments.index("--ops") + 1].split(",") for s in starts)
            assert spins == (name == "full" and "thread:spin" in APPS[app].ops)


@pytest.mark.long
def test_the_driver_measures_them_all(shmem_mt, wrappers, tmp_path):
    out = tmp_path / "run"
    named = ("--oshcc", wrappers[0], "--oshrun", wrappers[1], "--only", ",".join(APPS), "--out", out)
    status, stdout, stderr = shmem_mt("run", *named, "--pes", "2", "--threads", "1", "--rounds", "1")
    assert status == 0, stderr
    results = read_results(out)
    assert {r["benchmark"] for r in results} == set(APPS) and all(r["valid"] for r in results)
    for app in APPS:
        assert {"rate", "time", "communication"} <= {r["metric"] for r in results if r["benchmark"] == app}
        assert f": {app}, " in stdout
    assert ": pass, " in stdout and "FAIL" not in stdout
    assert shmem_mt("report", out)[0] == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    for app in APPS:
        assert f'<section id="{app}-forms">' in page and f'<section id="{app}-phases">' in page
