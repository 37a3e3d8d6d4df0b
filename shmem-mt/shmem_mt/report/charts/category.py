"""Charts of the benchmarks whose points differ by names more than by numbers: one dot for each way to do the same, a
panel for each operation, size and number of threads."""

from shmem_mt import units
from shmem_mt.report.charts.model import dots
from shmem_mt.runner.points import pes_threads_and_load


def charts(points):
    """Those that these points can fill."""
    makers = (
        _contexts,
        _requests,
        _completion,
        _streams,
        _collectives,
        _halo,
        _alltoallv,
        _barrier_cost,
        _idle_waiters,
        _startup,
        _memory,
    )
    return [chart for chart in (maker(points) for maker in makers) if chart]


def _where(params):
    """Such as ``put, 8 B, 2 PEs x 2 threads, oversubscribed``."""
    return ", ".join([params["op"], units.size(params["size_bytes"]), pes_threads_and_load(params)])


def _way(params):
    return params["sync"] + ("" if params["context"] == "default" else f"\n{params['context']} context")


def _contexts(points):
    return dots(
        points,
        "message-rate",
        "rate",
        lambda params: f"{params['op']}, {pes_threads_and_load(params)}",
        lambda params: params["context"],
        _is_one_of_several_contexts,
        slug="contexts",
        title="8-byte messages of several threads, by context",
        about="All threads together, blind rate, symmetric heap. default: SHMEM_CTX_DEFAULT; shared: one context "
        "without options for all threads; private: one SHMEM_CTX_PRIVATE for each.",
        value_title="messages/s",
    )


def _is_one_of_several_contexts(params):
    small = params["size_bytes"] == 8 and params["placement"] == "heap"
    return small and params["threads"] > 1 and params["context"] != "none"


def _requests(points):
    return dots(
        points,
        "requests",
        "rate",
        _where,
        _way,
        slug="requests",
        title="What completes the operations",
        about="Operations a second of all threads, blind rate. quiet_each, blocking: one is complete before the next. "
        "quiet: non-blocking, one quiet at the end. request_each: a request for each, waited for at once; "
        "request_merged: one for all of a thread; request_shared: one for all threads.",
        value_title="messages/s",
        shared_values=False,
    )


def _beside(params):
    return f"beside puts of {units.size(params['size_bytes'])}, {pes_threads_and_load(params)}"


def _way_and_channels(params):
    return _way(params) + ("" if params["setting"] == "default" else f"\n{params['setting']}")


def _streams(points):
    return dots(
        points,
        "completion",
        "stream_bandwidth",
        _beside,
        _way_and_channels,
        slug="completion-streams",
        title="What other threads put meanwhile",
        about="Bytes a second of the threads that put blocks while one thread waits for single puts, all senders "
        "together. channels: so many paths to the network, each with connections and a lock of its own.",
        value_title="bytes/s",
        shared_values=False,
    )


def _completion(points):
    return dots(
        points,
        "completion",
        "time",
        _beside,
        _way_and_channels,
        slug="completion",
        title="When one put is known to have arrived",
        about="Seconds of an 8-byte put by one thread until it knows that the put has arrived, while the other threads "
        "of its PE put blocks to the same PE. quiet: a quiet of the context, which waits for all that is on it; "
        "request: a request for this put; signal: the target answers a put with signal. With one thread there are "
        "no blocks.",
        value_title="s",
        lower_is_better=True,
        shared_values=False,
    )


def _collectives(points):
    def panel(params):
        size = units.size(params["size_bytes"]) if params["size_bytes"] else "no data"
        return ", ".join([size, pes_threads_and_load(params)])

    return dots(
        points,
        "collectives-mt",
        "latency",
        panel,
        lambda params: params["op"],
        lambda params: params.get("scheme") != "window",
        slug="collectives-mt",
        title="Collectives by all threads of every PE",
        about="Seconds an operation, back to back, until the slowest PE has finished.",
        value_title="s",
        lower_is_better=True,
        shared_values=False,
    )


def _halo(points):
    return dots(
        points,
        "halo",
        "time",
        lambda params: f"{params['grid']}, {_where(params)}",
        _way,
        lambda params: params["op"] == "exchange",
        slug="halo",
        title="Halo exchange",
        about="Seconds an exchange of the six faces of each PE's box, packing and unpacking included, in a grid of PEs "
        "that closes upon itself. The size is that of a face.",
        value_title="s",
        lower_is_better=True,
        shared_values=False,
    )


def _alltoallv(points):
    return dots(
        points,
        "alltoallv",
        "bandwidth",
        _where,
        _way,
        slug="alltoallv",
        title="Exchange of uneven blocks among all PEs",
        about="Bytes a second of all PEs together; blocks of none to twice the size. Threads share the peers.",
        value_title="bytes/s",
        shared_values=False,
    )


def _barrier_cost(points):
    return dots(
        points,
        "wait",
        "time",
        pes_threads_and_load,
        lambda params: params["part"],
        lambda params: params["op"] == "barrier_cost" and params["setting"] == "default",
        slug="barrier-cost",
        title="A barrier beside a context switch",
        about="Seconds of a barrier of all PEs, back to back, and of one switch between two processes on one core "
        "(half of a round trip of a byte through two pipes), in turns.",
        value_title="s",
        lower_is_better=True,
    )


def _idle_waiters(points):
    return dots(
        points,
        "idle-waiters",
        "time",
        pes_threads_and_load,
        lambda params: f"{params['waiters']} waiters",
        slug="idle-waiters",
        title="A round trip beside threads that wait",
        about="Seconds of a round trip of 8 bytes between one thread of each PE, while so many further threads of both "
        "wait in shmem_wait_until for words that nobody writes.",
        value_title="s",
        lower_is_better=True,
    )


def _startup(points):
    return dots(
        points,
        "startup",
        "time",
        lambda params: params["op"],
        lambda params: f"{params['pes']} PEs",
        slug="startup",
        title="Start and end",
        about="Seconds of shmem_init, of the first barrier and of shmem_finalize, of the slowest PE, and of the "
        "launcher from its start to its end.",
        value_title="s",
        lower_is_better=True,
        shared_values=False,
    )


def _memory(points):
    return dots(
        points,
        "startup",
        "memory",
        lambda params: params["op"],
        lambda params: f"{params['pes']} PEs",
        lambda params: params["pe"] == "median",
        slug="memory",
        title="Memory of a PE",
        about="Bytes in pages that no other process has, before and after shmem_init and behind the first barrier; the "
        "median over the PEs.",
        value_title="bytes",
        lower_is_better=True,
    )
