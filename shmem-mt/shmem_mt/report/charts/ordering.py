"""The charts of the study of order (studies/ordering.py). A colour is a rule, a baseline or a mechanism; each
implementation that has such points has its own dashes."""

from shmem_mt import units
from shmem_mt.catalogue.catalogue import MPI_RULES, PUT_RULES
from shmem_mt.report.charts.model import COLOURS, DASHES, REFERENCE_COLOUR, Panel, Series, make_chart
from shmem_mt.studies.ordering import BASELINES, MECHANISMS, Study, links, pes_and_threads, reach

_RULES = (*PUT_RULES, *MPI_RULES)
_COLOURS = dict(zip(_RULES, COLOURS))


def charts(points):
    """Those that these points can fill."""
    study = Study(points)
    makers = (_by_size, _by_outstanding, _ratios, _mechanisms, _rails)
    return [chart for chart in (maker(study) for maker in makers) if chart]


def _line(label, name, colour, labels_of):
    """A line in that colour; its dashes are those of the label, by the labels that `labels_of` knows of this name."""
    labels = labels_of.setdefault(name, [])
    if label not in labels:
        labels.append(label)
    return Series(f"{label}, {name}", colour, dash=labels.index(label) % DASHES)


def _with_curves(panels):
    """Without those of single points, where others have more: the tables have them."""
    return [panel for panel in panels if any(len(line.x) > 1 for line in panel.series)] or panels


def _by_size(study):
    labels_of: dict[str, list[str]] = {}
    panels: dict[str, list[Series]] = {}
    for (label, place, rule), sizes in study.peaks().items():
        line = _line(label, rule, _COLOURS[rule], labels_of)
        for size, found in sorted(sizes.items()):
            line.add(size, found.peak, f"{found.peak_at} outstanding")
        panels.setdefault(pes_and_threads(place), []).append(line)
    return make_chart(
        _with_curves([Panel(title, lines) for title, lines in panels.items()]),
        slug="order-rate-by-size",
        title="Order: messages a second by size",
        about="Each rule with the number of outstanding messages with which it is fastest. relaxed: puts without "
        "order; ordered: the same on a context that keeps program order, by one rail or by a buffer at the target; "
        "fence: one behind each put; quiet: one behind each put, which acknowledges every message.",
        value_title="messages/s",
        x_title="message size",
        x_is_size=True,
    )


def _by_outstanding(study):
    curves = study.curves()
    first = next((place._replace(rails=0, link_rate="") for _, place, _, _ in curves), None)
    labels_of: dict[str, list[str]] = {}
    panels: dict[int, list[Series]] = {}
    for (label, place, rule, size), curve in curves.items():
        if place._replace(rails=0, link_rate="") != first or len(curve) < 2:
            continue
        line = _line(label, rule, _COLOURS[rule], labels_of)
        for outstanding, point in sorted(curve.items()):
            line.add(outstanding, point)
        found = reach(curve)
        mark = Series("90 % of the rule's peak", REFERENCE_COLOUR, reference=True)
        mark.add(found.at, found.result, f"{label}, {rule}")
        panels.setdefault(size, []).extend((line, mark))
    return make_chart(
        [Panel(units.size(size), panels[size]) for size in sorted(panels)],
        slug="order-by-outstanding",
        title=f"Order: messages a second by messages outstanding, {pes_and_threads(first) if first else ''}",
        about="Outstanding messages of a thread are those that it does not know to be at the target. Grey: the least "
        "with which a rule reaches 90 % of its peak.",
        value_title="messages/s",
        x_title="messages outstanding",
        shared_values=False,
    )


def _ratios(study):
    panels: dict[str, list[Series]] = {}
    for (label, place, _other, baseline), sizes in study.ratios().items():
        line = Series(f"over {baseline}: {BASELINES[baseline]}", _COLOURS[baseline])
        for size, result in sizes.items():
            line.add(size, result)
        panels.setdefault(f"{label}, {pes_and_threads(place)}", []).append(line)
    return make_chart(
        _with_curves([Panel(title, lines) for title, lines in panels.items()]),
        slug="order-ratio",
        title="Order: how many times faster messages without order are",
        about="The rate of relaxed puts over that of each rule, both at their peaks; above 1 relaxed is faster. What "
        "keeps order in a pipeline is the fair baseline; one that acknowledges every message flatters.",
        value_title="×",
        x_title="message size",
        x_is_size=True,
    )


def _mechanisms(study):
    crossings: dict[tuple, set[tuple[int, str]]] = {}
    for library, place, _earlier, later, crossing in study.cut_overs():
        if crossing.at:
            crossings.setdefault((library, place), set()).add((crossing.at, later))
    panels = []
    for (library, place), mechanisms in study.mechanisms().items():
        lines = []
        for number, name in enumerate(MECHANISMS):
            line = Series(name, COLOURS[number])
            for size, point in sorted(mechanisms.get(name, {}).items()):
                cut = "stays ahead of another from here" if (size, name) in crossings.get((library, place), ()) else ""
                line.add(size, point, cut)
            lines.append(line)
        panels.append(Panel(f"{library}, {pes_and_threads(place)}{links(place)}", lines))
    return make_chart(
        panels if any(len([line for line in panel.series if line.x]) > 1 for panel in panels) else [],
        slug="order-mechanisms",
        title="Order: bandwidth of puts without order, by mechanism",
        about="Each with the number of outstanding messages with which it is fastest. store: stores into the target's "
        "memory; batch: copied, several messages leave together; eager: copied, each leaves alone; rendezvous: sent "
        "from where it lies. From 32 KiB on, batch and eager are messages in pieces of 16 KiB, which the library "
        "copies.",
        value_title="bytes/s",
        x_title="message size",
        x_is_size=True,
    )


def _rails(study):
    panels = []
    for (library, pes, threads, rule), measured in study.rails().items():
        lines = []
        for number, ((link_rate, rails), sizes) in enumerate(sorted(measured.items())):
            name = f"{rails} rail{'s' * (rails > 1)}" + f", {link_rate}" * bool(link_rate)
            line = Series(name, COLOURS[number % len(COLOURS)])
            for size, point in sorted(sizes.items()):
                line.add(size, point, f"{point['params']['outstanding']} outstanding")
            lines.append(line)
        threaded = f" x {threads} threads" * (threads > 1)
        panels.append(Panel(f"{library}, {rule}, {pes} PEs{threaded}", lines))
    return make_chart(
        _with_curves(panels),
        slug="order-rails",
        title="Order: bandwidth by the number of rails",
        about="Each rule at its peak. A rule that keeps order by using one rail gains nothing by a second.",
        value_title="bytes/s",
        x_title="message size",
        x_is_size=True,
    )
