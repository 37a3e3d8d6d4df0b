"""What the profiles measure: the numbers of PEs and threads, the sizes, and the groups of each, on-node and over a
network. plan.py makes program starts of them."""

from dataclasses import dataclass, replace
from typing import Any

from shmem_mt.catalogue.catalogue import APP_SYNCS, LEVELS, MPI_RULES, OWNERS, POLICIES, PUT_RULES, TOUCHES
from shmem_mt.targets.libraries import CHANNELS, ORDERS, SETTINGS


@dataclass(frozen=True)
class Group:
    """Starts of one benchmark alone, for each number of PEs and threads."""

    benchmark: str
    pes: tuple
    sizes: dict  # number of threads -> bytes
    contexts: dict | None = None  # number of threads -> contexts; None: the default one
    points: int = 1  # of one operation, size and context
    more: tuple = ()  # further arguments
    one_thread: bool = False  # the program has no use for more, whatever the user asks for
    rounds: int = 2
    settings: tuple = ("",)  # what the library is told: libraries.SETTINGS, ORDERS
    ops: tuple | None = None  # None: all of the benchmark's
    coalescing: str = ""  # off: small messages leave one by one
    sample_ms: float = 0  # where there are cores for all; 0: the profile's
    apart: bool = False  # a start for each operation
    seconds: float = 0  # of a start, beside what its points take
    beside: bool = False  # the benchmark has starts of its own, too
    fills_cores: bool = False  # threads: as many as the cores hold beside each other, not those of `sizes`
    splits: str = ""  # ALL, ENDS: the cores are divided into PEs and threads (plan.splits); `pes` is not looked at
    level: str = ""  # the thread level asked for: catalogue.LEVELS; empty: the program's own


ALL, ENDS = "all", "ends"  # the divisions of the cores; the first, one between and the last of them
POOL = "pool:"  # and how many contexts all threads of a PE have
HALF_POOL = POOL + "half"  # half as many as threads


@dataclass(frozen=True)
class Profile:
    rounds: int
    threaded_rounds: int  # of starts with several threads a PE
    samples: int
    sample_ms: float
    oversubscribed_sample_ms: float  # longer than a time slice, so that every thread has had its turn
    pes: tuple
    barrier_pes: tuple
    collective_pes: tuple
    collective_rounds: int
    collective_sample_ms: float  # oversubscribed; no operation is done before every PE has had its turn
    threads: tuple
    sizes: dict  # program -> bytes
    threaded_sizes: dict  # the same for more than one thread
    strided_sizes: tuple  # collectives of every second PE
    buffer_bytes: int  # no collective whose source or dest is larger
    sleep_ms: int
    timeout_s: int  # of one program start
    budget_s: float  # from before compiling: no round begins that would end later, except the first two
    most_rounds: int  # where time is left: of starts that have points without an interval, or with a wide one
    thorough: bool  # all placements and contexts at every thread count
    groups: tuple = ()
    network: bool = False
    placements: tuple = ("heap", "static")
    more: tuple = ()  # further arguments of every program
    # Several threads have the last touch and `warm` alone, unless thorough: threads that wait for each other measure
    # the scheduler where cores are few.
    touches: tuple = TOUCHES
    owners: tuple = OWNERS


_TWO_CONTEXTS = ("default", "private")
_HEAP = ("--placements", "heap")
_WORLD = ("--teams", "world")
_OVERLAP_SIZES = (8, 64, 512, 4096, 65536, 262144, 1048576, 4194304)
_POLICIES = tuple(policy for policy in POLICIES if policy != "thread")  # that is one of those behind it
# Arguments of Group; a sample a round, whatever the size.
_START: dict[str, Any] = dict(benchmark="startup", sizes={1: (8,)}, points=0, one_thread=True)
_SHORT = ("--point-ms", "50")  # 3 samples are enough where one takes so long
_ORDERING_SIZES = {1: (8, 512, 8192, 65536, 1048576), 2: (8,)}  # by threads, as a group's
_MORE_ORDERING_SIZES = dict.fromkeys((1, 2, 4), (8, 64, 512, 4096, 16384, 32768, 65536, 262144, 1048576))
_FEW_PATTERNS = ("latency", "alltoall", "random", "collective")
_ANSWERING = ("stream", "halo3d")
_APPS = ("cg", "hpccg", "minife", "minimd", "is", "mandelbrot", "gups")  # halo has groups of its own


def _cold(rounds):
    """Buffers that no cache holds, read, beside the same in caches. 0.5 s: twice 64 MiB are checked."""
    cold: dict[str, Any] = dict(pes=(2,), more=("--touches", "read", "--caches", "cold", *_SHORT), one_thread=True)
    cold |= dict(rounds=rounds, seconds=0.5, beside=True)
    return (
        Group("latency", sizes={1: (262144,)}, ops=("put_round_trip",), **cold),
        Group("bandwidth", sizes={1: (1048576,)}, ops=("put", "get"), **cold),
    )


def _overlap(pes, sizes, policies, rounds, apart=True, more=()):
    """8: of each policy 4 bodies are measured and one or two calibrated; a put and a get have two ways."""
    more = ("--policies", ",".join(policies), *more)
    return Group("overlap", pes, {1: sizes}, None, 8 * len(policies), more, True, rounds, apart=apart)


def _completion(pes, sizes, rounds, more=(), settings=("default",)):
    """All ways to know, on one context for all threads and one for each. `sizes`: of the blocks beside, by threads."""
    contexts = dict.fromkeys(sizes, _TWO_CONTEXTS)
    return Group("completion", pes, sizes, contexts, 4, more, rounds=rounds, settings=settings)


def _patterns(divisions, sizes, rounds, ops=None, contexts=None, **how):
    """The same cores, divided into PEs and threads. 6: about as many synchronizations go with a context. `contexts`: of
    several threads."""
    found = {1: ("default",), 2: contexts or _TWO_CONTEXTS}
    how = {"more": _SHORT, "points": 6, **how}
    if how.get("level"):
        found, how["more"] = {}, ("--level", how["level"], *how["more"])
    return Group("patterns", (), {1: sizes}, found, ops=ops, rounds=rounds, splits=divisions, **how)


def _all_patterns(sizes, rounds, more):
    """All of them, on all contexts; under the lower thread levels, which leave less to choose, some."""
    some = ("latency", "stream", "halo3d", "alltoall")
    all_contexts = ("default", "shared", "serialized", HALF_POOL, "private")
    levels = (_patterns(ALL, sizes, rounds, some, level=level, more=more) for level in LEVELS[:3])
    return (_patterns(ALL, sizes, rounds, None, all_contexts, more=more, apart=True), *levels)


def _wait(pes, waits_ms, settings, rounds):
    """All of wait: 4 ways to wait; of each length as many samples as fit into a second, at least one."""
    lengths = ("--waits-ms", ",".join(map(str, waits_ms)), "--point-ms", "1000")
    seconds = 4e-3 * sum(max(length, min(1000, 8 * length)) for length in waits_ms)
    return Group("wait", pes, {1: (8,)}, more=lengths, rounds=rounds, settings=settings, points=0, seconds=seconds)


def _idle_waiters(waiters, samples, rounds):
    """0.15 s a sample and a calibration: the waiters start, fall asleep and end."""
    more = ("--waiters", ",".join(map(str, waiters)), "--samples", str(samples))
    seconds = 0.15 * (samples + 1) * len(waiters)
    return Group("idle-waiters", (2,), {1: (8,)}, None, len(waiters), more, True, rounds, seconds=seconds)


def _apps(pes, threads, size, rounds, names=_APPS):
    """Mini-apps, whose runs are as long as their problem is large. `threads` None: those that fill the cores. All ways
    to end their exchanges, but of the tiny size put with signal alone."""
    sizes = dict.fromkeys(threads or (1,), (8,))
    how: dict[str, Any] = dict(rounds=rounds, seconds={"tiny": 1, "medium": 60}.get(size, 15))
    how |= dict(fills_cores=threads is None)

    def more(app):
        syncs = APP_SYNCS.get(app, ()) if size != "tiny" else ()
        return "--size", size, *(("--syncs", ",".join(syncs)) if syncs else ()), *_SHORT

    return (Group(app, pes, sizes, more=more(app), **how) for app in names)


def _ordering(pes, sizes, outstanding, rounds, network=False):
    """The study of order: all rules that one start can have; then, over a network, those of which the library has to be
    told more. Half of the rounds choose what is best, so an interval needs twice as many as elsewhere."""
    more = ("--outstanding", ",".join(map(str, outstanding)), "--buffer-bytes", str(16 << 20), *_SHORT)
    common: dict[str, Any] = dict(benchmark="ordering", pes=pes, more=more, rounds=rounds, sample_ms=5)
    own = tuple(rule for rule in PUT_RULES if rule != "reorder-buffer")
    half = len(outstanding) // 2  # no library has more than half of these rules
    every = Group(sizes=sizes, ops=(*own, *MPI_RULES), points=half, **common)
    alone = Group(sizes={1: sizes[1]}, ops=("relaxed",), coalescing="off", points=len(outstanding), **common)
    told: dict[str, Any] = dict(ops=("reorder-buffer",), settings=tuple(ORDERS), points=len(outstanding))
    return (every, alone, Group(sizes=sizes, **told, **common)) if network else (every,)


PROFILES = {
    "quick": Profile(
        rounds=6,
        threaded_rounds=2,
        samples=3,
        sample_ms=2.5,
        oversubscribed_sample_ms=8,
        pes=(2,),
        barrier_pes=(),  # collectives has them
        collective_pes=(2, 8),
        collective_rounds=2,
        collective_sample_ms=5,
        threads=(1, 2),
        sizes={
            "latency": (8, 1024, 262144),
            "message_rate": (8, 512),
            "bandwidth": (1024, 65536, 1048576, 4194304),
            "collectives": (8, 65536),
        },
        threaded_sizes={"latency": (8,), "message_rate": (8,), "bandwidth": (1048576,)},
        strided_sizes=(),
        buffer_bytes=32 << 20,
        sleep_ms=1000,
        timeout_s=60,
        budget_s=300,
        most_rounds=20,
        thorough=False,
        owners=OWNERS[:3],  # false sharing is in the full profile
        groups=(
            Group("requests", (2,), {1: (8, 4096), 2: (8,)}, points=5, more=(*_HEAP, *_SHORT), rounds=1),
            _completion((2,), {1: (65536,), 2: (65536,)}, 1, _SHORT),
            *_cold(1),
            Group("collectives-mt", (2,), {2: (1024, 262144)}, more=(*_WORLD, *_SHORT), rounds=1),
            Group("halo", (2,), {2: (8192,)}, {2: _TWO_CONTEXTS}, points=2, more=("--size", "tiny", *_SHORT), rounds=1),
            Group("alltoallv", (2,), {2: (65536,)}, {2: _TWO_CONTEXTS}, more=_SHORT, rounds=1),
            _patterns(ENDS, (8192,), 6, _ANSWERING),  # as many starts as an interval needs: the page opens with them
            _patterns(ENDS, (8192,), 1, _FEW_PATTERNS),
            _overlap((2,), (1048576,), ("manual", "auto"), 1, False, _SHORT),
            _wait((2,), (1, 1000), ("default",), rounds=1),
            _wait((16,), (10,), ("default",), rounds=1),
            _idle_waiters((0, 8, 256), 3, rounds=1),
            *_apps((2,), None, "tiny", 1),
            Group(pes=(2,), rounds=1, **_START),
            *_ordering((2,), _ORDERING_SIZES, (1, 8, 64, 512), 2),
        ),
    ),
    "full": Profile(
        rounds=10,
        threaded_rounds=10,
        samples=15,
        sample_ms=5,
        oversubscribed_sample_ms=20,
        pes=(2, 4),
        barrier_pes=(2, 4, 8, 16),
        collective_pes=(2, 4, 8),
        collective_rounds=6,
        collective_sample_ms=10,
        threads=(1, 2, 4),
        sizes={
            "latency": tuple(8 << i for i in range(0, 18, 1)),
            "message_rate": tuple(8 << i for i in range(10)),
            "bandwidth": tuple(8 << i for i in range(20)),
            "collectives": tuple(8 << i for i in range(21)),
        },
        threaded_sizes={
            "latency": (8, 1024, 65536),
            "message_rate": (8, 64, 512, 4096),
            "bandwidth": (8, 1024, 16384, 262144, 1048576, 4194304),
        },
        strided_sizes=tuple(8 << i for i in range(21)),
        buffer_bytes=64 << 20,
        sleep_ms=1000,
        timeout_s=300,
        budget_s=1e9,
        most_rounds=20,
        thorough=True,
        groups=(
            Group(
                "requests",
                (2, 4),
                dict.fromkeys((1, 2, 4), tuple(8 << i for i in range(0, 14, 2))),
                contexts=dict.fromkeys((2, 4), ("default", "shared", "private")),
                points=5,
                more=_HEAP,
                rounds=10,
            ),
            _completion((2, 4), {1: (65536,), **dict.fromkeys((2, 4), (8, 4096, 65536))}, 10),
            *_cold(10),
            Group(
                "collectives-mt",
                (2, 4, 8),
                dict.fromkeys((1, 2, 4), tuple(8 << i for i in range(0, 20, 3))),
                more=_WORLD,
                rounds=6,
            ),
            Group(
                "halo",
                (2, 4, 8),
                dict.fromkeys((1, 2, 3, 6), (512, 8192, 131072)),
                dict.fromkeys((2, 3, 6), ("default", "shared", "private")),
                points=2,
                more=("--size", "small"),
                rounds=10,
            ),
            Group(
                "alltoallv",
                (2, 4, 8),
                dict.fromkeys((1, 2), (64, 1024, 16384, 262144)),
                {2: ("default", "shared", "private")},
                rounds=10,
            ),
            *_all_patterns((8, 512, 8192, 131072, 1048576), 6, ("--point-ms", "100")),
            _overlap((1, 2), _OVERLAP_SIZES, _POLICIES, 10),
            _wait((2, 4, 16), (1, 10, 100, 1000), tuple(SETTINGS), rounds=6),
            _idle_waiters((0, 1, 8, 64, 256, 1024), 6, rounds=10),
            *_apps((1, 2, 4), (1, 2), "small", 6),
            *_apps((2, 4), (1, 2), "medium", 6, ("cg",)),
            Group(pes=tuple(2 << i for i in range(8)), rounds=6, **_START),
            *_ordering((2, 4), _MORE_ORDERING_SIZES, (1, 4, 16, 64, 256, 1024), 12),
        ),
    ),
}

# The quick profile plans the starts that an interval needs for what its summary shows, and one of the rest. What time
# is left, with one library most of it, goes to those that have fewer than an interval needs, then to wide intervals.
#
# Over a network: an operation that waits takes 20 to 100 us instead of 0.1, and what a sample costs once (the target's
# acknowledgement) ten times that. So samples are longer, and sizes, PEs and points fewer.
_NETWORK: dict[str, Any] = dict(network=True, placements=("heap",), more=("--point-ms", "200"), strided_sizes=())
_NETWORK |= dict(owners=("warm",))  # a line from another core costs a hundredth of a message
NETWORK_PROFILES = {
    "quick": replace(
        PROFILES["quick"],
        rounds=2,
        collective_rounds=2,
        sample_ms=10,
        touches=("read",),
        oversubscribed_sample_ms=20,
        barrier_pes=(2,),
        collective_pes=(2,),
        collective_sample_ms=20,
        sizes={
            "latency": (8, 1024, 65536),
            "message_rate": (8, 512, 4096),
            "bandwidth": (1024, 65536, 1048576, 4194304),
            "collectives": (8, 1024, 65536, 1048576),
        },
        threaded_sizes={"latency": (8,), "message_rate": (8,), "bandwidth": (1048576,)},
        timeout_s=120,
        groups=(
            Group("requests", (2,), {1: (8, 4096), 2: (8,)}, points=5, more=_HEAP),
            _completion((2,), {1: (65536,), 2: (65536,)}, 2, settings=("default", "channels:2")),
            Group("collectives-mt", (2,), {2: (1024,)}, more=_WORLD),
            Group("halo", (2,), {1: (8192, 131072)}, points=2, more=("--size", "tiny")),
            Group("alltoallv", (2,), {1: (65536,)}),
            _patterns(ENDS, (8192,), 1, ("latency", *_ANSWERING, "alltoall"), more=()),
            _overlap((2,), (1048576,), ("manual", "auto"), 2),
            _wait((2,), (1, 1000), ("default",), rounds=1),
            _idle_waiters((0, 8, 256), 6, rounds=2),
            *_apps((2,), (1,), "tiny", 1),
            Group(pes=(2,), **_START),
            *_ordering((2,), _ORDERING_SIZES, (1, 8, 64, 512), 2, True),
        ),
        **_NETWORK,
    ),
    "full": replace(
        PROFILES["full"],
        rounds=6,
        threaded_rounds=6,
        samples=10,
        sample_ms=10,
        barrier_pes=(2, 4),
        collective_pes=(2, 4),
        collective_sample_ms=20,
        threads=(1, 2),
        sizes={
            "latency": tuple(8 << i for i in range(0, 18, 2)),
            "message_rate": (8, 64, 512, 4096),
            "bandwidth": tuple(64 << i for i in range(0, 17, 2)),
            "collectives": tuple(8 << i for i in range(0, 18, 2)),
        },
        threaded_sizes={
            "latency": (8, 1024, 65536),
            "message_rate": (8, 512),
            "bandwidth": (1024, 65536, 1048576),
        },
        timeout_s=600,
        groups=(
            Group("requests", (2, 4), {1: (8, 128, 4096, 65536), 2: (8, 4096)}, {2: _TWO_CONTEXTS}, 5, _HEAP, rounds=6),
            _completion(
                (2, 4), {1: (65536,), **dict.fromkeys((2, 4), (8, 4096, 65536))}, 6, settings=("default", *CHANNELS)
            ),
            Group("collectives-mt", (2, 4), {2: (8, 1024, 65536, 1048576)}, more=_WORLD, rounds=6),
            Group(
                "halo",
                (2, 4),
                {1: (512, 8192, 131072), 2: (8192,)},
                {2: _TWO_CONTEXTS},
                points=2,
                more=("--size", "small"),
                rounds=6,
            ),
            Group("alltoallv", (2, 4), {1: (64, 1024, 16384, 262144), 2: (16384,)}, {2: _TWO_CONTEXTS}, rounds=6),
            *_all_patterns((8, 1024, 65536, 1048576), 4, ()),
            _overlap((2,), _OVERLAP_SIZES, _POLICIES, 6),
            _wait((2, 4), (1, 10, 100, 1000), tuple(SETTINGS), rounds=6),
            _idle_waiters((0, 1, 8, 64, 256, 1024), 6, rounds=6),
            *_apps((2,), (1, 2), "small", 6, [app for app in _APPS if app != "gups"]),
            *_apps((2,), (1, 2), "32768", 6, ("gups",)),  # one by one, its operations take a round trip each
            *_apps((2,), (1,), "medium", 6, ("cg",)),
            Group(pes=tuple(2 << i for i in range(8)), rounds=6, **_START),
            *_ordering((2, 4), _MORE_ORDERING_SIZES, (1, 4, 16, 64, 256, 1024), 12, True),
        ),
        **_NETWORK,
    ),
}
