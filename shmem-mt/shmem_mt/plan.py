"""Which program starts a run consists of. One start measures many points; a round repeats all starts, and samples of
different rounds are independent."""

import json
from dataclasses import dataclass, field, replace

from shmem_mt import fabrics
from shmem_mt.catalogue import BENCHMARKS, NETWORK_OPS, POLICIES, SETTINGS, SPINNING_OPS

_COLLECTIVES_WITH_SIZE = {
    "broadcast",
    "collect",
    "fcollect",
    "alltoall",
    "alltoalls",
    "sum_reduce",
    "max_reduce",
    "sum_inscan",
    "copy",
}
START_S = 1.5  # init and finalize of one program; measured with Open MPI 4.1.4 on a 2-core virtual machine


@dataclass(frozen=True)
class Start:
    """One program start, for any implementation."""

    program: str
    pes: int
    threads: int
    arguments: tuple
    rounds: int = field(compare=False)
    points: int = field(compare=False)
    estimate_s: float = field(compare=False)
    fabric: fabrics.Fabric = fabrics.ON_NODE
    coalescing: str = ""  # on, off; empty where it is not compared
    setting: str = ""  # how PEs wait (catalogue.SETTINGS); empty where it is not compared

    def key(self, label, round_number):
        place = [self.fabric.name, self.coalescing] if self.fabric.is_network else []
        place += [text for text in (self.setting, self.fabric.link_rate) if text]
        return json.dumps([label, self.program, self.pes, self.threads, list(self.arguments), round_number, *place])

    def title(self, implementation):
        """For people."""
        over = f" over {self.fabric.name}" if self.fabric.is_network else ""
        params = self.params(implementation)
        told = "".join(f", {name.replace('_', ' ')} {text}" for name, text in params.items() if name != "fabric")
        return f"{self.program}{over}, {self.pes} PEs x {self.threads} threads{told}"

    def params(self, implementation):
        """What tells the points of this start from those of others with the same program and arguments."""
        params = {"fabric": self.fabric.name}
        if self.coalescing and implementation.coalesces:
            params["coalescing"] = self.coalescing
        if self.setting:
            params["setting"] = self.setting
        if self.fabric.link_rate:
            params["link_rate"] = self.fabric.link_rate
        return params


@dataclass(frozen=True)
class Group:
    """Starts of one benchmark alone, for each number of PEs and threads."""

    benchmark: str
    pes: tuple
    sizes: dict  # number of threads -> bytes
    contexts: dict = None  # number of threads -> contexts; None: the default one
    points: int = 1  # of one operation, size and context
    more: tuple = ()  # further arguments
    one_thread: bool = False  # the program has no use for more, whatever the user asks for
    rounds: int = 2
    settings: tuple = ("",)  # how PEs wait
    apart: bool = False  # a start for each operation
    seconds: float = 0  # of a start, beside what its points take


@dataclass(frozen=True)
class Profile:
    rounds: int
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
    budget_s: float  # no round begins that would end later, except the first two
    thorough: bool  # all placements and contexts at every thread count
    groups: tuple = ()
    network: bool = False
    placements: tuple = ("heap", "static")
    more: tuple = ()  # further arguments of every program


_TWO_CONTEXTS = ("default", "private")
_HEAP = ("--placements", "heap")
_WORLD = ("--teams", "world")
_OVERLAP_SIZES = (8, 64, 512, 4096, 65536, 262144, 1048576, 4194304)
_POLICIES = tuple(policy for policy in POLICIES if policy != "thread")  # that is one of those behind it
_START = dict(benchmark="startup", sizes={1: (8,)}, points=0, one_thread=True)  # a sample a round, whatever the size
_SHORT = ("--point-ms", "50")  # 3 samples are enough where one takes so long
_APPS = ("cg", "hpccg", "minife", "minimd", "is", "mandelbrot", "gups")  # halo has groups of its own


def _overlap(pes, sizes, policies, rounds, apart=True, more=()):
    """8: of each policy 4 bodies are measured and one or two calibrated; a put and a get have two ways."""
    more = ("--policies", ",".join(policies), *more)
    return Group("overlap", pes, {1: sizes}, None, 8 * len(policies), more, True, rounds, apart=apart)


def _wait(pes, waits_ms, settings, rounds):
    """All of wait: 4 ways to wait; of each length as many samples as fit into a second, at least one."""
    lengths = ("--waits-ms", ",".join(map(str, waits_ms)), "--point-ms", "1000")
    seconds = 4e-3 * sum(max(length, min(1000, 8 * length)) for length in waits_ms)
    return Group("wait", pes, {1: (8,)}, more=lengths, rounds=rounds, settings=settings, points=0, seconds=seconds)


def _apps(pes, threads, size, rounds, names=_APPS):
    """Mini-apps, whose runs are as long as their problem is large."""
    sizes = dict.fromkeys(threads, (8,))
    seconds = {"tiny": 1, "medium": 60}.get(size, 15)
    return (Group(app, pes, sizes, more=("--size", size, *_SHORT), rounds=rounds, seconds=seconds) for app in names)


PROFILES = {
    "quick": Profile(
        rounds=4,
        samples=8,
        sample_ms=2.5,
        oversubscribed_sample_ms=8,
        pes=(2,),
        barrier_pes=(2, 8),
        collective_pes=(2, 8),
        collective_rounds=2,
        collective_sample_ms=5,
        threads=(1, 2),
        sizes={
            "latency": (8, 64, 1024, 16384, 262144),
            "message_rate": (8, 64, 512, 4096),
            "bandwidth": (64, 1024, 16384, 262144, 1048576, 4194304),
            "collectives": (8, 1024, 16384, 262144, 8388608),
        },
        threaded_sizes={"latency": (8,), "message_rate": (8,), "bandwidth": (16384, 1048576)},
        strided_sizes=(8, 16384),
        buffer_bytes=32 << 20,
        sleep_ms=1000,
        timeout_s=60,
        budget_s=400,
        thorough=False,
        groups=(
            Group("requests", (2,), {1: (8, 4096), 2: (8,)}, points=5, more=(*_HEAP, *_SHORT)),
            Group("collectives-mt", (2,), {2: (1024, 262144)}, more=(*_WORLD, *_SHORT)),
            Group("halo", (2,), {2: (8192,)}, {2: _TWO_CONTEXTS}, points=2, more=("--size", "tiny", *_SHORT)),
            Group("alltoallv", (2,), {2: (65536,)}, {2: _TWO_CONTEXTS}, more=_SHORT),
            _overlap((2,), (1048576,), ("manual", "auto"), 2, False, _SHORT),
            _wait((2,), (1, 1000), ("default",), rounds=1),
            _wait((16,), (10,), ("default",), rounds=1),
            *_apps((2,), (2,), "tiny", 1),
            Group(pes=(2,), rounds=1, **_START),
        ),
    ),
    "full": Profile(
        rounds=10,
        samples=15,
        sample_ms=5,
        oversubscribed_sample_ms=20,
        pes=(2, 4),
        barrier_pes=(2, 4, 8, 16),
        collective_pes=(2, 4, 8),
        collective_rounds=5,
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
            Group(
                "collectives-mt",
                (2, 4, 8),
                dict.fromkeys((1, 2, 4), tuple(8 << i for i in range(0, 20, 3))),
                more=_WORLD,
                rounds=5,
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
            _overlap((1, 2), _OVERLAP_SIZES, _POLICIES, 10),
            _wait((2, 4, 16), (1, 10, 100, 1000), tuple(SETTINGS), rounds=5),
            *_apps((1, 2, 4), (1, 2), "small", 3),
            *_apps((2, 4), (1, 2), "medium", 3, ("cg",)),
            Group(pes=tuple(2 << i for i in range(8)), rounds=5, **_START),
        ),
    ),
}

# Over a network: an operation that waits takes 20 to 100 us instead of 0.1, and what a sample costs once (the target's
# acknowledgement) ten times that. So samples are longer, and sizes, PEs and points fewer.
_NETWORK = dict(network=True, placements=("heap",), more=("--point-ms", "200"), strided_sizes=())
NETWORK_PROFILES = {
    "quick": replace(
        PROFILES["quick"],
        rounds=3,
        sample_ms=10,
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
            Group("collectives-mt", (2,), {2: (1024,)}, more=_WORLD),
            Group("halo", (2,), {1: (8192, 131072)}, points=2, more=("--size", "tiny")),
            Group("alltoallv", (2,), {1: (65536,)}),
            _overlap((2,), (1048576,), ("manual", "auto"), 2),
            _wait((2,), (1, 1000), ("default",), rounds=1),
            *_apps((2,), (1,), "tiny", 1),
            Group(pes=(2,), **_START),
        ),
        **_NETWORK,
    ),
    "full": replace(
        PROFILES["full"],
        rounds=5,
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
            Group("requests", (2, 4), {1: (8, 128, 4096, 65536), 2: (8, 4096)}, {2: _TWO_CONTEXTS}, 5, _HEAP, rounds=5),
            Group("collectives-mt", (2, 4), {2: (8, 1024, 65536, 1048576)}, more=_WORLD, rounds=3),
            Group(
                "halo",
                (2, 4),
                {1: (512, 8192, 131072), 2: (8192,)},
                {2: _TWO_CONTEXTS},
                points=2,
                more=("--size", "small"),
                rounds=5,
            ),
            Group("alltoallv", (2, 4), {1: (64, 1024, 16384, 262144), 2: (16384,)}, {2: _TWO_CONTEXTS}, rounds=5),
            _overlap((2,), _OVERLAP_SIZES, _POLICIES, 5),
            _wait((2, 4), (1, 10, 100, 1000), tuple(SETTINGS), rounds=3),
            *_apps((2,), (1, 2), "small", 2, [app for app in _APPS if app != "gups"]),
            *_apps((2,), (1, 2), "16384", 2, ("gups",)),  # one by one, its operations take a round trip each
            *_apps((2,), (1,), "medium", 3, ("cg",)),
            Group(pes=tuple(2 << i for i in range(8)), rounds=5, **_START),
        ),
        **_NETWORK,
    ),
}
COALESCED = ("message_rate",)  # programs (of message-rate and requests) that are measured with coalescing on and off


def profile_of(name, fabric):
    return (NETWORK_PROFILES if fabric.is_network else PROFILES)[name]


@dataclass(frozen=True)
class Choices:
    """What the user chose over the profile; None leaves the profile's."""

    pes: tuple = None
    threads: tuple = None
    sizes: tuple = None
    syncs: tuple = None
    rounds: int = None
    extra: tuple = ()  # arguments for every program


def starts_over(fabric, profile_name, benchmarks, choices, cores):
    """The program starts of one round over that fabric, in order."""
    plan = starts(profile_of(profile_name, fabric), benchmarks, choices, cores)
    if not fabric.is_network:
        return plan
    return [
        replace(start, fabric=fabric, coalescing=coalescing)
        for start in plan
        for coalescing in (("on", "off") if start.program in COALESCED else ("",))
    ]


def starts(profile, benchmarks, choices, cores):
    """The program starts of one round, in order."""
    plan = []
    for pes in choices.pes or profile.pes:
        for threads in choices.threads or profile.threads:
            for program in ("message_rate", "bandwidth", "latency"):
                plan += _program_starts(profile, benchmarks, choices, cores, program, pes, threads)
    for pes in choices.pes or profile.barrier_pes:
        ops = _ops(benchmarks, "latency", ("barrier_all", "sync_all"))
        if ops:
            plan.append(_start(profile, choices, cores, "latency", pes, 1, ops, (8,), ("heap",), ("default",)))
    for pes in choices.pes or profile.collective_pes:
        plan += _collective_starts(profile, benchmarks, choices, cores, pes)
    for group in profile.groups:
        plan += _group_starts(profile, benchmarks, choices, cores, group)
    return plan


def _group_starts(profile, benchmarks, choices, cores, group):
    found = [benchmark for benchmark in benchmarks if benchmark.name == group.benchmark]
    plan = []
    for pes in (choices.pes or group.pes) if found else ():
        for threads in (1,) if group.one_thread else choices.threads or group.sizes:
            sizes = choices.sizes or group.sizes.get(threads) or group.sizes[max(group.sizes)]
            contexts = (group.contexts or {}).get(threads, ("default",))
            sample_ms = profile.oversubscribed_sample_ms if pes * threads > cores else profile.sample_ms
            more = ["--contexts", ",".join(contexts), *group.more]
            all_ops = _wanted(profile, found[0].ops)
            if not profile.thorough:
                all_ops = [op for op in all_ops if op not in SPINNING_OPS]
            rounds = choices.rounds or group.rounds
            for ops in [[op] for op in all_ops] if group.apart else [all_ops]:
                arguments = _arguments(profile, choices, ops, sizes, threads, sample_ms, more)
                points = len(ops) * len(sizes) * len(contexts) * group.points
                seconds = _estimate(profile, points, sample_ms) + group.seconds
                start = Start(found[0].program, pes, threads, arguments, rounds, points, seconds)
                plan += [replace(start, setting=setting) for setting in group.settings]
    return plan


def _program_starts(profile, benchmarks, choices, cores, program, pes, threads):
    benchmarks = [benchmark for benchmark in benchmarks if benchmark.name not in {g.benchmark for g in profile.groups}]
    ops = [op for op in _wanted(profile, _ops(benchmarks, program)) if op not in ("barrier_all", "sync_all")]
    if not profile.thorough:
        ops = [op for op in ops if op not in ("put_quiet", "put_nbe", "get_nbe")]  # see the benchmark requests
    if threads > 1:
        ops = [op for op in ops if op not in _single_thread_ops(profile)]
    if not ops:
        return []
    both = program == "message_rate" and (threads == 1 or profile.thorough)
    placements = profile.placements if both else ("heap",)
    contexts = ("default", "private") if threads > 1 or profile.thorough else ("default",)
    if program == "message_rate" and len(contexts) > 1:
        contexts = ("default", "shared", "private")
    sizes = choices.sizes or (profile.sizes if threads == 1 else profile.threaded_sizes)[program]
    return [_start(profile, choices, cores, program, pes, threads, ops, sizes, placements, contexts)]


def _collective_starts(profile, benchmarks, choices, cores, pes):
    """All PEs together and, where that is a team, every second one."""
    ops = _ops(benchmarks, "collectives")
    teams = {"world": profile.sizes["collectives"], "strided": profile.strided_sizes if pes >= 4 else ()}
    sample_ms = profile.collective_sample_ms if pes > cores else profile.sample_ms
    plan = []
    for team, own_sizes in teams.items():
        if not ops or not own_sizes:
            continue
        sizes = choices.sizes or own_sizes
        more = ["--teams", team, "--buffer-bytes", str(profile.buffer_bytes)]
        more += ["--point-ms", "100"]  # operations of several MiB: 3 samples are enough
        arguments = _arguments(profile, choices, ops, sizes, 1, sample_ms, more)
        points = _count_points(ops, len(sizes), 1, 1)
        large = sum(size >= 1 << 20 for size in sizes) * len(ops)
        seconds = _estimate(profile, points, sample_ms) + 0.1 * large
        rounds = choices.rounds or profile.collective_rounds
        plan.append(Start("collectives", pes, 1, arguments, rounds, points, seconds))
    return plan


def _single_thread_ops(profile):
    """What the profile measures with one thread only. Threads that spin for each other on too few cores measure the
    scheduler, so the quick profile leaves them out."""
    once = {"wait_burn"}
    if not profile.thorough:
        once |= {
            "put_round_trip",
            "put_signal_round_trip",
            "atomic_fetch",
            "g",
            "get_nbi",
            "put_both_ways",
            "consumed",
        }
    return once


def _wanted(profile, ops):
    return [op for op in ops if profile.network or op not in NETWORK_OPS]


def _ops(benchmarks, program, among=None):
    names = {benchmark.name for benchmark in benchmarks}
    return [
        op
        for benchmark in BENCHMARKS
        if benchmark.program == program and benchmark.name in names
        for op in benchmark.ops
        if among is None or op in among
    ]


def _start(profile, choices, cores, program, pes, threads, ops, sizes, placements, contexts):
    sample_ms = profile.oversubscribed_sample_ms if pes * threads > cores else profile.sample_ms
    more = ["--placements", ",".join(placements), "--contexts", ",".join(contexts)]
    more += ["--sleep-ms", str(profile.sleep_ms)]
    arguments = _arguments(profile, choices, ops, sizes, threads, sample_ms, more)
    points = _count_points(ops, len(sizes), len(placements), len(contexts))
    seconds = _estimate(profile, points, sample_ms)
    if "wait_burn" in ops:
        seconds += 1e-3 * profile.sleep_ms
    return Start(program, pes, threads, arguments, choices.rounds or profile.rounds, points, seconds)


def _arguments(profile, choices, ops, sizes, threads, sample_ms, more):
    arguments = ["--ops", ",".join(ops), "--sizes", ",".join(map(str, sizes)), *more]
    arguments += ["--threads", str(threads), "--samples", str(profile.samples), "--sample-ms", f"{sample_ms:g}"]
    if choices.syncs:
        arguments += ["--syncs", ",".join(choices.syncs)]
    return (*arguments, *profile.more, *choices.extra)


def _estimate(profile, points, sample_ms):
    """Seconds of a program start."""
    return START_S + points * 1.4e-3 * sample_ms * (profile.samples + 6)


def _count_points(ops, sizes, placements, contexts):
    """About how many points those options make; for the time left only."""
    sized = {
        "put",
        "get",
        "put_nbi",
        "get_nbi",
        "put_quiet",
        "put_nbe",
        "get_nbe",
        "put_round_trip",
        "put_signal_round_trip",
        "put_both_ways",
        *_COLLECTIVES_WITH_SIZE,
    }
    once = {"barrier_all", "sync_all", "wait_burn"}
    points = 0
    for op in ops:
        if op in once:
            points += 1
        elif op == "consumed":
            points += 3 * contexts
        else:
            points += (sizes if op in sized else 1) * placements * contexts
    return points
