"""The page for those who do not see it, or no colours: a table behind each chart, names, contrast, series told apart by
symbols and dashes. axe-core judges in a browser, where there is one."""

import html
import html.parser
import importlib.resources
import itertools
import json
import pathlib
import re

import pytest
from conftest import make_point
from shmem_mt.report import dark, page, report, vega
from shmem_mt.report.charts import model, ordering, simulation
from shmem_mt.report.charts.model import COLOURS, DASHES, REFERENCE_COLOUR, Points
from shmem_mt.runner.results import RunFolder, load_results
from test_report import CHROMIUM, chromium

CSS = pathlib.Path(page.__file__).with_name("templates").joinpath("page.css").read_text(encoding="utf-8")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")


@pytest.fixture
def charts_of(run_folder):
    """The charts of a run with these implementations: charts_of("ABC")."""

    def make(labels):
        folder = run_folder("run", {label: 1.0 + place for place, label in enumerate(labels)})
        points = Points(report._joined([(folder, load_results(folder), {})]))
        return [chart for fabric in points.fabrics() for chart in report._charts(points, fabric)]

    return make


@pytest.fixture
def written(shmem_mt, run_folder, tmp_path, monkeypatch):
    """(the path of the page of two implementations, what the command said). It has every section and every warning. B
    has not measured everything, and what it has is not all valid."""
    monkeypatch.setattr(vega, "write", lambda chart, folder: None)  # pictures take most of the time
    folder, out = run_folder("run", {"A": 2.0, "B & <b>": 1.0}), tmp_path / "report.html"
    add_what_is_rare(folder)
    results = pathlib.Path(folder, "results.jsonl")
    points = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    theirs = [point for point in points if point["label"] != "A" and point["metric"] == "rate"]
    theirs[0].update(valid=False, why="too fast")
    theirs[1].update(valid=None)
    points.remove(theirs[2])
    points[0].update(staggered=True, binding="1 CPU a PE")
    points[1].update(binding="2 CPUs a PE")
    results.write_text("".join(json.dumps(point) + "\n" for point in points), encoding="utf-8")
    status, stdout, stderr = shmem_mt("report", folder, "--out", out)
    assert status == 0, stderr
    return out, stdout


def add_what_is_rare(directory):
    """To a run folder: points of the study of order and of a simulation, a picture, and a machine that was busy."""
    folder = RunFolder.open(directory)
    common = dict(benchmark="ordering", op="put", fabric="tcp", mechanism="eager")
    for rule, fast in (("relaxed", 8), ("ordered", 4), ("quiet", 1)):
        for size, outstanding in itertools.product((8, 4096), (1, 8)):
            scale = 1e6 * min(fast, outstanding)
            point = make_point("A", **common, rule=rule, size_bytes=size, outstanding=outstanding, scale=scale)
            for number in range(6):
                folder.keep_point({**point, "round": number})
    for rule, cores, size in itertools.product(("relaxed", "ordered"), (1, 4), (8, 4096)):
        traffic = dict(nodes=2, cores=cores, pattern="pair", outstanding=8, mechanism="eager", size_bytes=size)
        point = make_point("net", "simulation", op="put", fabric="simulated", rule=rule, **traffic)
        folder.keep_point({**point, "samples": [1e6 * cores], "round": 0})
    folder.write_results()
    machine = {"cpu": "Test CPU", "cores": 2, "load_at_start": 9.0, "governor": "powersave"}
    folder.write_json("machine.json", {"machine": machine, "implementations": [], "settings": {}})
    images = pathlib.Path(directory, "images")
    images.mkdir()
    told = {"program": "mandelbrot", "label": "A", "pes": 2, "threads": 1, "fabric": "on-node"}
    (images / "one.json").write_text(json.dumps(told), encoding="utf-8")
    (images / "one.ppm").write_bytes(b"P6 2 1 255\n" + bytes(range(6)))


class Elements(html.parser.HTMLParser):
    """The elements of a page, as (tag, attributes, path of tags)."""

    VOID = ("meta", "br", "img", "link", "input", "hr")

    def __init__(self, text):
        super().__init__()
        self.found, self._open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes), tuple(self._open)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def all(self, tag):
        return [attributes for name, attributes, _ in self.found if name == tag]


def rows_of(text, slug):
    section = re.search(rf'<section id="{slug}">.*?</section>', text, re.DOTALL).group(0)
    table = re.search(r'<details class="figures">.*?<tbody>(.*?)</tbody></table></div></details>', section, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.group(1).split("</tr>") if row]


RARE = ("order-", "simulated-")


def test_each_chart_has_a_table_of_all_its_points(charts_of, written):
    text = written[0].read_text(encoding="utf-8")
    lacking = 0
    for chart in charts_of(["A", "B & <b>"]):
        series = [one for panel in chart.panels for one in panel.series]
        rows = rows_of(text, chart.slug)
        assert len(rows) > 0, chart.slug
        lacking += sum(len(one.x) for one in series) - len(rows)
        assert {html.unescape(row[-4]) for row in rows} <= {one.name for one in series}
        assert all(re.search(r"\d", row[-2]) for row in rows), chart.slug
        starts = "95 %, 6 starts|range of 3 starts|1 start" if chart.slug.startswith(RARE) else "95 %, 6 starts"
        assert all(re.search(starts, row[-1]) for row in rows), chart.slug
    assert lacking == 1  # what was not measured, in the one chart that has it
    assert ["put round trip (fence, flag), read", "A", "1 KiB"] in [row[:3] for row in rows_of(text, "latency-by-size")]


def test_the_structure_of_the_page(charts_of, written):
    text = re.sub(r"<script>.*?</script>", "", written[0].read_text(encoding="utf-8"), flags=re.DOTALL)
    elements = Elements(text)
    assert elements.all("html") == [{"lang": "en"}]
    assert all(cell.get("scope") in ("col", "row", "rowgroup") for cell in elements.all("th"))
    sections = [attributes["id"] for attributes in elements.all("section")]
    charts = [chart.slug for chart in charts_of(["A", "B & <b>"])]
    tables = ["summary", "mini-apps", "collectives", "order-tcp"]
    others = ["answers", "headline", *tables, "mandelbrot-pictures", "facts", "benchmarks", "method"]
    assert [name for name in sections if name not in charts] == others
    assert {name for name in sections if name in charts} == set(charts)
    warnings = [one for one in elements.all("div") if one.get("class", "").split()[:1] == ["warning"]]
    assert len(warnings) == 6
    of_order, explained, questions = 2, len(elements.all("pre")), 4
    folded = len(charts) + 3 + of_order
    assert explained > 10 and len(elements.all("caption")) == len(elements.all("table")) == folded
    assert all("details" in path for tag, _, path in elements.found if tag == "table")
    assert len(elements.all("summary")) == len(elements.all("details")) == folded + explained + questions + 1
    (nav,) = elements.all("nav")
    links = [attributes["href"] for tag, attributes, path in elements.found if tag == "a" and "nav" in path]
    assert nav["aria-label"] and links == [f"#{name}" for name in sections]  # in the order of the page
    divisions = elements.all("div")
    assert all(one.get("tabindex") == "0" and one["aria-label"] for one in divisions if one.get("class") == "scroll")
    assert all(one["role"] == "group" and one["aria-label"] for one in divisions if one.get("class") == "chart")
    names = [attributes["id"] for _, attributes, _ in elements.found if "id" in attributes]
    assert len(names) == len(set(names))
    levels = [int(tag[1]) for tag, _, _ in elements.found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and all(below - above <= 1 for above, below in itertools.pairwise(levels))


def test_what_a_program_feels_comes_first_with_interval_and_starts(written):
    out, stdout = written
    text = out.read_text(encoding="utf-8")
    headline = re.search(r'<section id="headline">.*?</section>', text, re.DOTALL).group(0)
    assert re.search(r'<main>\s*<section id="answers">(.(?!<section))*\s*<section id="headline">', text, re.DOTALL)
    cards = headline.split('<div class="card">')[1:]
    assert re.findall(r'<div class="what">(.*?)</div>', headline) == [
        "8-byte get, handed over",
        "8-byte put round trip",
        "8-byte p, read by the target",
        "1 MiB put, read",
    ]
    assert len(cards) == 4
    for card in cards:
        assert len(re.findall(r'<div class="sure">[^<]* to [^<]*, 95 %, 6 starts[^<]*</div>', card)) == 2
    first = stdout.splitlines()[0]
    assert re.fullmatch(r"8-byte get, handed over, A: \S+ ns \(\S+ ns to \S+ ns, 95 %, 6 starts.*\)", first), first


@pytest.mark.parametrize("labels", ["A", "ABCD"])
def test_series_are_told_apart_without_colour(charts_of, labels):
    several = 0
    for chart in charts_of(labels):
        for panel in chart.panels:
            kinds = len(vega.FILLINGS) if chart.kind == "dots" else DASHES
            looks = {one.name: (one.symbol, one.dash % kinds) for one in panel.series}
            assert len(set(looks.values())) == len(looks), (chart.slug, panel.title, looks)
            several += len(looks) > 1
    assert several > (5 if labels == "A" else 20)


def test_rules_are_told_apart_without_colour():
    for colours in (ordering._COLOURS, simulation._COLOURS):
        rules = [model.Series(rule, colour).symbol for rule, colour in colours.items()]
        assert len(set(rules)) == len(rules)
    assert set(ordering._RULES) == set(ordering._COLOURS)


def test_the_renderer_has_all_looks():
    symbols = {model.Series("", colour).symbol for colour in COLOURS} | {model.REFERENCE_SYMBOL}
    assert len(symbols) == len(COLOURS) + 1
    assert symbols == set(vega.SYMBOLS)
    assert len(set(vega.SYMBOLS.values())) == len(symbols)
    assert len({tuple(dash) for dash in vega.DASHES}) == len(vega.DASHES) == DASHES
    dots = model.Chart("", "", "", [], "s", kind="dots")
    looks = [vega.look(dots, model.Series("", COLOURS[0], dash=number)) for number in range(DASHES)]
    looks = [tuple(str(value) for value in look.values()) for look in looks]
    assert len(set(looks)) == len(vega.FILLINGS)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    """As WCAG has it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_lines_have_three_times_the_contrast_of_the_page():
    for colour in (*COLOURS, REFERENCE_COLOUR):
        assert contrast(colour, "#ffffff") >= 3, colour


def names_of(scheme):
    """{name: colour} of page.css, on a light page or a dark one."""
    blocks = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    light, dark_ones = (dict(re.findall(r"(--\w+): (#\w+);", block)) for block in blocks)
    return light if scheme == "light" else {**light, **dark_ones}


def colours_in(text, names):
    """Those of a value, with the names of page.css resolved."""
    text = re.sub(r"var\((--\w+)\)", lambda name: names[name[1]], text)
    short = re.findall(r"#(?:[0-9a-f]{6}|[0-9a-f]{3})\b", text)
    return [colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:]) for colour in short]


def test_a_dark_page_has_a_colour_of_its_own_for_all_that_is_drawn():
    found = dark.colours()
    lines = (*COLOURS, REFERENCE_COLOUR)
    drawn = {colour for chart in ("dots", "lines") for one in lines for colour in looks_of(chart, one)}
    assert drawn <= set(found), drawn - set(found)
    assert len(set(dark.LINES.values())) == len(dark.LINES)
    for light in (*dark.LINES, vega.INK, vega.AXIS):
        assert contrast(found[light], dark.GROUND) >= (4.5 if light == vega.INK else 3), light
    assert names_of("dark")["--page"] == dark.GROUND and names_of("light")["--page"] == "#ffffff"
    assert set(names_of("light")) == set(names_of("dark"))
    assert not re.search(r"#[0-9a-f]{3,6}\b", CSS[CSS.index("* {") :])  # all colours have names


def looks_of(kind, colour):
    """The colours of what is drawn for a series."""
    chart = model.Chart("", "", "", [], "s", kind=kind)
    for number in range(DASHES):
        look = vega.look(chart, model.Series("", colour, dash=number))
        yield from (look["fill"], look["stroke"], look["colour"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_four_and_a_half_times_the_contrast_of_what_is_behind_it(scheme):
    names = names_of(scheme)
    page_and_row = [names["--page"], names["--row"]]
    checked = 0
    for selector, body in re.findall(r"([^{}]+)\{([^}]*)\}", CSS):
        inks = re.search(r"(?<![-\w])color: ([^;]+);?", body)
        grounds = re.search(r"background: ([^;]+);?", body)
        for ink in colours_in(inks[1], names) if inks else ():
            for ground in colours_in(grounds[1], names) if grounds else page_and_row:
                assert contrast(ink, ground) >= 4.5, (selector.strip(), ink, ground)
                checked += 1
    assert checked > 20


def test_the_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == 21 and 4.4 < contrast("#777777", "#ffffff") < 4.5


def violations(path, tmp_path, *how):
    """What axe-core finds in the page with everything open, as {rule: elements}. `how`: flags of the browser."""
    audit = """
    addEventListener("load", async () => {
        while (document.body.dataset.scriptErrors === undefined) await new Promise(drawn => setTimeout(drawn, 50));
        document.querySelectorAll("details").forEach(one => { one.open = true; });
        const found = await axe.run(document, {resultTypes: ["violations"]});
        const told = found.violations.map(one => [one.id, one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))]);
        document.body.dataset.axe = JSON.stringify(Object.fromEntries(told));
        document.body.dataset.dark = matchMedia("(prefers-color-scheme: dark)").matches;
        document.body.dataset.wider = document.scrollingElement.scrollWidth - innerWidth;
    });
    """
    axe = importlib.resources.files("axe_core_python").joinpath("axe.min.js")
    library = axe.read_text(encoding="utf-8").replace("</script", "<\\/script")
    added = f"<script>{library}</script><script>{audit}</script></body>"
    before, _, after = path.read_text(encoding="utf-8").rpartition("</body>")
    audited = tmp_path / "audited.html"
    audited.write_text(before + added + after, encoding="utf-8")
    dom = chromium(tmp_path, *(how or ["--window-size=1400,2000"]), "--dump-dom", audited.as_uri())
    assert f'data-dark="{str(DARK in how).lower()}"' in dom
    assert int(re.search(r'data-wider="(-?\d+)"', dom)[1]) <= 0, "the page must be scrolled sideways"
    return json.loads(html.unescape(re.search(r'data-axe="(.*?)"', dom)[1]))


DARK = "--blink-settings=preferredColorScheme=0"


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize("how", [[], [DARK], ["--window-size=360,800"], ["--window-size=360,800", DARK]], ids=str)
def test_axe_finds_nothing(written, tmp_path, how):
    assert violations(written[0], tmp_path, *how) == {}


@needs_chromium
@pytest.mark.long
def test_axe_would_find_something(written, tmp_path):
    text = written[0].read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("<main>", '<main><img src="data:,">'), encoding="utf-8")
    assert "image-alt" in violations(broken, tmp_path)
