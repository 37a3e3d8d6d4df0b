"""A page of two machines is two, of one machine one; the machine's limits, the splits of cores, the commands."""

import html
import itertools
import json
import pathlib
import re

import pytest
from conftest import make_point
from shmem_mt.catalogue import explain
from shmem_mt.report import page, report, vega
from shmem_mt.report.charts import by_threads, limits, model, splits
from shmem_mt.report.charts.model import Points
from shmem_mt.runner.results import RunFolder, load_results, merge_rounds
from test_accessible import DARK, needs_chromium, violations
from test_report import chromium, drawn


def told_machine(directory, **facts):
    path = pathlib.Path(directory, "machine.json")
    contents = json.loads(path.read_text(encoding="utf-8"))
    contents["machine"].update(facts)
    path.write_text(json.dumps(contents), encoding="utf-8")


@pytest.fixture
def written(shmem_mt, tmp_path, monkeypatch):
    """written(run folders): (the text of the page, what the command said)."""
    drawn = []
    monkeypatch.setattr(vega, "write", lambda chart, _folder: drawn.append(chart.slug))

    def write(*folders):
        out = tmp_path / "page.html"
        status, stdout, stderr = shmem_mt("report", *folders, "--out", out)
        assert status == 0, stderr
        assert len(set(drawn)) == len(drawn)  # no picture is written over another
        return out.read_text(encoding="utf-8"), stdout

    return write


def section(text, slug):
    return re.search(rf'<section id="{slug}".*?</section>', text, re.DOTALL).group(0)


def test_two_machines_on_one_page_are_two(run_folder, written):
    one, other = run_folder("here", {"A": 1.0}), run_folder("there", {"A": 2.0})
    told_machine(other, cpu="Another CPU")
    text, stdout = written(one, other)
    for slug, figure in (("headline", "60.1 M/s"), ("headline-machine-2", "120 M/s")):
        cards = section(text, slug)
        assert figure in cards and "better" not in cards and 'class="other"' not in cards
    summaries = [section(text, slug) for slug in ("summary", "summary-machine-2")]
    assert not any("is better than" in summary for summary in summaries)
    assert "A (here)" not in text and "A (there)" not in text
    charts = re.findall(r'<section id="([^"]*)"><h2>Message rate by size', text)
    assert charts == ["rate-by-size", "rate-by-size-machine-2"]
    assert "Another CPU" in section(text, "part-machine-2") and "Another CPU" not in section(text, "part")
    names = [line for line in stdout.splitlines() if line in ("here:", "there:")]
    assert names == 2 * ["here:", "there:"]  # figures, then answers


def test_two_runs_of_one_machine_stand_side_by_side(run_folder, written):
    text, _ = written(run_folder("here", {"A": 1.0}), run_folder("again", {"A": 2.0}))
    assert "A (again)" in section(text, "headline") and "as good" in section(text, "headline")
    assert "machine-2" not in text and 'id="part"' not in text


def test_the_command_is_on_the_page(run_folder, written):
    folder = run_folder("run", {"A": 1.0})
    pathlib.Path(folder, "command.txt").write_text("2026-01-02T03:04:05+0000 shmem-mt run --label 'A & B'\n")
    command = re.search(r'<dt>Command</dt><dd class="command">(.*?)</dd>', section(written(folder)[0], "facts"))
    assert html.unescape(command[1]) == "shmem-mt run --label 'A & B'"


def test_what_its_benchmarks_do_is_on_the_page(run_folder, written):
    told = section(written(run_folder("run", {"A": 1.0}))[0], "benchmarks")
    assert re.findall(r"<summary>(.*?)</summary>", told)[:2] == ["latency", "bandwidth"]
    assert "minimd" not in told  # no point is of it
    assert html.unescape(re.findall(r"<pre>(.*?)</pre>", told, re.DOTALL)[0]) == "\n".join(explain.picture("latency"))


def test_a_report_overwrites_reports_alone(shmem_mt, run_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(vega, "write", lambda *_: None)
    folder, notes = run_folder("run", {"A": 1.0}), tmp_path / "notes.html"
    notes.write_text("<title>My notes</title>")
    status, _, stderr = shmem_mt("report", folder, "--out", notes)
    assert status == 2 and "is no report of shmem-mt" in stderr
    assert notes.read_text() == "<title>My notes</title>"
    for _ in range(2):
        assert shmem_mt("report", folder)[0] == 0


def made(*points):
    """Points of these raw ones, six starts each."""
    merged = [merge_rounds([{**point, "round": n} for n in range(6)]) for point in points]
    return Points([{**one, "run": "run", "params": {"fabric": "on-node", **one["params"]}} for one in merged])


def charts_of(points):
    return {chart.slug: chart for chart in splits.charts(points)}


def test_a_heat_map_has_every_split_that_was_measured():
    split = [(2, 1), (2, 2), (4, 1), (4, 2)]
    points = [
        make_point(pes=pes, threads=threads, context="private" if threads > 1 else "default", scale=1e6 * pes * threads)
        for pes, threads in split
    ]
    shared = [make_point(pes=pes, threads=2, scale=1.0) for pes in (2, 4)]  # the default context of several threads
    chart = charts_of(made(*points, *shared))["splits"]
    (panel,) = vega.panels(chart)
    rows = panel["data"]["values"]
    assert [(row["pes"], row["threads"], round(row["share"], 2)) for row in rows] == [
        (2, 1, 0.25),
        (2, 2, 0.5),
        (4, 1, 0.5),
        (4, 2, 1.0),
    ]
    assert rows[3]["told"] == "8.02 M/s" and rows[3]["note"].startswith("4 PEs x 2 threads\n8.02 M/s [")
    assert "splits" not in charts_of(made(*points[:2]))  # one number of PEs is no map
    assert not vega.legend(chart) and len(vega._picture(chart)["vconcat"]) == 1


def app(pes, threads, rate, **more):
    common = {"benchmark": "hpccg", "pes": pes, "threads": threads, "part": "total", "sync": "put_signal"}
    common |= {"rows": 100, **more}
    return [
        make_point(**common, metric="rate", unit="iterations/s", op="blocking", scale=rate),
        make_point(**common, metric="time", unit="s", op="blocking", scale=1 / rate),
        make_point(**{**common, "part": "communication"}, metric="communication", unit="%", op="blocking", scale=10),
        make_point(**common, metric="rate", unit="iterations/s", op="auto", scale=99 * rate),
    ]


def test_efficiency_is_the_rate_of_a_core_over_that_of_the_fewest():
    points = made(*app(1, 1, 100), *app(2, 1, 180), *app(1, 2, 150), *app(2, 2, 200))
    chart = charts_of(points)["efficiency"]
    (panel,) = chart.panels
    assert panel.title.startswith("hpccg, ") and panel.title.endswith(", rows 100")
    found = {one.name: dict(zip(one.x, one.y)) for one in panel.series}
    assert found["A, 1 thread a PE"] == pytest.approx({1: 100, 2: 90})
    assert found["A, 2 threads a PE"] == pytest.approx({2: 75, 4: 50})
    for one in panel.series:
        for value, low, high in zip(one.y, one.low, one.high):
            assert low <= value <= high
    assert "efficiency" not in charts_of(made(*app(1, 2, 100), *app(2, 1, 180)))  # as many cores
    notes = {one.name: dict(zip(one.x, one.notes)) for one in panel.series}
    assert "2 PEs x 1 threads, speed-up 1.80" in notes["A, 1 thread a PE"][2]
    assert "2 PEs x 2 threads, speed-up 2.00" in notes["A, 2 threads a PE"][4]


def test_a_problem_that_grows_has_a_panel_of_its_own():
    """Whatever its edges are, and without the runs that end their exchanges in another way."""
    weak = [point for split, rate, edge in GREW for point in app(*split, rate, size="tiny", edge=edge)]
    for point in weak:
        point["params"]["scale"] = "weak"
    chart = charts_of(made(*app(1, 1, 10), *app(2, 1, 20), *weak, *app(4, 1, 1, sync="plan")))
    strong, grown = chart["efficiency"].panels
    assert "weak" not in strong.title and grown.title.endswith("rows 100, size tiny, scale weak")
    assert dict(zip(grown.series[0].x, grown.series[0].y)) == pytest.approx({1: 100, 4: 95})
    assert max(strong.series[0].x) == 2


def test_a_problem_is_one_whatever_grid_its_boxes_make():
    """That of halo is cut into boxes, one for each thread."""
    grids = {(1, 1): "1x1x1", (2, 1): "2x1x1", (1, 2): "2x1x1", (2, 2): "2x2x1"}
    points = [point for split, grid in grids.items() for point in app(*split, 100, benchmark="halo", grid=grid)]
    for point in points:
        point["params"]["op"] = {"blocking": "jacobi7", "auto": "async7"}[point["params"]["op"]]
    chart = charts_of(made(*points))
    (panel,) = chart["efficiency"].panels
    found = {one.name: dict(zip(one.x, one.y)) for one in panel.series}
    assert found["A, 1 thread a PE"] == pytest.approx({1: 100, 2: 50}) and set(found["A, 2 threads a PE"]) == {2, 4}
    (field,) = chart["splits"].panels
    assert "grid" not in field.title and set(field.series[0].x) == set(grids)


GREW = [((1, 1), 100, 12), ((4, 1), 380, 19)]


def test_the_memory_of_the_job_is_a_map():
    split = [(2, 1), (2, 2), (4, 1), (4, 2)]
    job = dict(benchmark="hpccg", part="job", rows=100, op="blocking", sync="put_signal", metric="memory", unit="bytes")
    memory = [make_point(**job, pes=pes, threads=threads, scale=1e9 * pes) for pes, threads in split]
    points = made(*itertools.chain(*(app(*place, 10) for place in split)), *memory)
    (found,) = [p for p in charts_of(points)["splits"].panels if p.title.endswith("memory of the job")]
    assert dict(zip(found.series[0].x, found.series[0].y))[4, 2] == pytest.approx(4e9, rel=0.01)


def test_what_the_machine_can_do_at_best_is_a_line(run_folder):
    folder = run_folder("run", {"A": 1.0})
    told_machine(folder, hand_over_s=[5e-8, 7e-8, 6e-8])
    runs = [(folder, load_results(folder), json.loads(pathlib.Path(folder, "machine.json").read_text()))]
    by_slug = {chart.slug: chart for chart in report._part(1, runs).charts}
    (limit,) = by_slug["latency-8-bytes"].limits
    assert limit.value == 6e-8 and by_slug["latency-by-size"].limits and not by_slug["rate-by-size"].limits
    for slug, channel in (("latency-8-bytes", "x"), ("latency-by-size", "y")):
        for panel in vega.panels(by_slug[slug]):
            line = panel["layer"][0]
            assert line["mark"]["type"] == "rule" and line["data"]["values"][0]["value"] == 6e-8
            low, high = line["encoding"][channel]["scale"]["domain"]
            assert low < 6e-8 < high
    text = page.build([report._part(1, runs)])
    for slug in ("latency-8-bytes", "latency-by-size"):
        told = section(text, slug)
        seen = re.sub(r"<script.*?</script>", "", told, flags=re.DOTALL)
        assert seen.count("limit of what is handed over: a line, core to core") == 2  # the legend, and the table
        assert "60.0 ns [50.0 ns, 70.0 ns]" in told and "range of 3 starts" in told


def test_a_network_has_no_limit_of_the_machines_cores():
    chart = model.Chart("latency-8-bytes", "", "", [], "s")
    for fabric, count in (("tcp", 0), ("on-node", 1)):
        limits.add([chart], fabric, [{"machine": {"hand_over_s": [1e-7]}}])
        assert len(chart.limits) == count


def test_plain_stores_of_as_many_threads_stand_beside_p():
    points = made(
        *(make_point(threads=threads, context="default", scale=1e6) for threads in (1, 2)),
        *(make_point(op="plain_store", threads=threads, context="none", scale=2e6) for threads in (1, 2)),
    )
    (chart,) = [chart for chart in report._charts(points, "on-node") if chart.slug == "rate-by-threads"]
    (reference,) = [one for panel in chart.panels for one in panel.series if one.reference]
    assert (reference.name, reference.x) == ("plain store", [1, 2])


def test_a_run_folder_without_commands_has_none(tmp_path):
    folder = RunFolder.open(str(tmp_path / "run"))
    folder.add_point({**make_point(), "round": 0})
    folder.write_results()
    part = report._part(1, [(folder.directory, load_results(folder.directory), {})])
    assert "<dt>Command</dt>" not in page.build([part])


def curve(threads, rate_of):
    context = "default" if threads == 1 else "private"
    common = dict(benchmark="bandwidth", metric="bandwidth", unit="bytes/s", op="get", threads=threads, context=context)
    return [make_point(**common, size_bytes=size, scale=rate_of(size)) for size in (64, 1024, 16384)]


def test_where_several_threads_get_ahead_of_one_is_marked():
    points = made(
        *curve(1, lambda size: 1e6 * size),
        *curve(2, lambda size: 1e6 * size * (0.5 if size < 1024 else 1.5)),
        *curve(4, lambda size: 1e6 * size * (2.0 if size < 1024 else 0.5)),  # ahead, and behind again
    )
    (chart,) = by_threads.charts(points)
    assert chart.slug == "bandwidth-by-threads"
    (panel,) = chart.panels
    assert [one.name for one in panel.series] == ["A, 1 thread", "A, 2 threads", "A, 4 threads", by_threads.AHEAD]
    assert panel.series[-1].x == [1024] and "A, 2 threads" in panel.series[-1].notes[0]
    assert not by_threads.charts(made(*curve(1, float)))


def test_latency_by_threads_has_no_marks():
    common = dict(benchmark="latency", metric="latency", unit="s", op="p_quiet")
    points = made(make_point(**common), make_point(**common, threads=2, context="private"))
    (chart,) = by_threads.charts(points)
    assert [one.name for one in chart.panels[0].series] == ["A, 1 thread", "A, 2 threads"]


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize("how", [[], [DARK]], ids=str)
def test_fields_and_limits_are_drawn_and_read(written, tmp_path, how):
    """In a browser: as many fields as there are splits, a line across each panel that has a limit."""
    folder = RunFolder.open(str(tmp_path / "run"))
    trip = dict(benchmark="latency", metric="latency", unit="s", op="put_quiet", cache="hot")
    points = [make_point(**trip, size_bytes=size, scale=1e-7) for size in (8, 1024)]
    for pes, threads in ((2, 1), (2, 2), (4, 1), (4, 2)):
        points.append(make_point(pes=pes, threads=threads, context="private" if threads > 1 else "default"))
        points += app(pes, threads, 100 * pes)
    for point, number in itertools.product(points, range(6)):
        folder.keep_point({**point, "round": number})
    folder.write_results()
    machine = {"cpu": "Test CPU", "cores": 8, "hand_over_s": [5e-8, 6e-8, 7e-8]}
    folder.write_json("machine.json", {"machine": machine, "implementations": [], "settings": {}})
    written(folder.directory)
    path = tmp_path / "page.html"
    dom = chromium(tmp_path, *how, "--dump-dom", path.as_uri())
    assert 'data-script-errors=""' in dom
    heat, small = section(dom, "splits"), section(dom, "latency-8-bytes")
    assert len(drawn(heat, "rect", "d=")) == 8  # of p and of the mini-app
    assert len(re.findall(r'<g class="mark-rule role-mark[^>]*><line [^>]*stroke="#555555"', small)) == 1
    assert violations(path, tmp_path, *how, "--window-size=1400,2000") == {}
