"""`shmem-mt report`: one HTML file that works offline, and a folder of PNG and SVG pictures beside it."""

import os

from shmem_mt.advice import four_questions
from shmem_mt.errors import UserError
from shmem_mt.report import app_images, page, parts, vega
from shmem_mt.report.charts import (
    apps,
    by_threads,
    category,
    collectives,
    limits,
    ordering,
    patterns,
    policy,
    pt2pt,
    references,
    simulation,
    splits,
)
from shmem_mt.report.charts.model import Points
from shmem_mt.runner.results import load_machine, load_results
from shmem_mt.targets import fabrics


def report(options):
    """Writes the report. Returns 0; raises UserError for folders that cannot be read or written."""
    out = options.out or os.path.join(options.runs[0], "report.html")
    made = parts_of(options.runs)
    charts = [chart for part in made for chart in part.charts]
    if not charts:
        raise UserError("these runs have no point that any chart shows")
    folder = os.path.splitext(out)[0] + "-pictures"
    _refuse_others(out)
    html = page.build(made)
    try:
        os.makedirs(folder, exist_ok=True)
        for chart in charts:
            vega.write(chart, folder)
        for picture in (picture for part in made for picture in part.pictures):
            app_images.write(picture, folder)
        with open(out, "w", encoding="utf-8") as file:
            file.write(html)
    except OSError as error:
        raise UserError(f"cannot write {error.filename or out}: {error.strerror}") from error
    for part in made:
        labels, rows = page.headline(part.points)
        if len(made) > 1:
            print(f"{page.name_of(part)}:")
        for row in rows:
            for label, cell in zip(labels, row.cells):
                if cell:
                    print(f"{row.what}, {label}: {cell[0]} ({page.interval_words(cell)})")
    print(f"{out} ({len(charts)} charts; PNG and SVG in {folder})")
    for part in made:
        print_answers(part, len(made) > 1)
    return 0


def print_answers(part, is_named):
    """The four short answers; `is_named`: below the name of the part."""
    several = len(part.replies) > len(four_questions.QUESTIONS)
    told = [f"{page.name_of(part)}:"] * (is_named and bool(part.replies))
    for line in [*told, *(four_questions.line(reply, several) for reply in part.replies)]:
        print(line)


def parts_of(directories):
    """What a page has of these run folders, a part for each machine. Raises UserError where one cannot be read."""
    runs = [(directory, load_results(directory), load_machine(directory)) for directory in directories]
    return [_part(number, group) for number, group in enumerate(parts.by_machine(runs), 1)]


def _part(number, runs):
    """The part of the page of these runs, of one machine."""
    points = Points(_joined(runs))
    suffix = f"-machine-{number}" * (number > 1)
    charts = []
    for fabric in points.fabrics():
        charts += _charts(points, fabric)
        limits.add(charts, fabric, [contents for _, _, contents in runs])
    pictures = [picture for directory, _, _ in runs for picture in app_images.of(directory)]
    for one in (*charts, *pictures):
        one.slug += suffix
    return parts.Part(suffix, [(directory, contents) for directory, _, contents in runs], points, charts, pictures)


def _refuse_others(path):
    """Raises UserError where a file is there that no report has written."""
    if os.path.isfile(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            if page.TITLE not in file.read(4096):
                raise UserError(f"{path} is there and is no report of shmem-mt; use another --out")


def _charts(points, fabric):
    """Those of one fabric, which they name unless all points are on-node."""
    every = points.over(fabric)
    if fabric == fabrics.SIMULATED.name:
        return simulation.charts(every)
    own = every.libraries()
    of_pairs = pt2pt.charts(own)
    limits.add_bare_network(of_pairs, every.references())
    charts = splits.charts(own) + patterns.charts(own) + of_pairs + references.charts(every)
    charts += by_threads.charts(own) + category.charts(own)
    charts += policy.charts(own) + apps.charts(own)
    charts += ordering.charts(own)
    charts += collectives.charts(own.among(lambda name: name == collectives.BENCHMARK))
    for chart in charts if points.fabrics() != [fabrics.ON_NODE.name] else ():
        chart.slug += fabrics.suffix(fabric)
        chart.title += f", {fabric}"
    return charts


def _joined(runs):
    """All points; a label that occurs in several runs gets the name of its run. What was measured without coalescing,
    with partners on one host of several, or over links of a given rate or number, stands beside the rest as if it were
    another implementation; `library` is the name that all of them share."""
    seen: dict[str, set[str]] = {}
    for directory, points, _ in runs:
        for label in {p["label"] for p in points}:
            seen.setdefault(label, set()).add(directory)
    joined = []
    for directory, points, _ in runs:
        name = os.path.basename(os.path.abspath(directory))
        for point in points:
            library = point["label"] if len(seen[point["label"]]) == 1 else f"{point['label']} ({name})"
            label = library + ", coalescing off" * (point["params"].get("coalescing") == "off")
            partner = point["params"].get("partner", "far")
            label += f", partner {partner}" * (partner != "far")
            label += f", {point['params']['link_rate']}" if "link_rate" in point["params"] else ""
            label += f", {point['params']['rails']} rails" if point["params"].get("rails", 1) > 1 else ""
            joined.append({**point, "label": label, "library": library, "run": directory})
    return joined
