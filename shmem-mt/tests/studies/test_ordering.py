"""The study of order: what its figures are made of, that each rule is what it says, and that rails are as asked."""

import random
import re
import subprocess

import pytest
from conftest import make_point, read_results, run_points
from shmem_mt.catalogue import catalogue, plan
from shmem_mt.catalogue.profiles import NETWORK_PROFILES
from shmem_mt.report import ordering_chapter
from shmem_mt.report.charts import ordering as ordering_charts
from shmem_mt.report.charts.model import Points
from shmem_mt.runner.process import run_program
from shmem_mt.runner.results import merge_rounds
from shmem_mt.statistics import FEWEST_STARTS
from shmem_mt.studies import ordering
from shmem_mt.studies.ordering import Study
from shmem_mt.targets import fabrics, hosts
from shmem_mt.targets.libraries import class_of

WINDOWS = ["--sizes", "8,40000", "--outstanding", "1,2,32"]
RULES = ("relaxed", "ordered", "fence", "quiet")


def result(scale, valid=True, wobble=0.01, times=4):
    starts = [scale * (1 + wobble * step) for step in (-1, 0, 1) * times]
    merged = merge_rounds([{**make_point(valid=valid), "samples": [value]} for value in starts])
    return {**merged, "run": "run"}


def study_point(label, rule, size, outstanding, rate, metric="rate", **more):
    params = dict(fabric="tcp", rule=rule, op=rule, size_bytes=size, outstanding=outstanding)
    params |= dict(rails=1, mechanism="batch")
    unit = "messages/s" if metric == "rate" else "bytes/s"
    point = make_point(label, "ordering", metric, unit, rate, **{**params, **more})
    return {**merge_rounds([point] * 12), "run": "run", "library": label}


def study_points(free=8.0):
    """A library whose relaxed puts are `free` times as fast as a message each, beside MPI."""
    for size in (8, 65536):
        for outstanding in (1, 8, 64):
            fast = min(outstanding, free)
            yield study_point("A", "relaxed", size, outstanding, 1000 * fast)
            yield study_point("A", "ordered", size, outstanding, 1000 * min(outstanding, 4))
            yield study_point("MPI (X 1)", "two-sided", size, outstanding, 500 * min(outstanding, 16))
        yield study_point("A", "quiet", size, 1, 1000)
    for mechanism, rates in {"batch": (9e3, 1e9), "rendezvous": (1e3, 3e9)}.items():
        for size, rate in zip((8, 65536), rates):
            yield study_point("A", "relaxed", size, 8, rate, "bandwidth", mechanism=mechanism)
    for own in (dict(coalescing="off"), dict(slice_bytes=16384)):  # neither is what the library does by itself
        yield study_point("A", "relaxed", 8, 128, 1e9, **own)


@pytest.mark.parametrize(
    "rates,peak_at,at,rising",
    [
        ({1: 10, 8: 80, 64: 95, 512: 100}, 512, 64, False),
        ({1: 10, 8: 100, 64: 50}, 8, 8, False),
        ({1: 100, 8: 100}, 1, 1, False),
        ({1: 10, 8: 20}, 8, 8, True),
        ({1: 90, 8: 100}, 8, 1, False),
        ({4: 10}, 4, 4, False),
    ],
)
def test_how_much_it_takes_to_reach_90_percent(rates, peak_at, at, rising):
    found = ordering.reach({amount: result(rate) for amount, rate in rates.items()})
    assert (found.peak_at, found.at, found.rising) == (peak_at, at, rising)
    assert found.result["median"] >= 0.9 * found.peak["median"]


def test_what_is_best_by_luck_is_reported_without_it():
    """Four windows of the same speed, noise of 20 %: the best of them is no better than the one without a choice."""
    draw = random.Random(1)

    def noisy():
        rounds = [[1000 * draw.gauss(1, 0.2)] for _ in range(6)]
        return merge_rounds([{**make_point(), "samples": one, "round": n} for n, one in enumerate(rounds)])

    peaks = [ordering.reach({amount: noisy() for amount in (1, 8, 64, 512)}).peak for _ in range(60)]
    mean = sum(peak["median"] for peak in peaks) / len(peaks)
    assert 970 < mean < 1030
    assert {tuple(peak["round_sizes"]) for peak in peaks} == {(1, 1, 1)}
    assert ordering.reported(result(5))["median"] == result(5)["median"]  # one start has no others


def test_nothing_reaches_nothing():
    assert ordering.reach({}) is None


@pytest.mark.parametrize(
    "earlier,later,at,low,high",
    [
        ((10, 10, 10, 10), (1, 5, 20, 30), 4, 2, 4),
        ((10, 10, 10, 10), (1, 20, 5, 30), 8, 4, 8),  # ahead for a while is not yet the cut-over
        ((10, 10, 10, 10), (20, 20, 20, 20), 1, None, 1),
        ((10, 10, 10, 10), (1, 1, 1, 1), None, 8, None),
        ((10, 10, 10, 10), (20, 20, 20, 5), None, 8, None),
        ((10, 10, 10, 10), (1, 10.05, 10.05, 20), 2, 1, 8),  # ahead, but not clearly
        ((10, 10, 10, 10), (10, 10, 10, 10), None, None, None),
    ],
)
def test_cut_over(earlier, later, at, low, high):
    sizes = (1, 2, 4, 8)
    found = ordering.cut_over(*({s: result(v) for s, v in zip(sizes, values)} for values in (earlier, later)))
    assert (found.at, found.low, found.high, found.sizes) == (at, low, high, list(sizes))


def test_what_has_few_starts_is_a_range_and_clear_of_nothing():
    few = ordering.ratio(result(41, times=1), result(10, times=1))
    assert ordering.verdict(few) == "too few starts to tell"
    assert ordering_chapter.times(few) == "4.10 × (4.10 to 4.10, range of 3 starts)"
    assert ordering_chapter.times(ordering.ratio(result(41), result(10))) == "4.10 × (4.10 to 4.10, 95 %, 12 starts)"
    one = merge_rounds([{**make_point(), "round": 0}])
    assert ordering_chapter.times(ordering.ratio(one, one)) == "1.00 × (1 start, no interval)"
    found = ordering.cut_over(*({size: result(value, times=1) for size in (1, 2)} for value in (1, 10)))
    assert (found.at, found.low, found.high) == (1, None, None)


def test_a_full_study_has_the_starts_of_an_interval_where_half_of_them_choose():
    for profiles in (plan.PROFILES, NETWORK_PROFILES):
        rounds = {group.rounds for group in profiles["full"].groups if group.benchmark == "ordering"}
        assert rounds == {2 * FEWEST_STARTS}


def test_no_cut_over_without_a_common_size():
    assert ordering.cut_over({8: result(1)}, {16: result(1)}) is None
    assert ordering.cut_over({}, {}) is None


def test_ratios():
    found = ordering.ratio({**result(41), "run": "another run"}, result(10))
    assert found["median"] == pytest.approx(4.1) and found["unit"] == "x"
    assert found["interval"][0] < 4.1 < found["interval"][1]
    assert ordering.verdict(found) == "faster"
    assert ordering.verdict(ordering.ratio(result(10), result(41))) == "slower"
    assert ordering.verdict(ordering.ratio(result(10), result(10))) == "no clear difference"
    assert ordering.ratio(result(1), result(1, valid=False)) is None
    assert ordering.ratio(result(1), result(0)) is None
    assert ordering.ratio(None, result(1)) is None


def test_ratios_are_of_peaks_and_each_has_its_baseline():
    ratios = Study(Points(list(study_points()))).ratios()
    assert {(label, other, rule) for label, _, other, rule in ratios} == {
        ("A", "A", "quiet"),
        ("A", "A", "ordered"),
        ("A", "MPI (X 1)", "two-sided"),
    }
    found = {rule: sizes[8]["median"] for (_, _, _, rule), sizes in ratios.items()}
    assert found == {"quiet": pytest.approx(8), "ordered": pytest.approx(2), "two-sided": pytest.approx(1)}


def test_other_places_and_other_libraries_are_no_baseline():
    points = [*study_points(), study_point("B", "fence", 8, 1, 1.0)]
    points += [study_point("A", "fence", 8, 1, 1.0, threads=2), study_point("A, 2 rails", "fence", 8, 1, 1.0, rails=2)]
    assert not any(rule == "fence" for *_, rule in Study(Points(points)).ratios())


def test_active_cores():
    points = [study_point("A", "quiet", 8, 1, 1000.0 * n, threads=n) for n in (1, 2, 4)]
    points += [study_point("A", "relaxed", 8, 64, 4000.0 + n, threads=n) for n in (1, 2, 4)]
    found = Study(Points(points)).cores()
    assert {rule: (one.at, one.rising) for (_, rule, _), one in found.items()} == {
        "quiet": (4, True),
        "relaxed": (1, False),
    }


def test_the_chapter_says_what_the_numbers_say():
    text = ordering_chapter.section(Points(list(study_points())), "tcp")
    assert text.startswith('<section id="order-tcp"><h2>Order, tcp</h2>')
    assert "relaxed reaches 8.02 k/s with 8 outstanding" in text
    assert re.search(r"Over quiet, acknowledged-strict \(flatters\), that is 8\.00 × \([^)]*\): faster", text)
    assert re.search(r"Over ordered, ordered pipeline \(fair\), that is 2\.00 × \([^)]*\): faster", text)
    assert "rendezvous stays ahead of batch from 64 KiB on" in text
    assert "over two-sided: MPI two-sided" in text and "MPI (X 1), two-sided, 2 PEs" in text
    slow = ordering_chapter.section(Points(list(study_points(free=2.0))), "tcp")
    assert re.search(r"Over ordered, ordered pipeline \(fair\), that is 0\.50 × \([^)]*\): slower", slow)
    assert ordering_chapter.section(Points([make_point()]), "tcp") == ""


def test_charts():
    made = {chart.slug: chart for chart in ordering_charts.charts(Points(list(study_points())))}
    assert list(made) == ["order-rate-by-size", "order-by-outstanding", "order-ratio", "order-mechanisms"]
    marks = [s for s in made["order-by-outstanding"].panels[0].series if s.name == "90 % of the rule's peak"]
    assert [mark.x for mark in marks] == [[8], [8], [64]]  # relaxed, ordered, two-sided
    names = {series.name for series in made["order-ratio"].panels[0].series}
    assert "over quiet: acknowledged-strict (flatters)" in names and "over ordered: ordered pipeline (fair)" in names
    assert not ordering_charts.charts(Points([{**make_point(), "run": "run"}]))


def test_two_rails_stand_beside_one():
    points = [
        {**study_point(label, "relaxed", size, 8, rate, "bandwidth", rails=rails), "library": "A"}
        for label, rails, rate in (("A", 1, 1e8), ("A, 2 rails", 2, 2e8))
        for size in (8, 65536)
    ]
    (chart,) = [chart for chart in ordering_charts.charts(Points(points)) if chart.slug == "order-rails"]
    lines = chart.panels[0].series
    assert [one.name for one in lines] == ["1 rail", "2 rails"] and lines[1].y == [2 * y for y in lines[0].y]


def measure(implementation, tmp_path, *arguments, pes=2, threads=1, fabric=fabrics.ON_NODE, coalescing=""):
    """{(rule, mechanism, size, outstanding): valid} of the rates of one short start that must go well."""
    points = []
    quick = ["--samples", "1", "--sample-ms", "0.1", "--threads", str(threads), *WINDOWS, *arguments]
    command = implementation.launch_command("ordering", pes, threads, quick, fabric, coalescing)
    outcome = run_program(command, str(tmp_path / "log.txt"), 120, points.append, implementation.exit_status_counts)
    assert outcome.ok, outcome.problem
    return {
        tuple(point["params"][name] for name in ("rule", "mechanism", "size_bytes", "outstanding")): point["valid"]
        for point in points
        if point["metric"] == "rate"
    }


@pytest.mark.parametrize("pes,threads", [(2, 1), (4, 2)])
def test_rules_on_the_node(implementation, tmp_path, pes, threads):
    found = measure(implementation, tmp_path, pes=pes, threads=threads)
    assert set(found.values()) == {True}
    rules = {rule for rule, *_ in found}
    assert {"relaxed", "fence", "quiet"} <= rules <= {*catalogue.PUT_RULES}
    assert {outstanding for rule, _, _, outstanding in found if rule == "relaxed"} == {1, 2, 32}
    assert {outstanding for rule, _, _, outstanding in found if rule == "quiet"} == {1}


@pytest.mark.parametrize("coalescing,copying", [("on", "batch"), ("off", "eager")])
def test_rules_and_mechanisms_over_tcp(heddle, tmp_path, coalescing, copying):
    found = measure(heddle, tmp_path, fabric=fabrics.TCP, coalescing=coalescing)
    assert set(found.values()) == {True}
    assert {(rule, mechanism) for rule, mechanism, size, _ in found if size == 8} == {(r, copying) for r in RULES}
    large = {(rule, mechanism) for rule, mechanism, size, _ in found if size == 40000}
    assert large == {*((rule, "rendezvous") for rule in RULES), ("relaxed", copying)}


BROKEN = {  # fault -> the rules that it breaks, of those with several messages outstanding
    "rule-ignored": {"ordered", "fence"},
    "window-ignored": {"relaxed", "ordered", "fence"},
    "late-message": {"ordered", "fence"},
    "rank-as-size": {"relaxed", "ordered", "fence"},
    "check-never-runs": {"relaxed", "ordered", "fence"},
    "get-named-put": {"relaxed", "ordered", "fence"},
    "skipped-operation": {"relaxed", "ordered", "fence"},
}


@pytest.mark.parametrize("fabric", [fabrics.ON_NODE, fabrics.TCP], ids=lambda fabric: fabric.name)
@pytest.mark.parametrize("fault", BROKEN)
def test_faults_are_seen(heddle, tmp_path, fault, fabric):
    found = measure(heddle, tmp_path, "--plant-fault", fault, fabric=fabric)
    several = [(key, valid) for key, valid in found.items() if key[3] > 1]
    assert len(several) >= 12
    for (rule, *_), valid in several:
        assert valid == (rule not in BROKEN[fault]), (fault, rule)


@pytest.mark.parametrize("fault", ["rule-ignored", "window-ignored", "rank-as-size", "skipped-operation"])
def test_faults_of_one_by_one(heddle, tmp_path, fault):
    found = measure(heddle, tmp_path, "--plant-fault", fault, "--ops", "quiet")
    assert set(found.values()) == {False}


def test_a_wrong_peer_among_four(implementation, tmp_path):
    assert set(measure(implementation, tmp_path, "--plant-fault", "peer-list-ignored", pes=4).values()) == {False}


def test_what_a_library_cannot_do_is_skipped_by_name(implementation, tmp_path):
    _, skipped = run_points(implementation, tmp_path, "ordering", 2, 1, *WINDOWS, "--ops", "reorder-buffer")
    assert skipped in ({"reorder-buffer"}, set())
    points, skipped = run_points(implementation, tmp_path, "ordering", 2, 1, *WINDOWS, "--buffer-bytes", "8192")
    assert "32 messages of 40000 bytes" in skipped and points


@pytest.mark.parametrize("threads", [1, 2])
def test_rules_of_mpi(mpi_reference, tmp_path, threads):
    found = measure(mpi_reference, tmp_path, threads=threads)
    assert set(found.values()) == {True}
    assert {rule for rule, *_ in found} == {*catalogue.MPI_RULES}
    found = measure(mpi_reference, tmp_path, "--plant-fault", "window-ignored", threads=threads)
    assert set(found.values()) == {False}


@pytest.mark.parametrize("fault", ["rank-as-size", "get-named-put"])
def test_faults_of_puts_of_mpi(mpi_reference, tmp_path, fault):
    found = measure(mpi_reference, tmp_path, "--plant-fault", fault, "--ops", "mpi-put,mpi-put-flush")
    assert set(found.values()) == {False}


@pytest.mark.parametrize(
    "outstanding,complaint", [("0", "not a number"), ("3", "not a power of two"), ("131072", "not a number")]
)
def test_windows_that_are_none(implementation, outstanding, complaint):
    command = implementation.launch_command("ordering", 2, 1, ["--outstanding", outstanding])
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode != 0 and complaint in done.stderr


BAD_INPUT = [
    (["--outstanding", "0"], "'0' is not a number between 1 and 65536"),
    (["--outstanding", "1,3"], "'3' is not a power of two"),
    (["--rails", "0"], "'0' is not a number between 1 and 8"),
    (["--rails", "9"], "'9' is not a number between 1 and 8"),
    (["--rails", "two"], "'two' is not a number"),
    (["--fabric", "tcp", "--rails", "2"], "--rails 2: no fabric here has links; give --fabric namespaces, too"),
    (["--fabric", "namespaces", "--link-rate", "100mbit,"], "'' is not a rate such as 100mbit"),
    (["--fabric", "namespaces", "--link-rate", "100mbit;50mbit"], "is not a rate such as 100mbit"),
    (["--fabric", "namespaces", "--link-rate", "1gbit,1gbit"], "2 rates; right would be one, or one for each of 1 "),
    (["--fabric", "namespaces", "--rails", "3", "--link-rate", "1gbit,1gbit"], "one, or one for each of 3 rails"),
    (["--pes", "3"], "for ordering the number of PEs must be even"),
]


@pytest.mark.parametrize("arguments,complaint", BAD_INPUT)
def test_bad_input(shmem_mt, arguments, complaint):
    fake = ["--oshcc", "true", "--oshrun", "true"]
    status, _, stderr = shmem_mt("run", *fake, "--only", "ordering", *arguments)
    assert status == 2 and complaint in stderr and stderr.count("\n") == 1


def test_a_study_is_measured_only_by_name():
    assert "ordering" not in [benchmark.name for benchmark in catalogue.select(None)]
    assert [benchmark.name for benchmark in catalogue.select(["ordering"])] == ["ordering"]


def test_over_which_fabric(monkeypatch):
    monkeypatch.setattr(fabrics.hosts, "missing", lambda: "root")
    assert fabrics.for_studies() == fabrics.TCP
    monkeypatch.setattr(fabrics.hosts, "missing", lambda: "")
    monkeypatch.setattr(fabrics.shutil, "which", lambda name: name)
    assert fabrics.for_studies() == fabrics.NAMESPACES


def library(kind):
    made = class_of(kind)(kind, "oshcc", ["oshrun"], "1", "cc")
    made.binaries["ordering"] = "ordering"
    return made


def test_rails_are_told_and_named():
    one, two, tcp = fabrics.parse(["namespaces", "tcp"], "100mbit,50mbit", [1, 2])
    assert (one.rails, one.link_rate, two.rails, two.link_rate) == (1, "100mbit", 2, "100mbit,50mbit")
    assert tcp == fabrics.TCP and fabrics.parse(["namespaces"]) == [fabrics.NAMESPACES]
    command = library("Heddle").launch_command("ordering", 2, 1, [], two)
    assert {"HEDDLE_NET_RAILS=2", "HEDDLE_NET_DEVICES=eth0,eth1"} <= {*command}
    assert not any("RAILS" in word for word in library("Heddle").launch_command("ordering", 2, 1, [], tcp))
    assert "several rails" in library("Open MPI").unable(two) and not library("Open MPI").unable(one)
    chosen = catalogue.select(["ordering"])
    starts = {f: plan.starts_over(f, "quick", chosen, plan.Choices(), 2) for f in (one, two, tcp)}
    assert starts[two][0].params(library("Heddle"))["rails"] == 2
    assert "rails" not in starts[tcp][0].params(library("Heddle"))
    assert len({start.key("A", 0) for some in starts.values() for start in some}) == 3 * len(starts[one])


def test_who_measures_what():
    starts = plan.starts_over(fabrics.TCP, "quick", catalogue.select(["ordering"]), plan.Choices(), 2)
    rules = [(s.threads, s.coalescing, s.setting, s.arguments[1]) for s in starts]
    every = "relaxed,ordered,fence,quiet,two-sided,two-sided-any,mpi-put,mpi-put-flush"
    assert rules == [
        (1, "", "", every),
        (2, "", "", every),
        (1, "off", "", "relaxed"),
        (1, "", "reorder", "reorder-buffer"),
        (2, "", "reorder", "reorder-buffer"),
    ]
    assert [library("Open MPI").measures(start) for start in starts] == [True, True, False, False, False]
    command = library("Heddle").launch_command("ordering", 2, 1, [], fabrics.TCP, setting="reorder")
    assert "HEDDLE_ORDER=reorder" in command


def test_hosts_have_the_links_that_are_asked_for():
    if hosts.missing():
        pytest.skip(f"hosts need {hosts.missing()}")
    with hosts.made(2, "100mbit,50mbit", 2) as made:
        for host in made.all:
            rates = [host.do("tc", "qdisc", "show", "dev", f"eth{n}") for n in range(2)]
            assert [re.search(r"rate (\w+)", rate)[1] for rate in rates] == ["100Mbit", "50Mbit"]
    with hosts.made(2, "1gbit", 2) as made:
        assert all("rate 1Gbit" in made.all[0].do("tc", "qdisc", "show", "dev", f"eth{n}") for n in range(2))


@pytest.mark.parametrize("fabric", ["on-node", "tcp"])
@pytest.mark.long
def test_a_short_run_and_its_report(heddle, shmem_mt, tmp_path, fabric):
    arguments = ["--only", "ordering", "--sizes", "8,65536", "--threads", "1", "--outstanding", "1,8", "--rounds", "1"]
    arguments += ["--oshcc", heddle.oshcc, "--oshrun", heddle.oshrun[0], "--fabric", fabric, "--out", tmp_path / "run"]
    status, _, stderr = shmem_mt("run", *arguments)
    assert status == 0, stderr
    results = read_results(tmp_path / "run")
    assert all(found["valid"] and found["params"]["fabric"] == fabric for found in results)
    assert {found["metric"] for found in results} == {"rate", "bandwidth"}
    assert {"relaxed", "ordered", "fence", "quiet"} <= {found["params"]["rule"] for found in results}
    assert shmem_mt("report", tmp_path / "run")[0] == 0
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert f"<h2>Order, {fabric}</h2>" in text and 'id="order-ratio' in text and "ordered pipeline (fair)" in text
