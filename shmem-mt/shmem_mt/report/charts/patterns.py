"""What the whole job gets of the same cores (the benchmark patterns): by division into PEs and threads, by
synchronization, and pure processes beside one context and many contexts."""

from shmem_mt import units
from shmem_mt.report.charts.model import DASHES, REFERENCE_COLOUR, Panel, Series, make_chart, plain_series
from shmem_mt.runner.points import pes_and_threads

BENCHMARK = "patterns"
_PLAIN = {"latency": "fence_flag", "collective": "blocking"}  # of all others quiet
_CONTEXTS = ("default", "shared", "serialized", "private")


def charts(points):
    """Those that these points can fill."""
    own = points.among(lambda benchmark: benchmark == BENCHMARK)
    return [chart for chart in (_heat(own), _contexts(own, *_MORE), _contexts(own, *_LESS), *_syncs(own)) if chart]


def _cases(points, metric=None):
    """(pattern, bytes) of the panels: the smallest and the largest size of each pattern."""
    sizes: dict[str, set[int]] = {}
    for point in points.find(BENCHMARK, metric):
        sizes.setdefault(point["params"]["op"], set()).add(point["params"]["size_bytes"])
    return [(op, size) for op, found in sizes.items() for size in sorted({min(found), max(found)})]


def _plainly(points, label, op, size, context=None):
    """Those of the pattern's plain synchronization, under SHMEM_THREAD_MULTIPLE."""
    sync = _PLAIN.get(op, "quiet")
    how = dict(op=op, size_bytes=size, sync=sync, level="multiple")
    return points.find(BENCHMARK, None, label, **how, **({"context": context} if context else {}))


def _place(point):
    return point["params"]["pes"], point["params"]["threads"]


def _heat(points):
    """On the default context with one thread, on own ones with several."""
    panels = []
    for label in points.labels:
        for op, size in _cases(points, "throughput"):
            title = f"{label}, {op}, {units.size(size)}"
            series = Series(title, "")
            for point in sorted(_plainly(points, label, op, size), key=_place):
                if point["params"]["context"] == ("default" if point["params"]["threads"] == 1 else "private"):
                    series.add(_place(point), point)
            panels.append(Panel(title, [series] if len(series.x) > 1 else []))
    return make_chart(
        panels,
        slug="patterns-splits",
        title="Patterns: PEs x threads",
        kind="heat",
        about="What the whole job gets of the same cores; the darker a field is, the more goes through. A quiet by "
        "each thread; several threads have a context each. The size is that of a message, a face or a block.",
        value_title="of the whole job",
        x_title="PEs and threads",
    )


_MORE = ("throughput", False, "bytes/s or 1/s of the whole job")
_LESS = ("time", True, "s")


def _contexts(points, metric, lower_is_better, value_title):
    panels = []
    for op, size in _cases(points, metric):
        series = []
        for label in points.labels:
            series += _by_threads(points, label, op, size)
        several = any(x > 1 for one in series for x in one.x)
        panels.append(Panel(f"{op}, {units.size(size)}", series if several else []))
    return make_chart(
        panels,
        slug=f"patterns-contexts-{metric}",
        title="Pure processes, one context, many contexts" + ": seconds" * lower_is_better,
        x_title="threads a PE; PEs x threads are the cores",
        about="The same cores, from as many processes as cores (1 thread a PE) to one process. default: all threads "
        "of a PE on SHMEM_CTX_DEFAULT; private: each on one of its own; shared, serialized and pools between them. "
        "A grey diamond is pure processes under SHMEM_THREAD_SINGLE. A quiet by each thread; latency by fence and "
        "flag, collectives blocking, which use no contexts.",
        value_title=value_title,
        lower_is_better=lower_is_better,
        shared_values=False,
    )


def _by_threads(points, label, op, size):
    """A line for each context, all of which begin at pure processes, and a mark of these under SHMEM_THREAD_SINGLE."""
    found = _plainly(points, label, op, size)
    processes = [p for p in found if p["params"]["threads"] == 1 and p["params"]["context"] == "default"]
    names = [name for name in _CONTEXTS if any(p["params"]["context"] == name for p in found)]
    names += ["pool"] * any(p["params"]["context"].startswith("pool") for p in found)
    for number, name in enumerate(names):
        one = plain_series(points, label, f"{label}, {name}", dash=number % DASHES)
        own = [p for p in found if p["params"]["context"].split(":")[0] == name and p["params"]["threads"] > 1]
        for point in sorted(processes + own, key=lambda p: p["params"]["threads"]):
            one.add(point["params"]["threads"], point, _words(point))
        if own:
            yield one
    single = dict(op=op, size_bytes=size, sync=_PLAIN.get(op, "quiet"), level="single", context="default", threads=1)
    mark = Series(f"{label}, SHMEM_THREAD_SINGLE", REFERENCE_COLOUR, reference=True, dash=1)
    for point in points.find(BENCHMARK, None, label, **single):
        mark.add(1, point, _words(point))
    yield mark


def _words(point):
    return f"{pes_and_threads(point['params'])}, context {point['params']['context']}"


def _syncs(points):
    """A chart for each pattern: a panel for each size, a category for each synchronization."""
    for op in dict.fromkeys(point["params"]["op"] for point in points.find(BENCHMARK)):
        own = points.find(BENCHMARK, None, None, op=op, level="multiple", context="default")
        divisions = sorted({_place(point) for point in own}, key=lambda place: -place[0])
        panels = []
        for _, size in (case for case in _cases(points) if case[0] == op):
            series = []
            for label in points.labels:
                for number, place in enumerate(divisions):
                    name = f"{label}, {place[0]} x {place[1]}"
                    one = plain_series(points, label, name, dash=number % DASHES)
                    for point in own:
                        params = point["params"]
                        if (point["label"], _place(point), params["size_bytes"]) == (label, place, size):
                            one.add(params["sync"], point, _words(point))
                    series.append(one)
            panels.append(Panel(f"{op}, {units.size(size)}", series))
        is_time = bool(own) and own[0]["metric"] == "time"
        yield make_chart(
            panels,
            slug=f"patterns-sync-{op}",
            title=f"Patterns by synchronization: {op}",
            kind="dots",
            about="Of the whole job, on the default context; PEs x threads are the cores. quiet: by each thread; "
            "thread_quiet: the threads meet and one quiets; request_merged and request_shared: a request of each "
            "thread and of all; fence_flag, put_signal: the target waits; barrier_all: nothing else completes.",
            value_title="s" if is_time else "1/s" if op == "random" else "bytes/s",
            lower_is_better=is_time,
            shared_values=False,
        )
