"""Messages between two PEs beside other interfaces, in the same rounds: MPI under each synchronization, two-sided MPI,
and bare UCX."""

from typing import Any

from shmem_mt.report.charts import limits
from shmem_mt.report.charts.model import DASHES, Panel, Series, make_chart, plain_series

SYNCS = {
    "flush": "flush",
    "lock": "lock, unlock",
    "fence": "fence",
    "pscw": "post, start, complete, wait",
    "waitall": "two-sided",
}
_PUT: dict[str, Any] = dict(placement="heap", cache=("hot", None))
_READ_FIRST = ("read", "write-only", None)
# Title of a panel, operations of libraries with their further params, operations of MPI, what bare UCX does.
RATES = (
    ("put", dict(op="put_nbi", **_PUT), ("put_nbi", "send"), limits.PUTS),
    ("get", dict(op="get_nbi", **_PUT), ("get_nbi",), limits.GETS),
    ("atomic add", dict(op="atomic_add", **_PUT), ("atomic_add",), None),
    ("atomic fetch-add", dict(op="atomic_fetch_add_nbi", **_PUT), ("atomic_fetch_add_nbi",), None),
)
LATENCIES = (
    (
        "there and back",
        dict(op=("put_round_trip", "put_signal_round_trip"), touch=("read", None), cache=("hot", None)),
        ("put_round_trip", "send_round_trip"),
        limits.TRIPS,
    ),
    ("put and its completion", dict(op=("p_quiet", "put_quiet")), ("p_quiet", "put_quiet"), limits.PUT_AND_FLUSH),
    ("get", dict(op="get", owner=("warm", None), **_PUT), ("get",), limits.GET),
    ("atomic add and its completion", dict(op="atomic_add_quiet", owner=("warm", None)), ("atomic_add_quiet",), None),
    ("atomic fetch-add", dict(op="atomic_fetch_add", owner=("warm", None)), ("atomic_fetch_add",), None),
)
BANDWIDTHS = (
    ("put", dict(op="put", touch=_READ_FIRST, **_PUT), ("put", "send"), limits.PUT_BYTES),
    ("get", dict(op="get", **_PUT), ("get",), limits.GET_BYTES),
)
_MPI = "An epoch of MPI has as many messages as the window has places; a window, and its fence, is of one pair."


def charts(points):
    """Those that these points of one fabric can fill; none without references."""
    if not points.references().points:
        return []
    rates, times = dict(benchmark="message-rate", metric="rate"), dict(benchmark="latency", metric="latency")
    bytes_ = dict(benchmark="bandwidth", metric="bandwidth")
    made = (
        make_chart(
            _dots(points, RATES, rates),
            slug="beside-rate",
            title="8-byte messages a second beside MPI and bare UCX",
            kind="dots",
            about=f"One thread. {_MPI} Bare UCX: what the network's own interface reaches in the hands of this "
            "program, each message at a random place; packed, a message has an offset and goes with others in one of "
            "some KiB.",
            value_title="messages/s",
        ),
        make_chart(
            _lines(points, RATES[:2], rates),
            slug="beside-rate-by-size",
            title="Message rate by size beside MPI and bare UCX",
            x_title="message size",
            x_is_size=True,
            about=f"One thread. {_MPI} Of bare UCX the fastest way of each size.",
            value_title="messages/s",
        ),
        make_chart(
            _by_threads(points),
            slug="beside-rate-by-threads",
            title="8-byte message rate by threads beside MPI and bare UCX",
            x_title="threads per PE",
            about="All threads together: several have a context, a window and communicator, or a worker each.",
            value_title="messages/s",
        ),
        make_chart(
            _dots(points, LATENCIES, times),
            slug="beside-latency",
            title="Latency of 8 bytes beside MPI and bare UCX",
            kind="dots",
            about="One thread, each operation an epoch of its own. There and back with MPI: a fence, or an epoch, or a "
            "message each way; with bare UCX an active message that carries the data.",
            value_title="s",
            lower_is_better=True,
        ),
        make_chart(
            _lines(points, LATENCIES[:3], times),
            slug="beside-latency-by-size",
            title="Latency by size beside MPI and bare UCX",
            x_title="message size",
            x_is_size=True,
            about="One thread, each operation an epoch of its own.",
            value_title="s",
            lower_is_better=True,
        ),
        make_chart(
            _lines(points, BANDWIDTHS, bytes_),
            slug="beside-bandwidth",
            title="Bandwidth by size beside MPI and bare UCX",
            x_title="message size",
            x_is_size=True,
            about="One thread. Where the target of a library's puts reads them, that is what stands here; nobody reads "
            "what MPI and bare UCX send. Of bare UCX the fastest way of each size.",
            value_title="bytes/s",
        ),
    )
    return [chart for chart in made if chart]


def way(point):
    """How a message of that point goes and is completed."""
    params = point["params"]
    if params.get("api") == "MPI":
        return f"MPI, {SYNCS.get(params['sync'], params['sync'])}"
    if params.get("api") == "UCX":
        return f"UCX, {limits.how(point)}"
    flag = " (message is flag)" if params["sync"] == "last_word" else ""
    return f"OpenSHMEM, {params['op']}{flag}"


def _found(points, panel, common, **more):
    """(libraries' points, MPI's, UCX's) of a panel at the fewest PEs."""
    _, own, ops, bare = panel
    pes = min((p["params"]["pes"] for p in points.find(**common)), default=0)
    libraries, references = points.libraries(), points.references()
    default = {"threads": 1, "context": "default", **more}
    found = libraries.find(pes=pes, **common, **default, **own)
    read = {(p["label"], p["params"]["size_bytes"]) for p in found if p["params"].get("touch") == "read"}
    unread = [p for p in found if (p["label"], p["params"]["size_bytes"]) not in read]
    found = [p for p in found if p["params"].get("touch") == "read"] + unread
    mpi = references.find(pes=pes, api="MPI", op=ops, threads=default["threads"], **common)
    ucx = references.find(pes=pes, api="UCX", threads=default["threads"], **bare) if bare else []
    return found, mpi, ucx


def _dots(points, panels, common):
    made = []
    for panel in panels:
        found, mpi, ucx = _found(points, panel, common)
        small = [p for p in (*found, *mpi, *ucx) if p["params"]["size_bytes"] == 8] if mpi or ucx else []
        series = {label: plain_series(points, label) for label in points.labels}
        for point in small:
            if way(point) not in series[point["label"]].x:
                series[point["label"]].add(way(point), point)
        made.append(Panel(panel[0], list(series.values())))
    return made


def _lines(points, panels, common):
    made = []
    for panel in panels:
        found, mpi, ucx = _found(points, panel, common)
        lines: dict[str, Series] = {}
        for point in sorted((*found, *mpi), key=lambda p: p["params"]["size_bytes"]) if mpi or ucx else ():
            name = f"{point['label']}, {way(point).split(', ', 1)[1]}"
            dash = sum(line.colour == points.colours[point["label"]] for line in lines.values()) % DASHES
            line = lines.setdefault(name, plain_series(points, point["label"], name, dash=dash))
            if point["params"]["size_bytes"] not in line.x:
                line.add(point["params"]["size_bytes"], point)
        drawn = limits.lines(points.references(), panel[3] or limits.NOTHING)
        made.append(Panel(panel[0], [*lines.values(), *drawn]))
    return made


def _by_threads(points):
    common = dict(benchmark="message-rate", metric="rate", size_bytes=8)
    threads = sorted({p["params"]["threads"] for p in points.references().find(**common)})
    panels = []
    for panel in RATES if len(threads) > 1 else ():
        lines: dict[str, Series] = {}
        for count in threads:
            found, mpi, ucx = _found(points, panel, common, threads=count, context=_context(count))
            bare = limits.networks(points.having(ucx))
            fastest = {name: limits.best(limits.far(of.points)) for name, of in bare.items()}
            for bare_name, point in [(None, p) for p in (*found, *mpi)] + [(n, p) for n, p in fastest.items() if p]:
                name = bare_name or f"{point['label']}, {way(point).split(', ', 1)[1]}"
                look = dict(dash=sum(line.colour == points.colours[point["label"]] for line in lines.values()) % DASHES)
                line = lines.setdefault(name, plain_series(points, point["label"], name, **look))
                line.add(count, point, way(point))
        panels.append(Panel(panel[0], list(lines.values())))
    return panels


def _context(threads):
    return "default" if threads == 1 else "private"
