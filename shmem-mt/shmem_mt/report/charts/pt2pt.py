"""The charts of latency, bandwidth and message rate between two PEs, and of barriers and waits beside them."""

from typing import Any

from shmem_mt.report.charts.model import REFERENCE_COLOUR, Panel, Series, make_chart, plain_series


def charts(points):
    """The charts that these points can fill, in the order of the page."""
    makers = (
        _rate_by_operation,
        _rate_by_size,
        _consumed,
        _rate_by_threads,
        _latency_small,
        _latency_by_size,
        _barriers,
        _waiting,
        _bandwidth,
    )
    return [chart for chart in (maker(points) for maker in makers) if chart]


def _first_pes(points, benchmark):
    pes = [p["params"].get("pes", 0) for p in points.find(benchmark)]
    return min(pes) if pes else 0


OP_ORDER = ("p", "put", "put_nbi", "g", "get", "get_nbi", "atomic_add", "atomic_fetch_add", "atomic_fetch_add_nbi")


def _rate_by_operation(points):
    pes, panels = _first_pes(points, "message-rate"), []
    for placement, title in (("heap", "symmetric heap"), ("static", "static data (globals)")):
        series = []
        common = dict(benchmark="message-rate", metric="rate", pes=pes, threads=1, placement=placement, size_bytes=8)
        for label in points.labels:
            one = plain_series(points, label)
            for op in OP_ORDER:
                for point in points.find(label=label, op=op, context="default", **common):
                    one.add(op, point)
            series.append(one)
        reference = Series("plain store / load", REFERENCE_COLOUR, reference=True)
        for op, stands_for in (("plain_store", "p"), ("plain_load", "g")):
            for point in points.find(op=op, **common)[:1]:
                reference.add(stands_for, point, f"{op} into {point['params'].get('target')}")
        panels.append(Panel(title, [*series, reference]))
    return make_chart(
        panels,
        slug="rate-by-operation",
        title="8-byte messages a second, by operation",
        kind="dots",
        about="One thread, blind rate: the clock stops after quiet and after the target has acknowledged the "
        "last data. Grey: one plain 8-byte store or load a message, in the same loop.",
        value_title="messages/s",
    )


def _rate_by_size(points):
    pes, panels = _first_pes(points, "message-rate"), []
    for op in ("put", "put_nbi", "get", "get_nbi"):
        series = []
        for label in points.labels:
            one = plain_series(points, label)
            found = points.find(
                "message-rate", "rate", label, op=op, pes=pes, threads=1, placement="heap", context="default"
            )
            for point in sorted(found, key=lambda p: p["params"]["size_bytes"]):
                one.add(point["params"]["size_bytes"], point)
            series.append(one)
        panels.append(Panel(op, series))
    return make_chart(
        panels,
        slug="rate-by-size",
        title="Message rate by size",
        x_title="message size",
        x_is_size=True,
        about="One thread, symmetric heap, default context.",
        value_title="messages/s",
    )


def _consumed(points):
    pes, series = _first_pes(points, "message-rate"), []
    for label in points.labels:
        one = plain_series(points, label)
        for batch in (1, 8, 512):
            text = "each message is its own flag" if batch == 1 else f"a flag per {batch} messages"
            for point in points.find(
                "message-rate", "consumed_rate", label, pes=pes, threads=1, context="default", batch=batch
            ):
                one.add(text, point)
        for point in points.find(
            "message-rate", "rate", label, op="p", pes=pes, threads=1, context="default", placement="heap"
        ):
            one.add("blind (nobody reads)", point)
        series.append(one)
    return make_chart(
        [Panel("", series)] if any(p["metric"] == "consumed_rate" for p in points.points) else [],
        slug="consumed-rate",
        title="Messages that the target has read",
        kind="dots",
        about="8-byte p into a ring; a core of the target reads every message in order and returns credits.",
        value_title="messages/s",
    )


def _rate_by_threads(points):
    pes, panels = _first_pes(points, "message-rate"), []
    threads = {p["params"]["threads"] for p in points.find("message-rate")}
    for op in ("p", "put", "get", "atomic_add", "atomic_fetch_add"):
        series = []
        for label in points.labels:
            for context, dashed in (("default", False), ("private", True)):
                one = plain_series(points, label, f"{label}, {context} context", dash=int(dashed))
                found = points.find("message-rate", "rate", label, op=op, pes=pes, placement="heap", size_bytes=8)
                for point in sorted(found, key=lambda p: p["params"]["threads"]):
                    single = point["params"]["threads"] == 1 and point["params"]["context"] == "default"
                    if point["params"]["context"] == context or (single and dashed and not _has_single(found, context)):
                        one.add(point["params"]["threads"], point)
                series.append(one if len(one.x) > 1 else plain_series(points, label))
        series.append(_plain_by_threads(points, op, pes))
        panels.append(Panel(op, series))
    return make_chart(
        panels if len(threads) > 1 else [],
        slug="rate-by-threads",
        title="8-byte message rate by threads",
        about="All threads together. Dashed: each thread on its own private context (its line starts at the one "
        "thread of the default context where that was not measured). Grey: plain stores of as many threads. More "
        "PEs x threads than cores are oversubscribed: such a point says so when you hover.",
        value_title="messages/s",
        x_title="threads per PE",
    )


def _plain_by_threads(points, op, pes):
    """The machine's limit beside p: plain stores of as many threads, where they were measured."""
    reference = Series("plain store", REFERENCE_COLOUR, reference=True, dash=1)
    found = points.find("message-rate", "rate", points.labels[0], op="plain_store", pes=pes, placement="heap")
    for point in sorted(found, key=lambda p: p["params"]["threads"]) if op == "p" else ():
        reference.add(point["params"]["threads"], point)
    return reference if len(reference.x) > 1 else Series("", REFERENCE_COLOUR)


def _has_single(found, context):
    return any(p["params"]["threads"] == 1 and p["params"]["context"] == context for p in found)


# Points of older folders name neither touch, cache nor owner: nobody read, in caches, and the line was the caller's.
_BLIND, _WARM, _HOT = ("write-only", None), ("warm", None), ("hot", None)
_READ, _HANDED, _CONTENDED, _FALSE = "read", "handed-over", "contended", "false-sharing"
# (text, params)
ROUND_TRIPS = (
    ("put round trip (message is flag)", dict(op="put_round_trip", sync="last_word")),
    ("put round trip (fence, flag), read", dict(op="put_round_trip", sync="fence_flag", touch=_READ)),
    ("put_signal round trip, read", dict(op="put_signal_round_trip", touch=_READ)),
    ("put round trip (fence, flag), nobody reads", dict(op="put_round_trip", sync="fence_flag", touch=_BLIND)),
    ("put_signal round trip, nobody reads", dict(op="put_signal_round_trip", touch=_BLIND)),
)
OWNED_OPS = ("g", "get", "atomic_fetch", "atomic_add_quiet", "atomic_fetch_add")
OWNED = tuple(
    (f"{op.replace('_quiet', ' + quiet')}, {text}", dict(op=op, owner=owner))
    for owner, text in ((_HANDED, "handed over"), (_CONTENDED, "contended"), (_FALSE, "false sharing"), (_WARM, "warm"))
    for op in OWNED_OPS
)
LATENCY_OPS: tuple[tuple[str, dict[str, Any]], ...] = (
    *ROUND_TRIPS,
    *OWNED,
    ("p + quiet", dict(op="p_quiet")),
    ("put + quiet", dict(op="put_quiet")),
)


def _latency_small(points):
    pes, series = _first_pes(points, "latency"), []
    common = dict(pes=pes, threads=1, size_bytes=8, placement="heap", context="default", cache=_HOT)
    for label in points.labels:
        one = plain_series(points, label)
        for text, params in LATENCY_OPS:
            for point in points.find("latency", "latency", label, **params, **common):
                one.add(text, point)
        series.append(one)
    return make_chart(
        [Panel("", series)],
        slug="latency-8-bytes",
        title="Latency of 8 bytes, by operation",
        kind="dots",
        about="One thread. Round trips are there and back. Handed over: the target has written the line just before. "
        "Contended: it goes on writing it. False sharing: it goes on writing another word of the line. Warm: nobody "
        "else touches it.",
        value_title="s",
        lower_is_better=True,
    )


def _latency_by_size(points):
    pes, panels = _first_pes(points, "latency"), []
    for text, params in LATENCY_OPS[1:]:
        series = []
        for label in points.labels:
            for cache, dashed in ((_HOT, False), ("cold", True)):
                one = plain_series(points, label, f"{label}, cold" if dashed else None, dash=int(dashed))
                common = dict(pes=pes, threads=1, placement="heap", context="default", cache=cache)
                found = points.find("latency", "latency", label, **params, **common)
                for point in sorted(found, key=lambda p: p["params"]["size_bytes"]):
                    one.add(point["params"]["size_bytes"], point)
                series.append(one)
        if any(len(one.x) > 1 for one in series):
            panels.append(Panel(text, series))
    return make_chart(
        panels,
        slug="latency-by-size",
        title="Latency by size",
        x_title="message size",
        x_is_size=True,
        about="One thread, symmetric heap. Round trips are there and back; read: the receiver loads every cache line "
        "before it answers. Dashed: messages rotate through more than twice the last cache.",
        value_title="s",
        lower_is_better=True,
    )


def _barriers(points):
    panels = []
    for op in ("barrier_all", "sync_all"):
        series = []
        for label in points.labels:
            one = plain_series(points, label)
            for point in sorted(points.find("latency", "latency", label, op=op), key=lambda p: p["params"]["pes"]):
                over = "\noversubscribed" if point["params"].get("oversubscribed") else ""
                one.add(f"{point['params']['pes']} PEs{over}", point)
            series.append(one)
        panels.append(Panel(op, series))
    return make_chart(
        panels,
        slug="barrier",
        title="Barriers",
        about="Seconds a barrier, of the slowest PE.",
        value_title="s",
        lower_is_better=True,
        kind="dots",
    )


def _waiting(points):
    panels = []
    for metric, title in (
        ("cpu_time", "CPU time burned while waiting"),
        ("wake_latency", "from put to wake-up"),
    ):
        series = []
        for label in points.labels:
            one = plain_series(points, label)
            for point in points.find("latency", metric, label, op="wait_burn"):
                one.add(f"waits {point['params'].get('sleep_s', '?'):g} s", point)
            series.append(one)
        panels.append(Panel(title, series))
    return make_chart(
        panels,
        slug="waiting",
        title="Waiting",
        value_title="s",
        lower_is_better=True,
        kind="dots",
        shared_values=False,
        about="One PE sits in shmem_long_wait_until while the other sleeps: what that costs in CPU seconds, "
        "and how long after the put it goes on.",
    )


def _bandwidth(points):
    pes, panels = _first_pes(points, "bandwidth"), []
    for benchmark, params, title in (
        ("bandwidth", dict(op="put", touch=_READ), "put, read by the target"),
        ("bandwidth", dict(op="put", touch=_BLIND), "put, nobody reads"),
        ("bandwidth", dict(op="get"), "get"),
        ("bibandwidth", dict(op="put"), "put, both ways at once"),
    ):
        series = []
        common = dict(pes=pes, threads=1, placement="heap")
        for label in points.labels:
            for cache, dashed in ((_HOT, False), ("cold", True)):
                one = plain_series(points, label, f"{label}, cold" if dashed else None, dash=int(dashed))
                found = points.find(benchmark, "bandwidth", label, context="default", cache=cache, **params, **common)
                for point in sorted(found, key=lambda p: p["params"]["size_bytes"]):
                    one.add(point["params"]["size_bytes"], point)
                series.append(one)
        copies = points.find("bandwidth", "bandwidth", points.labels[0], op="memcpy", **common)
        reference = Series(f"memcpy ({points.labels[0]} run)", REFERENCE_COLOUR, reference=True, dash=1)
        for point in sorted(copies, key=lambda p: p["params"]["size_bytes"]) if params.get("touch") == _BLIND else ():
            reference.add(point["params"]["size_bytes"], point, f"memcpy into {point['params'].get('target')}")
        panels.append(Panel(title, [*series, reference]))
    return make_chart(
        panels,
        slug="bandwidth-by-size",
        title="Bandwidth by size",
        x_title="message size",
        x_is_size=True,
        about="One thread, windows of 4 to 64 messages, which caches hold. Read: the target loads every cache line of "
        "each message. Otherwise quiet behind a window, and the target acknowledges. Dashed: windows of more than "
        "twice the last cache. Grey: memcpy of the same sizes through the same windows, interleaved.",
        value_title="bytes/s",
    )
