"""Overlap: the parts are there and right under each policy, the formula is what it says, one PE is enough for puts and
gets, and faults are caught."""

import pytest
from conftest import compiled_without, make_point, read_results, run_points
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.report.charts import policy as policy_charts
from shmem_mt.report.charts.model import COLOURS, Chart, Panel, Points, Series
from shmem_mt.report.vega import value_range
from shmem_mt.runner.points import describe
from shmem_mt.runner.results import SWITCHES, RunFolder

METRICS = {
    ("overlap", "overlap", "%"),
    ("slowdown", "compute", "x"),
    ("time", "communication", "s"),
    ("time", "compute", "s"),
    ("time", "total", "s"),
    ("time", "post", "s"),
    ("time", "inside", "s"),
}
POLLED = METRICS | {("poll_interval", "inside", "s")}
COLLECTIVES = {"broadcast", "fcollect", "alltoall", "sum_reduce"}


def measure(implementation, tmp_path, pes, *arguments):
    return run_points(implementation, tmp_path, "overlap", pes, 1, "--sizes", "65536", *arguments)


def measure_one(implementation, tmp_path, pes, op, *arguments):
    """One operation in one way, under the library's own policy."""
    sync = "request_wait" if op in COLLECTIVES else "quiet"
    return measure(implementation, tmp_path, pes, "--ops", op, "--syncs", sync, "--policies", "auto", *arguments)


KINDS = catalogue.COMPUTATIONS


def has_policies(implementation):
    return implementation.features["SHMEM_MT_HAVE_PROGRESS"]


@pytest.fixture
def with_policies(implementation):
    if not has_policies(implementation):
        pytest.skip("the library has no progress policies and non-blocking collectives (shmemx.h)")
    return implementation


def ways_of(implementation, pes):
    """(operation, synchronization) of all that this library has."""
    syncs = ("quiet", "request_each") if implementation.features["SHMEM_MT_HAVE_SHMEMX"] else ("quiet",)
    ways = {(op, sync) for op in ("put", "get") for sync in syncs}
    return ways | ({(op, "request_wait") for op in COLLECTIVES} if has_policies(implementation) and pes > 1 else set())


def by_name(points):
    names = ("op", "sync", "policy")
    return {
        (*(p["params"][name] for name in names), p["metric"], p["params"]["part"], p["unit"]): p for p in points
    }


def samples_of(points, metric, part):
    """Those of the one point with these names."""
    (one,) = [p for p in points if p["metric"] == metric and p["params"]["part"] == part]
    return one["samples"]


@pytest.mark.parametrize("pes", [1, 2, 4])
def test_all_parts_are_valid(implementation, tmp_path, pes):
    policies = ("manual", "polled", "auto") if has_policies(implementation) else ("auto",)
    points, skipped = measure(implementation, tmp_path, pes, "--policies", "manual,polled,auto")
    wanted = {
        (*way, policy, *what)
        for way in ways_of(implementation, pes)
        for policy in policies
        for what in (POLLED if policy == "polled" else METRICS)
    }
    assert {name: p["valid"] for name, p in by_name(points).items()} == dict.fromkeys(wanted, True)
    assert all(p["params"]["pes"] == pes for p in points)
    assert skipped >= {f"policy {policy}" for policy in ("manual", "polled", "auto") if policy not in policies}
    assert (COLLECTIVES & skipped == COLLECTIVES) == (pes == 1 or not has_policies(implementation))


def test_context_switches_are_counted_of_what_computes_and_communicates(implementation, tmp_path):
    points, _ = measure_one(implementation, tmp_path, 2, "put")
    counted = {(p["metric"], p["params"]["part"]) for p in points if set(SWITCHES) <= set(p)}
    assert counted == {("overlap", "overlap"), ("time", "total")}
    assert all(p[name] >= 0 for p in points for name in SWITCHES if name in p)


def test_context_switches_reach_the_chart(tmp_path):
    """As the mean of the starts."""
    folder = RunFolder.open(str(tmp_path / "run"))
    names = dict(benchmark="overlap", op="put", sync="quiet", size_bytes=8, policy="manual", metric="overlap", unit="%")
    for number, forced in enumerate((2, 6)):
        counted = dict(zip(SWITCHES, (100, forced)))
        folder.add_point({**make_point(**names), **counted, "round": number})
    (chart,) = policy_charts.charts(Points(folder.results()))
    (note,) = chart.panels[0].series[0].notes
    assert note.endswith("\ncontext switches 104 /s, 4.00 /s of them forced")


@pytest.mark.parametrize("size", [8, 4096, 1 << 20])
def test_sizes(with_policies, tmp_path, size):
    points, _ = measure(with_policies, tmp_path, 3 + 1, "--sizes", str(size), "--policies", "auto")
    assert {p["params"]["op"] for p in points} == {"put", "get", *COLLECTIVES}
    assert {(p["params"]["size_bytes"], p["valid"]) for p in points} == {(size, True)}


def test_every_policy_is_measured_or_skipped_by_name(with_policies, tmp_path):
    every = ",".join(catalogue.POLICIES)
    points, skipped = measure(with_policies, tmp_path, 2, "--ops", "sum_reduce", "--policies", every)
    measured = {p["params"]["policy"] for p in points}
    assert {p["valid"] for p in points} == {True}
    assert measured | {what.removeprefix("policy ") for what in skipped} == set(catalogue.POLICIES)
    assert measured >= {"manual", "polled", "auto", "thread:block"}


def test_points_of_a_monitor_say_what_the_network_has(with_policies, tmp_path, monkeypatch):
    monkeypatch.setenv("HEDDLE_MONITOR", "fake")
    points, _ = measure(with_policies, tmp_path, 2, "--ops", "put", "--policies", "auto,thread:monitor")
    told = {(p["params"]["policy"], p["params"].get("network_thread")) for p in points}
    monitor = {("thread:monitor", "none")} if with_policies.features["SHMEM_MT_HAVE_PROGRESS_NETWORK"] else set()
    assert told == {("auto", None)} | monitor


@pytest.mark.parametrize("op", ["put", "sum_reduce"])
def test_the_formula_holds_for_every_sample(implementation, tmp_path, op):
    if (op, "request_wait") not in ways_of(implementation, 2) and op != "put":
        pytest.skip("the library has no non-blocking collectives")
    points, _ = measure_one(implementation, tmp_path, 2, op, "--samples", "5")
    parts = [samples_of(points, "time", part) for part in ("communication", "compute", "total", "inside")]
    percent, slowdown = samples_of(points, "overlap", "overlap"), samples_of(points, "slowdown", "compute")
    assert len(percent) == 5
    for overlap_, slower, communication, compute, total, inside in zip(percent, slowdown, *parts):
        assert overlap_ == pytest.approx(100 * (1 - (total - compute) / communication), rel=1e-4, abs=1e-4)
        assert slower == pytest.approx(inside / compute, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_each_computation_is_named_and_right(implementation, tmp_path, kind):
    """Points of several computations in one folder are told apart."""
    points, _ = measure_one(implementation, tmp_path, 2, "put", "--computation", kind)
    assert {(p["params"]["computation"], p["valid"]) for p in points} == {(kind, True)}
    named = describe("overlap", {**points[0]["params"], "fabric": "on-node"})
    assert (f"computing in {kind}" in named) == (kind != "registers")


def test_a_computation_that_is_none_is_refused(shmem_mt):
    status, _, stderr = shmem_mt("run", "--computation", "disk")
    assert status == 2 and "no computation is called disk; there are registers, fma" in stderr


def test_several_computations_are_an_axis(implementation, tmp_path):
    points, _ = measure_one(implementation, tmp_path, 2, "put", "--computation", "fma,branches")
    assert {(p["params"]["computation"], p["valid"]) for p in points} == {("fma", True), ("branches", True)}
    assert len(points) == 2 * len(METRICS)


def test_overlap_below_0_is_kept(implementation, tmp_path):
    """Of a short put beside a long computation noise makes more than the put: its overlap falls on both sides of 0."""
    arguments = ["--samples", "20", "--compute-ratio", "100", "--sizes", "8"]
    for _ in range(30):
        points, _ = measure_one(implementation, tmp_path, 1, "put", *arguments)
        lowest = min(samples_of(points, "overlap", "overlap"))
        if lowest < 0:
            break
    assert lowest < 0


def test_the_computation_is_as_long_as_asked(implementation, tmp_path):
    """Within a factor that a wrong calibration exceeds each time. A right one may, too, while others take the cores."""
    arguments = ["--samples", "5", "--sample-ms", "2", "--compute-ratio", "20"]
    for _ in range(30):
        points, _ = measure_one(implementation, tmp_path, 1, "put", *arguments)
        compute, communication = (sorted(samples_of(points, "time", part)) for part in ("compute", "communication"))
        ratio = compute[2] / communication[2]
        if 4 < ratio < 100:
            break
    assert 4 < ratio < 100
    assert {p["params"]["compute_ratio"] for p in points} == {20}


def test_the_interval_of_polls_is_one_of_those_tried(with_policies, tmp_path):
    """Of a computation of at least 50 us those that fit are tried; where none fits there is one poll in the middle."""
    arguments = ["--ops", "put", "--syncs", "quiet", "--policies", "polled", "--sizes", str(1 << 20)]
    arguments += ["--compute-ratio", "20"]
    points, _ = measure(with_policies, tmp_path, 2, *arguments, "--polls-us", "3,7,1000000")
    assert round(1e6 * samples_of(points, "poll_interval", "inside")[0]) in (3, 7)
    points, _ = measure(with_policies, tmp_path, 2, *arguments, "--polls-us", "1000000")
    (kept,) = samples_of(points, "poll_interval", "inside")
    assert 0 < kept < 0.5  # seconds: half of what a computation took when it was calibrated, not the one asked for


FAULTS = {
    "rank-as-size": 2,
    "peer-list-ignored": 4,
    "one-pe-reduction": 2,
    "check-never-runs": 1,
    "skipped-operation": 1,
    "stale-result": 2,
    "last-element-missing": 2,
    "skipped-computation": 2,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_computation_that_is_left_out_is_caught(implementation, tmp_path, kind):
    arguments = ["--ops", "put", "--policies", "auto", "--computation", kind, "--plant-fault", "skipped-computation"]
    points, _ = measure(implementation, tmp_path, 2, *arguments)
    assert {p["valid"] for p in points} == {False}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_caught(implementation, tmp_path, fault):
    arguments = ["--ops", "put,get", "--policies", "auto", "--plant-fault", fault]
    points, _ = measure(implementation, tmp_path, FAULTS[fault], *arguments)
    assert {p["valid"] for p in points} == {False}


@pytest.mark.parametrize("fault", [f for f in FAULTS if f not in ("rank-as-size", "peer-list-ignored")])
def test_faults_of_collectives_are_caught(with_policies, tmp_path, fault):
    arguments = ["--ops", ",".join(COLLECTIVES), "--policies", "auto", "--plant-fault", fault]
    points, _ = measure(with_policies, tmp_path, 2, *arguments)
    assert {(p["params"]["op"], p["valid"]) for p in points} == {(op, False) for op in COLLECTIVES}


def test_get_named_put_is_caught(implementation, tmp_path):
    points, _ = measure(implementation, tmp_path, 2, "--ops", "put,get", "--plant-fault", "get-named-put")
    assert {(p["params"]["op"], p["valid"]) for p in points} == {("put", False), ("get", True)}


@pytest.mark.long
def test_what_cannot_be_measured_is_skipped_by_name(implementation, tmp_path):
    features = ("SHMEM_MT_HAVE_SHMEMX", "SHMEM_MT_HAVE_PROGRESS")
    without = compiled_without(implementation, tmp_path, "overlap", *features)
    arguments = ["--sizes", "12", "--policies", "auto,thread:block"]
    points, skipped = run_points(without, tmp_path, "overlap", 2, 1, *arguments)
    requests = {"put with request_each", "get with request_each"}
    assert (points, skipped) == ([], {*requests, *COLLECTIVES, "12 bytes", "policy thread:block"})
    points, skipped = run_points(without, tmp_path, "overlap", 2, 2)
    assert (points, skipped) == ([], {"threads=2"})


def test_what_needs_too_large_buffers_is_skipped_by_name(with_policies, tmp_path):
    arguments = ["--ops", "sum_reduce,alltoall", "--policies", "auto", "--buffer-bytes", "100000"]
    points, skipped = measure(with_policies, tmp_path, 2, *arguments)
    assert ({p["params"]["op"] for p in points}, skipped) == ({"sum_reduce"}, {"alltoall of 65536 bytes"})


def test_plan_has_one_thread_whatever_is_asked_for():
    chosen = plan.Choices(pes=(1,), threads=(2, 4), sizes=(65536,))
    starts = plan.starts(plan.PROFILES["quick"], catalogue.select(["overlap"]), chosen, cores=2)
    assert [(start.program, start.pes, start.threads) for start in starts] == [("overlap", 1, 1)]
    starts = plan.starts(plan.PROFILES["full"], catalogue.select(["overlap"]), chosen, cores=2)
    ops = [start.arguments[start.arguments.index("--ops") + 1] for start in starts]
    assert ops == ["put", "get", "broadcast", "fcollect", "alltoall", "sum_reduce"]


def test_a_policy_that_is_none_is_refused(shmem_mt):
    status, _, stderr = shmem_mt("run", "--policies", "auto,thread:sleep")
    assert status == 2 and "no progress policy is called thread:sleep" in stderr


def test_charts_have_a_line_for_each_policy_and_show_that_nothing_was_hidden(tmp_path):
    folder = RunFolder.open(str(tmp_path / "run"))
    for policy, scale in (("manual", 0.0), ("thread:block", 96.0)):
        for size in (8, 65536):
            names = dict(benchmark="overlap", op="alltoall", sync="request_wait", size_bytes=size, policy=policy)
            folder.add_point({**make_point(**names, metric="overlap", unit="%", scale=scale), "round": 0})
    (chart,) = policy_charts.charts(Points(folder.results()))
    (panel,) = chart.panels
    assert panel.title == "alltoall, request_wait, 2 PEs" and not chart.log_values
    assert {s.name: (s.x, s.y) for s in panel.series} == {
        "A, manual": ([8, 65536], [0, 0]),
        "A, thread:block": ([8, 65536], pytest.approx([96, 96], rel=0.03)),
    }


@pytest.mark.parametrize("low,axis", [(-30, (-31.8, 63.6)), (5, (0, 63.6))])
def test_the_axis_of_a_chart_reaches_below_0_where_values_do(low, axis):
    series = Series("A", COLOURS[0], x=[8], y=[40], low=[low], high=[60])
    chart = Chart("overlap", "Overlap", "", [Panel("put", [series])], "%", log_values=False)
    assert value_range(chart) == pytest.approx(axis)


def test_each_computation_has_a_panel(tmp_path):
    folder = RunFolder.open(str(tmp_path / "run"))
    for kind in ("registers", "memory"):
        names = dict(benchmark="overlap", op="put", sync="quiet", size_bytes=8, policy="auto", computation=kind)
        folder.add_point({**make_point(**names, metric="overlap", unit="%"), "round": 0})
    (chart,) = policy_charts.charts(Points(folder.results()))
    assert [panel.title for panel in chart.panels] == ["put, quiet, 2 PEs", "put, quiet, 2 PEs, computing in memory"]


def test_points_of_older_folders_are_drawn_as_auto(tmp_path):
    folder = RunFolder.open(str(tmp_path / "run"))
    old = make_point(benchmark="overlap", op="put", metric="time", unit="s", part="total", size_bytes=65536)
    folder.add_point({**old, "round": 0})
    (chart,) = policy_charts.charts(Points(folder.results()))
    assert [series.name for panel in chart.panels for series in panel.series] == ["A, auto"]


@pytest.mark.long
def test_the_driver_measures_with_one_pe(shmem_mt, wrappers, tmp_path):
    arguments = ["--only", "overlap", "--pes", "1", "--sizes", "65536", "--rounds", "1", "--compute-ratio", "2"]
    arguments += ["--policies", "auto", "--computation", "l1"]
    status, _, stderr = shmem_mt(
        "run", "--oshcc", wrappers[0], "--oshrun", wrappers[1], "--out", tmp_path / "run", *arguments
    )
    assert status == 0, stderr
    results = read_results(tmp_path / "run")
    assert {r["metric"] for r in results} == {"overlap", "slowdown", "time"}
    names = ("pes", "compute_ratio", "policy", "computation")
    assert {tuple(r["params"][name] for name in names) for r in results} == {(1, 2, "auto", "l1")}
    assert shmem_mt("compare", tmp_path / "run", tmp_path / "run")[0] == 5  # one start tells nothing
