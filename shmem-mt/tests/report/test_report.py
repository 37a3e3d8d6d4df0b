"""The report: one offline file, charts really drawn in a browser, no script error, pictures beside it."""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import make_point, sample_collectives
from shmem_mt.report import page
from shmem_mt.report.charts.model import Points
from shmem_mt.runner.results import RunFolder

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def report(shmem_mt, run_folder, tmp_path):
    """The path of a report on two implementations, one twice as good as the other."""
    out = tmp_path / "report.html"
    status, _, stderr = shmem_mt("report", run_folder("run", {"Fast": 2.0, "Slow & <odd>": 1.0}), "--out", out)
    assert status == 0, stderr
    return out


def chromium(tmp_path, *arguments):
    command = [
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=20000",
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, errors="replace").stdout


def specifications_in(text):
    """Those of all panels of a page."""
    found = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    return [panel for chart in found for panel in json.loads(chart)]


def charts_of(report):
    """How many charts the page is made of."""
    return len(re.findall(r'<script type="application/json">', report.read_text(encoding="utf-8")))


def drawn(dom, kind, path):
    """The paths of marks of that kind in what Vega has drawn."""
    groups = re.findall(rf'<g class="mark-{kind} role-mark[^>]*>(.*?)</g>', dom, re.DOTALL)
    return [one for group in groups for one in re.findall(rf"<path [^>]*{path}", group)]


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
@pytest.mark.long
def test_charts_are_drawn_without_script_errors(report, tmp_path):
    dom = chromium(tmp_path, "--dump-dom", report.as_uri())
    body = re.search(r"<body data[^>]*>", dom).group(0)
    charts = charts_of(report)
    assert charts >= 30
    assert f'data-charts-wanted="{charts}"' in body
    assert f'data-charts-drawn="{charts}"' in body
    assert 'data-script-errors=""' in body
    # Not only the page's own count: the marks of all points, starts and lines are in the document, with coordinates.
    specifications = specifications_in(report.read_text(encoding="utf-8"))
    rows = [layer.get("data", one["data"])["values"] for one in specifications for layer in one["layer"]]
    marks = [layer["mark"]["type"] for one in specifications for layer in one["layer"]]
    points = sum(len(values) for values, mark in zip(rows, marks) if mark in ("point", "circle"))
    lines = sum(len({row["s"] for row in values}) for values, mark in zip(rows, marks) if mark == "line")
    assert points > charts and lines > 0
    assert len(drawn(dom, "symbol", r'transform="translate\([\d.]+,[\d.]+\)" d="M')) == points
    assert len(drawn(dom, "line", r'd="M[\d.]+,[\d.]+')) == lines


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
@pytest.mark.long
def test_a_script_error_would_be_seen(report, tmp_path):
    """The check above can fail: a page with a broken chart is told apart."""
    text = report.read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(
        text.replace("await vegaEmbed(", "await vegaEmbed.noSuchThing("),
        encoding="utf-8",
    )
    body = re.search(r"<body data[^>]*>", chromium(tmp_path, "--dump-dom", broken.as_uri())).group(0)
    assert f'data-charts-drawn="{charts_of(report)}"' not in body
    assert 'data-script-errors=""' not in body


def test_the_page_needs_no_network(report):
    text = report.read_text(encoding="utf-8")
    assert not re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="?(?:https?:)?//', text)


@pytest.mark.long
def test_summary_has_ratios_and_shares(report):
    text = report.read_text(encoding="utf-8")
    rows = re.search(r'<section id="summary">.*?</section>', text, re.DOTALL).group(0)
    assert rows.count("2.00×") == 24
    assert "8-byte p, share of a plain store" in rows and "1 MiB put, share of memcpy" in rows
    assert "oversubscribed" in rows
    assert "Slow &amp; &lt;odd&gt;" in rows and "<odd>" not in rows
    assert "Test CPU &lt;1&gt;" in text


@pytest.mark.long
def test_collectives_have_a_table_with_the_ratio_to_the_floor(report):
    text = report.read_text(encoding="utf-8")
    rows = re.search(r'<section id="collectives">.*?</section>', text, re.DOTALL).group(0)
    names = ["barrier_all", "fcollect, 8 B", "fcollect, 1 KiB", "fcollect, 1 MiB"]
    assert re.findall(r'<th scope="row">(.*?)</th>', rows) == 2 * names
    assert rows.count("5.0 × floor") == rows.count("10.0 × floor") == 6
    assert rows.count("2.00×") == 8
    for slug in ("collectives-2-pes", "collectives-8-pes", "collectives-barriers"):
        assert f'<section id="{slug}">' in text


def test_a_label_with_collectives_alone_has_no_column_in_the_summary(shmem_mt, tmp_path):
    folder = RunFolder.open(str(tmp_path / "run"))
    for point in [make_point("Library"), *sample_collectives("Library", 2.0), *sample_collectives("MPI (X 1.0)", 1.0)]:
        folder.add_point({**point, "round": 0})
    folder.write_results()
    assert shmem_mt("report", folder.directory)[0] == 0
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    summary, collectives = (
        re.search(rf'<section id="{slug}">.*?</section>', text, re.DOTALL).group(0)
        for slug in ("summary", "collectives")
    )
    assert "MPI (X 1.0)" not in summary and "MPI (X 1.0)" in collectives


@pytest.mark.long
def test_pictures(report):
    folder = str(report)[: -len(".html")] + "-pictures"
    names = sorted(os.listdir(folder))
    assert len(names) == 2 * charts_of(report)
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            start = file.read(200)
        assert start.startswith(b"\x89PNG") if name.endswith(".png") else b"<svg" in start or b"<?xml" in start


@pytest.mark.long
def test_two_runs_with_the_same_label_are_told_apart(shmem_mt, run_folder, tmp_path):
    out = tmp_path / "both.html"
    status, _, _ = shmem_mt("report", run_folder("monday", {"A": 1.0}), run_folder("tuesday", {"A": 2.0}), "--out", out)
    assert status == 0
    text = out.read_text(encoding="utf-8")
    assert "A (monday)" in text and "A (tuesday)" in text


def test_invalid_points_are_shouted(shmem_mt, tmp_path):
    folder = RunFolder.open(str(tmp_path / "run"))
    folder.add_point({**make_point(valid=False), "why": "too fast", "round": 0})
    folder.add_point({**make_point(valid=False, op="put"), "round": 0})  # of an older folder
    folder.write_results()
    assert shmem_mt("report", folder.directory)[0] == 0
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "2 points are invalid" in text
    assert text.count("PEs: too fast</li>") == text.count("PEs: the bytes are wrong, or the check failed</li>") == 1
    assert "INVALID: too fast" in text


def test_labels_are_escaped_once(shmem_mt, tmp_path):
    """Everywhere: in titles, tables, legends, warnings, captions, and in the data that scripts read."""
    odd = """<script>&"'"""
    points = [make_point(odd), make_point("B & <b>", valid=False), make_point(odd, op="put", oversubscribed=True)]
    points += [make_point(odd, "cg", "time", "s", part=part, **{"class": odd}) for part in ("total", "compute")]
    points += [make_point(odd, "cg", "communication", "%", part="communication", **{"class": odd})]
    points += [make_point(odd, "cg", "rate", "it/s", part="total", **{"class": odd})]
    order = dict(fabric="tcp", rule="relaxed", outstanding=1, mechanism="eager")
    points += [make_point(odd, "ordering", **order), make_point(odd, "ordering", **{**order, "rule": "quiet"})]
    folder = RunFolder.open(str(tmp_path / "run"))
    for point in points:
        folder.keep_point({**point, "round": 0})
    folder.write_results()
    folder.write_json("machine.json", {"machine": {"cpu": odd}, "implementations": [], "settings": {"profile": odd}})
    assert shmem_mt("report", folder.directory)[0] == 0
    text = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    seen = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "<script" not in seen and "<b>" not in re.sub(r"<b>[^&]*</b>", "", seen)
    assert not re.findall(r"&amp;(?:lt|gt|amp|#34|#39|quot);", text)
    escaped = odd.translate(
        {ord("<"): "&lt;", ord(">"): "&gt;", ord("&"): "&amp;", ord('"'): "&#34;", ord("'"): "&#39;"}
    )
    for slug in ("facts", "summary", "mini-apps", "order-tcp", "rate-by-operation", "cg-forms"):
        assert escaped in re.search(rf'<section id="{slug}">.*?</section>', seen, re.DOTALL).group(0), slug
    names = {row["note"].split("\n")[0] for one in specifications_in(text) for row in one["data"]["values"]}
    assert names == {odd, "B & <b>", f"{odd}, relaxed", f"{odd}, quiet", "over quiet: acknowledged-strict (flatters)"}


def test_the_machines_facts_say_how_pes_were_bound():
    def point(binding, **params):
        return {**make_point(**{"fabric": "on-node", **params}), "binding": binding}

    one, two = point("1 CPU a PE"), point("2 CPUs a PE", oversubscribed=True)
    assert page.bindings([one, two, two]) == "2 CPUs a PE (2 points); 1 CPU a PE (1 point)"
    assert page.bindings([one, point("")]) == "1 CPU a PE (1 point); not recorded (1 point)"
    assert page.bindings([point("", fabric="simulated")]) == "nothing: simulated"


def test_every_report_says_how_pes_were_bound(report):
    facts = re.search(r'<section id="facts">.*?</section>', report.read_text(encoding="utf-8"), re.DOTALL).group(0)
    assert re.search(r"<dt>Bound</dt><dd>not recorded \(\d+ points\)</dd>", facts)


@pytest.mark.parametrize(
    "point,words,others",
    [
        (
            make_point(fabric="on-node"),
            "The clock stops after quiet",
            ("no clock ran", "whole program starts", "Plain"),
        ),
        (make_point(op="plain_store", fabric="on-node"), "Plain stores", ("no clock ran", "whole program starts")),
        (
            make_point(benchmark="startup", fabric="on-node"),
            "whole program starts",
            ("The clock stops", "no clock ran"),
        ),
        (make_point(benchmark="simulation", fabric="simulated"), "no clock ran", ("The clock stops", "Plain")),
    ],
)
def test_the_page_claims_no_more_than_holds_for_its_points(point, words, others):
    said = " ".join(page.method(Points([point])))
    assert words in said and not any(other in said for other in others)
    assert said.endswith("shmem-mt/docs/method.md.")


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
@pytest.mark.long
def test_a_point_says_what_it_is_when_one_hovers(report, tmp_path):
    hover = """
    addEventListener("load", async () => {
        while (document.body.dataset.scriptErrors === undefined) await new Promise(drawn => setTimeout(drawn, 50));
        const point = [...document.querySelectorAll("#rate-by-operation .mark-symbol path")].at(-1);
        const {left, top} = point.getBoundingClientRect();
        const at = {bubbles: true, clientX: left + 2, clientY: top + 2};
        for (const kind of ["pointerover", "pointermove"]) point.dispatchEvent(new PointerEvent(kind, at));
        document.body.dataset.tooltip = document.getElementById("vg-tooltip-element").innerText;
    });
    """
    before, _, after = report.read_text(encoding="utf-8").rpartition("</body>")
    hovered = tmp_path / "hovered.html"
    hovered.write_text(f"{before}<script>{hover}</script></body>{after}", encoding="utf-8")
    body = re.search(r"<body data[^>]*>", chromium(tmp_path, "--dump-dom", hovered.as_uri())).group(0)
    assert re.search(r'data-tooltip="plain store / load\s+g\s+140 M/s \[[^"]*\]\s+95 %, 6 starts', body), body
