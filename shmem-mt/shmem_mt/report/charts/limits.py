"""The limits of the machine that a run has measured beside its points, as lines in the charts of what they bound: the
hand-over of a line on-node, bare UCX over a network."""

from typing import Any

from shmem_mt import units
from shmem_mt.report.charts.model import DASHES, REFERENCE_COLOUR, Limit, Series
from shmem_mt.statistics import median_interval
from shmem_mt.targets import fabrics

# By slug: what a word from another core needs at least is that its line is handed over once.
_BOUNDED_BY_HAND_OVER = ("latency-8-bytes", "latency-by-size", "idle-waiters", "barrier", "collectives-barriers")


def add(charts, fabric, machines):
    """To the charts of a fabric. `machines` are the contents of machine.json of the runs, of one machine."""
    found = [seconds for contents in machines for seconds in contents.get("machine", {}).get("hand_over_s") or ()]
    if fabric != fabrics.ON_NODE.name or not found:
        return
    median, low, high = median_interval([[seconds] for seconds in found])
    handed = {"median": median, "interval": [low, high], "starts": len(found), "unit": "s"}
    for chart in charts:
        if chart.slug.removesuffix(fabrics.suffix(fabric)) in _BOUNDED_BY_HAND_OVER:
            chart.limits.append(Limit("limit of what is handed over: a line, core to core", handed))


# What bare UCX does in place of an operation: of its ways the best counts.
PUTS: dict[str, Any] = dict(benchmark="message-rate", metric="rate", op="put_nbi")
GETS: dict[str, Any] = dict(benchmark="message-rate", metric="rate", op="get_nbi")
TRIPS: dict[str, Any] = dict(benchmark="latency", metric="latency", op="put_round_trip")
PUT_AND_FLUSH: dict[str, Any] = dict(benchmark="latency", metric="latency", op=("p_quiet", "put_quiet"))
GET: dict[str, Any] = dict(benchmark="latency", metric="latency", op="get")
PUT_BYTES: dict[str, Any] = dict(benchmark="bandwidth", metric="bandwidth", op="put")
GET_BYTES: dict[str, Any] = dict(benchmark="bandwidth", metric="bandwidth", op="get")

# Slug of a chart -> panel -> what bounds it; of charts of dots by category, at 8 bytes.
_BY_SIZE = {
    "rate-by-size": {"put": PUTS, "put_nbi": PUTS, "get_nbi": GETS},
    "latency-by-size": {
        "put round trip (fence, flag), read": TRIPS,
        "put_signal round trip, read": TRIPS,
        "put + quiet": PUT_AND_FLUSH,
        "get, warm": GET,
    },
    "bandwidth-by-size": {"put, read by the target": PUT_BYTES, "put, nobody reads": PUT_BYTES, "get": GET_BYTES},
}
_BY_CATEGORY = {
    "rate-by-operation": {"p": PUTS, "put": PUTS, "put_nbi": PUTS, "get_nbi": GETS},
    "latency-8-bytes": {
        "put round trip (message is flag)": TRIPS,
        "p + quiet": PUT_AND_FLUSH,
        "put + quiet": PUT_AND_FLUSH,
        "get, warm": GET,
    },
}


def best(found):
    """Of these points, of one metric, the best that is not invalid; None where there is none."""
    found = [point for point in found if point["valid"] is not False]
    return max(found, key=lambda point: units.sense(point["metric"]) * point["median"], default=None)


def far(found):
    """Those of these points whose partners are on other hosts; all of them where none are."""
    return [point for point in found if point["params"].get("partner", "far") == "far"] or found


def bare_network(references, threads=1, **params):
    """{size: the best point of bare UCX}, at the fewest PEs, with partners on other hosts where there are such."""
    found = far(references.find(api="UCX", threads=threads, **params))
    pes = min((point["params"]["pes"] for point in found), default=0)
    sizes: dict[int, list] = {}
    for point in found:
        if point["params"]["pes"] == pes:
            sizes.setdefault(point["params"]["size_bytes"], []).append(point)
    chosen = {size: best(points) for size, points in sorted(sizes.items())}
    return {size: point for size, point in chosen.items() if point}


def networks(references):
    """{name of its line: these points of one network}: links of another rate or number are another network."""
    found: dict[str, list] = {}
    for point in references.points:
        found.setdefault(_links(point["params"]), []).append(point)
    # Those without a name of their own first; one network needs none.
    return {
        "bare network" + links * (len(found) > 1): references.having(points)
        for links, points in sorted(found.items(), key=lambda of: of[0])
    }


def _links(params):
    rate, rails = params.get("link_rate"), params.get("rails", 1)
    return f", {rate}" * bool(rate) + f", {rails} rails" * (rails > 1)


def how(point):
    """Such as ``packed into 16 KiB`` of a point of bare UCX."""
    mechanism, pack_bytes = point["params"].get("mechanism"), point["params"].get("pack_bytes")
    told = {"put": "put by put", "get": "get by get", "message": "an active message each"}
    return f"packed into {units.size(pack_bytes)}" if pack_bytes else told.get(mechanism, mechanism)


def add_bare_network(charts, references):
    """To charts of one fabric, before their slugs name it."""
    for chart in charts:
        for panel in chart.panels:
            shown = {x for series in panel.series for x in series.x}
            drawn = lines(references, _BY_SIZE.get(chart.slug, {}).get(panel.title, NOTHING))
            for line, found in zip(drawn, networks(references).values()):
                for category, params in _BY_CATEGORY.get(chart.slug, {}).items():
                    point = bare_network(found, **params).get(8) if category in shown else None
                    if point:
                        line.add(category, point, f"{point['label']}, {how(point)}")
            panel.series += [line for line in drawn if line.x]


def lines(references, params):
    """A line by size for each network, of what bare UCX does in place of an operation."""
    drawn = []
    for number, (name, found) in enumerate(networks(references).items()):
        drawn.append(Series(name, REFERENCE_COLOUR, reference=True, dash=1 + number % (DASHES - 1)))
        for size, point in bare_network(found, **params).items():
            drawn[-1].add(size, point, f"{point['label']}, {how(point)}")
    return drawn


NOTHING: dict[str, Any] = dict(benchmark="none")
