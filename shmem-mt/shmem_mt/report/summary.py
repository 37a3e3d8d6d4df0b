"""The first table of a report: the figures that people ask for, side by side, with ratios and their intervals."""

from dataclasses import dataclass

from shmem_mt import units
from shmem_mt.report.charts import limits
from shmem_mt.report.charts.model import Points
from shmem_mt.runner.points import tail
from shmem_mt.runner.results import ratio_of_results, starts_of_ratio
from shmem_mt.studies.judging import side
from shmem_mt.targets import fabrics


@dataclass
class Ratio:
    """How many times better the first implementation is than another."""

    text: str
    interval: str
    says: str  # better, worse or same (studies/judging.py); same where there are too few starts to tell


@dataclass
class Row:
    what: str
    cells: list  # one a label: (text, what is below it in smaller lines, result) or None
    ratios: list  # one a label after the first: a Ratio or None
    oversubscribed: bool = False


_REDUCED = dict(op="sum_reduce", policy="auto", size_bytes=1 << 20)
_OVERLAP = (
    ("1 MiB sum_reduce, hidden behind a computation", "overlap", "overlap", _REDUCED),
    ("that computation, slowed down", "overlap", "slowdown", _REDUCED),
)
_STARTUP = (
    ("shmem_init", "startup", "time", dict(op="init")),
    ("private memory of a PE after init", "startup", "memory", dict(op="after_init", pe="median")),
)

_DEFAULT = dict(setting="default", threads=1)
_WAITED = dict(wait_s=1, **_DEFAULT)
_WAIT = (
    ("CPU burned by 1 s in wait_until", "wait", "cpu_share", dict(op="wait_until", **_WAITED)),
    ("wake-up after 1 s in wait_until", "wait", "wake_latency", dict(op="wait_until", **_WAITED)),
    ("CPU burned by 1 s in a barrier", "wait", "cpu_share", dict(op="barrier_all", **_WAITED)),
    ("wake-up after 1 s in a barrier", "wait", "wake_latency", dict(op="barrier_all", **_WAITED)),
    ("barrier of 16 PEs, in 16 context switches", "wait", "switches", dict(op="barrier_cost", pes=16, **_DEFAULT)),
)
# Where collectives were measured their barriers count, else those of latency: the first row that can be filled.
_BARRIERS = tuple(
    (f"barrier, {pes} PEs", benchmark, "latency", dict(op="barrier_all", pes=pes, scheme=("back-to-back", None)))
    for pes in (2, 8)
    for benchmark in ("collectives", "latency")
)
_CG = tuple(
    (f"CG, class {name}, {text}", "cg", "rate", {"op": op, "class": name})
    for name in ("S", "A")
    for text, op in (("blocking collectives", "blocking"), ("non-blocking ones", "auto"))
)

# (text, benchmark, metric, params); where they name no PEs or threads, the fewest that were measured count.
# What a program feels comes first: what is read, and lines that another core had. Points of older folders name neither
# touch nor owner: nobody read, and the line was the caller's.
_BLIND = ("write-only", None)
_ONE = dict(context="default", threads=1)
_PLACED = dict(placement="heap", **_ONE)
_HANDED = dict(owner="handed-over", **_PLACED)
HEADLINES = (
    ("8-byte p, read by the target", "message-rate", "consumed_rate", dict(batch=1, **_ONE)),
    ("8-byte p, read, a flag per 512", "message-rate", "consumed_rate", dict(batch=512, **_ONE)),
    ("8-byte put round trip", "latency", "latency", dict(op="put_round_trip", sync="last_word", **_ONE)),
    (
        "1 KiB put round trip, read",
        "latency",
        "latency",
        dict(op="put_round_trip", sync="fence_flag", touch="read", cache="hot", size_bytes=1024, **_ONE),
    ),
    (
        "256 KiB put round trip, read",
        "latency",
        "latency",
        dict(op="put_round_trip", sync="fence_flag", touch="read", cache="hot", size_bytes=1 << 18, **_ONE),
    ),
    ("8-byte get, handed over", "latency", "latency", dict(op="get", size_bytes=8, **_HANDED)),
    ("atomic fetch-add, handed over", "latency", "latency", dict(op="atomic_fetch_add", **_HANDED)),
    (
        "atomic fetch-add, contended",
        "latency",
        "latency",
        dict(op="atomic_fetch_add", owner="contended", **_PLACED),
    ),
    (
        "1 MiB put, read",
        "bandwidth",
        "bandwidth",
        dict(op="put", touch="read", cache="hot", size_bytes=1 << 20, **_PLACED),
    ),
    (
        "1 MiB put, read, cold",
        "bandwidth",
        "bandwidth",
        dict(op="put", touch="read", cache="cold", size_bytes=1 << 20, **_PLACED),
    ),
    *_BARRIERS,
    ("8-byte p, nobody reads", "message-rate", "rate", dict(op="p", placement="heap", context="default", threads=1)),
    (
        "8-byte p, static data",
        "message-rate",
        "rate",
        dict(op="p", placement="static", context="default", threads=1),
    ),
    (
        "8-byte p, 2 threads, one context",
        "message-rate",
        "rate",
        dict(op="p", placement="heap", context="default", threads=2),
    ),
    (
        "8-byte p, 2 threads, private contexts",
        "message-rate",
        "rate",
        dict(op="p", placement="heap", context="private", threads=2),
    ),
    (
        "8-byte put",
        "message-rate",
        "rate",
        dict(op="put", placement="heap", context="default", threads=1, size_bytes=8),
    ),
    ("8-byte g", "message-rate", "rate", dict(op="g", placement="heap", context="default", threads=1)),
    (
        "atomic add",
        "message-rate",
        "rate",
        dict(op="atomic_add", placement="heap", context="default", threads=1),
    ),
    (
        "atomic fetch-add",
        "message-rate",
        "rate",
        dict(op="atomic_fetch_add", placement="heap", context="default", threads=1),
    ),
    (
        "8-byte get, nobody else has the line",
        "latency",
        "latency",
        dict(op="get", owner=("warm", None), size_bytes=8, **_PLACED),
    ),
    (
        "1 MiB put, nobody reads",
        "bandwidth",
        "bandwidth",
        dict(op="put", touch=_BLIND, cache=("hot", None), size_bytes=1 << 20, **_PLACED),
    ),
    *_OVERLAP,
    *_WAIT,
    *_STARTUP,
    *_CG,
)

_HEAP = dict(placement="heap", context="default", threads=1)
_SMALL = dict(size_bytes=8, **_HEAP)
NETWORK_HEADLINES = (
    ("8-byte put_nbi", "message-rate", "rate", dict(op="put_nbi", **_SMALL)),
    (
        "8-byte put_nbi, 2 threads, private contexts",
        "message-rate",
        "rate",
        dict(op="put_nbi", placement="heap", context="private", threads=2, size_bytes=8),
    ),
    ("8-byte puts, one request", "requests", "rate", dict(op="put", sync="request_merged", **_SMALL)),
    ("8-byte puts, a quiet each", "requests", "rate", dict(op="put", sync="quiet_each", **_SMALL)),
    ("8-byte get_nbi", "message-rate", "rate", dict(op="get_nbi", **_SMALL)),
    ("8-byte gets, one request", "requests", "rate", dict(op="get", sync="request_merged", **_SMALL)),
    ("8-byte p", "message-rate", "rate", dict(op="p", **_HEAP)),
    ("8-byte p, read by the target", "message-rate", "consumed_rate", dict(context="default", threads=1, batch=1)),
    ("atomic add", "message-rate", "rate", dict(op="atomic_add", **_HEAP)),
    ("atomic fetch-add, waited for", "requests", "rate", dict(op="fetch_add", sync="blocking", **_HEAP)),
    ("atomic fetch-adds, one request", "requests", "rate", dict(op="fetch_add", sync="request_merged", **_HEAP)),
    (
        "8-byte put round trip",
        "latency",
        "latency",
        dict(op="put_round_trip", sync="last_word", context="default", threads=1),
    ),
    ("8-byte p + quiet", "latency", "latency", dict(op="p_quiet", **_SMALL)),
    ("8-byte get, waited for", "latency", "latency", dict(op="get", owner=("warm", None), **_SMALL)),
    *_BARRIERS[:2],
    ("1 MiB put, read", "bandwidth", "bandwidth", dict(op="put", touch="read", size_bytes=1 << 20, **_HEAP)),
    ("1 MiB get", "bandwidth", "bandwidth", dict(op="get", size_bytes=1 << 20, **_HEAP)),
    (
        "halo, faces of 8 KiB",
        "halo",
        "time",
        dict(op="exchange", sync="quiet_barrier", size_bytes=8192, context="default", threads=1),
    ),
    (
        "uneven blocks of 64 KiB",
        "alltoallv",
        "bandwidth",
        dict(op="put", size_bytes=65536, context="default", threads=1),
    ),
    *_WAIT,
    *_OVERLAP,
    *_STARTUP,
    *_CG,
)

# (text, headline whose point is divided, op of the reference).
SHARES = (
    ("8-byte p, share of a plain store", "8-byte p, nobody reads", "plain_store"),
    ("1 MiB put, share of memcpy", "1 MiB put, nobody reads", "memcpy"),
)

# (text, headline whose point is divided, what bare UCX does in its place, its mechanisms; None: the best).
BARE_SHARES = (
    ("8-byte put_nbi, share of bare UCX, packed", "8-byte put_nbi", limits.PUTS, ("packed",)),
    ("8-byte put_nbi, share of bare UCX, one by one", "8-byte put_nbi", limits.PUTS, ("put", "message")),
    ("8-byte get_nbi, share of bare UCX", "8-byte get_nbi", limits.GETS, None),
    ("8-byte put round trip, share of bare UCX", "8-byte put round trip", limits.TRIPS, None),
    ("8-byte p + quiet, share of bare UCX", "8-byte p + quiet", limits.PUT_AND_FLUSH, None),
    ("8-byte get, share of bare UCX", "8-byte get, waited for", limits.GET, None),
    ("1 MiB put, read, share of bare UCX", "1 MiB put, read", limits.PUT_BYTES, None),
    ("1 MiB get, share of bare UCX", "1 MiB get", limits.GET_BYTES, None),
)
# (text, headline, operations of MPI, of whose synchronizations the best counts).
OVER_MPI = (
    ("8-byte put_nbi, over MPI_Put", "8-byte put_nbi", "put_nbi"),
    ("8-byte put_nbi, over MPI_Isend", "8-byte put_nbi", "send"),
    ("8-byte get_nbi, over MPI_Get", "8-byte get_nbi", "get_nbi"),
    ("atomic add, over MPI_Accumulate", "atomic add", "atomic_add"),
    ("8-byte put round trip, over two-sided MPI", "8-byte put round trip", "send_round_trip"),
    ("8-byte p + quiet, over MPI_Put", "8-byte p + quiet", "p_quiet"),
    ("1 MiB put, read, over MPI_Put", "1 MiB put, read", "put"),
)


def headline_rows(points):
    """The rows that these points, of one fabric, can fill; of those of one name the first."""
    rows: dict[str, Row] = {}
    for headline in HEADLINES if points.fabrics() == [fabrics.ON_NODE.name] else NETWORK_HEADLINES:
        row = None if headline[0] in rows else _row(points, headline)
        if row:
            rows[row.what] = row
    return list(rows.values())


def share_rows(points):
    """How near each implementation comes to plain memory operations, interleaved in the same program; on-node."""
    rows, named = [], {headline[0]: headline for headline in HEADLINES}
    for text, what, reference in SHARES if points.fabrics() == [fabrics.ON_NODE.name] else ():
        cells = [_share_cell(points, named[what], reference, label) for label in points.labels]
        if any(cells):
            rows.append(Row(text, cells, [None] * (len(points.labels) - 1)))
    return rows


def reference_rows(points, references):
    """How near each implementation comes to bare UCX, and how far it is from MPI, over a network."""
    named = {headline[0]: headline for headline in NETWORK_HEADLINES}
    wanted = []
    for text, what, params, mechanisms in BARE_SHARES:
        more = {"mechanism": mechanisms} if mechanisms else {}
        wanted.append((text, named[what], dict(api="UCX", **params, **more), "%"))
    for text, what, op in OVER_MPI:
        _, benchmark, metric, _ = named[what]
        wanted.append((text, named[what], dict(api="MPI", benchmark=benchmark, metric=metric, op=op), "x"))
    rows = []
    for text, headline, params, unit in wanted if references.points else ():
        cells = [_over_reference(points, references, headline, params, unit, label) for label in points.labels]
        rows += [Row(text, cells, [None] * (len(cells) - 1))] if any(cells) else []
    return rows


def _over_reference(points, references, headline, params, unit, label):
    """The cell that says how many times better the point of the headline is than the best of these references."""
    point = _point(points, headline, label)
    if point is None:
        return None
    same = {name: point["params"].get(name) for name in ("pes", "threads", "size_bytes", "link_rate", "partner")}
    other = limits.best(references.find(**params, **same))
    return _divided(point, other, unit, units.sense(point["metric"]) < 0) if other else None


def _point(points, headline, label):
    _, benchmark, metric, params = headline
    found = points.find(benchmark, metric, label, **params)
    return min(found, key=lambda p: (p["params"].get("pes", 0), p["params"].get("threads", 1))) if found else None


def _row(points: Points, headline):
    found = [_point(points, headline, label) for label in points.labels]
    if not any(found):
        return None
    cells = [(units.quantity(p["median"], p["unit"]), _below(p), p) if p else None for p in found]
    ratios = [ratio_of(found[0], other) for other in found[1:]]
    return Row(headline[0], cells, ratios, any(p and p["params"].get("oversubscribed") for p in found))


def _below(point):
    return "\n".join(filter(None, (interval_text(point), tail(point))))


def interval_text(point):
    low, high = point["interval"]
    return f"{units.quantity(low, point['unit'])} to {units.quantity(high, point['unit'])}"


def ratio_of(first, other):
    """How many times better the first is; None where one is missing, invalid or not positive."""
    if not first or not other or first["valid"] is False or other["valid"] is False:
        return None
    if min(first["samples"]) <= 0 or min(other["samples"]) <= 0:
        return None
    above, below = (other, first) if first["metric"] in units.LOWER_IS_BETTER else (first, other)
    paired = first.get("run") == other.get("run")
    ratio, low, high = ratio_of_results(above, below, paired)
    found = side(low, high, starts_of_ratio(above, below, paired))
    text = f"{_times(low)} to {_times(high)}" + " (range)" * (found == "unknown")
    return Ratio(f"{_times(ratio)}×", text, {"above": "better", "below": "worse"}.get(found, "same"))


def _times(ratio):
    return units.significant(ratio, 3 if ratio >= 1 else 2)


def _share_cell(points, headline, reference, label):
    point = _point(points, headline, label)
    if point is None:
        return None
    names = {k: point["params"].get(k) for k in ("pes", "threads", "size_bytes", "placement")}
    found = points.find(headline[1], headline[2], label, op=reference, **names)
    if not found:
        return None
    return _divided(point, found[0], "%")


def _divided(point, other, unit, upside_down=False):
    """The cell of a point over another of the same rounds, as % or x; upside down, of the other over the point."""
    above, below = (other, point) if upside_down else (point, other)
    scale = 100 if unit == "%" else 1
    ratio, low, high = (scale * value for value in ratio_of_results(above, below, point.get("run") == other.get("run")))
    share = {**point, "unit": unit, "modes": [], "median": ratio, "interval": [low, high]}
    return units.quantity(ratio, unit), interval_text(share), share
