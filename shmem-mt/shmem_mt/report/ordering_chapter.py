"""The chapter "Order" of a report: what is seen, in sentences made of the numbers, and the tables behind the charts."""

from shmem_mt import units
from shmem_mt.report.templating import render
from shmem_mt.runner.points import how_sure
from shmem_mt.studies.ordering import BASELINES, FREE, Study, links, pes_and_threads, verdict
from shmem_mt.targets import fabrics

_ABOUT = (
    "One-sided messages of the lower half of the PEs to the upper half, each thread its own stream. A ratio is the "
    "rate of relaxed puts over that of a rule, each with the number of outstanding messages with which it is fastest, "
    "and its 95 % interval or, of fewer than 6 starts, their range. Half of the starts choose that number, the "
    "others count. Acknowledging every message (quiet) is the usual strict baseline and flatters the "
    "ratio; the fair one keeps order in a pipeline (ordered)."
)


def slug(fabric):
    return "order" + fabrics.suffix(fabric)


def section(points, fabric, named=str):
    """The chapter of one fabric; empty without points. `named` makes the name of a section its own."""
    study = Study(points)
    if not study.points:
        return ""
    tables = [_ratio_table(study), _reach_table(study), _cores_table(study), _cut_over_table(study)]
    return render(
        "ordering.html",
        slug=named(slug(fabric)),
        fabric=fabric,
        about=_ABOUT,
        seen=seen(study),
        tables=[table for table in tables if table["rows"]],
    )


def seen(study):
    """What is to be seen, a paragraph for each implementation and place: the smallest and the largest size."""
    peaks, ratios = study.peaks(), study.ratios()
    paragraphs = []
    for (label, place, rule), sizes in peaks.items():
        if rule != FREE:
            continue
        words = []
        for size in dict.fromkeys((min(sizes), max(sizes))):
            found = sizes[size]
            rate = units.quantity(found.peak["median"], found.peak["unit"])
            words.append(f"{units.size(size)}: relaxed reaches {rate} with {found.peak_at} outstanding.")
            for baseline in ("quiet", "ordered"):
                result = ratios.get((label, place, label, baseline), {}).get(size)
                if result:
                    words.append(f"Over {baseline}, {BASELINES[baseline]}, that is {times(result)}: {verdict(result)}.")
            words.append(_reach_words(found) + _others(peaks, label, place, size))
        paragraphs.append(f"{label}, {pes_and_threads(place)}. " + " ".join(words))
    return paragraphs + [_cut_over_words(*crossing) for crossing in study.cut_overs()]


def times(result):
    """Such as ``4.1 × (3.9 to 4.3, 95 %, 8 starts)``, of fewer than 6 ``(3.9 to 4.3, range of 3 starts)``."""
    low, high = result["interval"]
    reaches = f"{_figure(low)} to {_figure(high)}, " * (result["starts"] > 1)
    return f"{_figure(result['median'])} × ({reaches}{how_sure(result)})"


def _figure(value):
    return units.significant(value, 3 if value >= 1 else 2)


def _reach_words(found):
    words = f"90 % of it takes {found.at} outstanding"
    return words + (", the most that were tried" if found.rising else "")


def _others(peaks, label, place, size):
    """How much the other rules of the same place need."""
    told = [
        f"{rule} {sizes[size].at}"
        for (other, there, rule), sizes in peaks.items()
        if other == label and there == place and rule not in (FREE, "quiet") and size in sizes
    ]
    return f" (of its own peak: {', '.join(told)})." if told else "."


def _cut_over_words(library, place, earlier, later, crossing):
    where = f"{library}, {pes_and_threads(place)}{links(place)}: "
    if crossing.at is None:
        return f"{where}{later} does not stay ahead of {earlier} up to {units.size(crossing.sizes[-1])}."
    if crossing.at == crossing.sizes[0]:
        return f"{where}{later} is ahead of {earlier} from {units.size(crossing.at)} on, the smallest size with both."
    return f"{where}{later} stays ahead of {earlier} from {units.size(crossing.at)} on."


def _table(title, columns, rows):
    return {"title": title, "columns": list(columns), "rows": rows}


def _ratio_table(study):
    ratios, rows = study.ratios(), []
    present = [rule for rule in BASELINES if any(key[3] == rule for key in ratios)]
    for (label, place, rule), sizes in study.peaks().items():
        if rule != FREE:
            continue
        for size in sorted(sizes):
            peak = sizes[size].peak
            cells = [units.quantity(peak["median"], peak["unit"])]
            for baseline in present:
                own = [r for key, r in ratios.items() if key[:2] == (label, place) and key[3] == baseline]
                cells.append("; ".join(times(found[size]) for found in own if size in found))
            rows.append((f"{label}, {pes_and_threads(place)}, {units.size(size)}", cells))
    columns = ["relaxed", *(f"over {rule}: {BASELINES[rule]}" for rule in present)]
    return _table("How many times faster without order", columns, rows)


def _reach_table(study):
    peaks, rows = study.peaks(), []
    columns = sorted({size for sizes in peaks.values() for size in sizes})
    for (label, place, rule), sizes in peaks.items():
        rows.append((f"{label}, {rule}, {pes_and_threads(place)}", [_reach_cell(sizes.get(size)) for size in columns]))
    return _table("Messages of a thread that must be outstanding for 90 % of the peak", map(units.size, columns), rows)


def _reach_cell(found):
    if found is None:
        return ""
    rate = units.quantity(found.peak["median"], found.peak["unit"])
    return f"{found.at}{' or more' * found.rising} of {rate}"


def _cores_table(study):
    cores, rows = study.cores(), []
    columns = sorted({size for _, _, size in cores})
    for label, rule in dict.fromkeys((label, rule) for label, rule, _ in cores):
        rows.append((f"{label}, {rule}", [_reach_cell(cores.get((label, rule, size))) for size in columns]))
    return _table("Threads that must send for 90 % of the peak", map(units.size, columns), rows)


def _cut_over_table(study):
    rows = []
    for library, place, earlier, later, crossing in study.cut_overs():
        cells = [
            units.size(size) if size else text
            for size, text in ((crossing.at, "at no size"), (crossing.low, "at no size"), (crossing.high, "at no size"))
        ]
        tried = ", ".join(map(units.size, crossing.sizes))
        rows.append((f"{library}, {pes_and_threads(place)}{links(place)}, {earlier} and {later}", [*cells, tried]))
    columns = ["the second stays ahead from", "the first clearly ahead up to", "the second clearly ahead from", "sizes"]
    return _table("Which mechanism carries a message best", columns, rows)
