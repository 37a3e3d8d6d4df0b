"""Which program starts a run consists of. One start measures many points; a round repeats starts, and gives each of
their points one more value."""

import json
from dataclasses import dataclass, field, replace

from shmem_mt.catalogue.catalogue import BENCHMARKS, LAUNCH, NETWORK_OPS, PAIRED, SPINNING_OPS
from shmem_mt.catalogue.profiles import ENDS, HALF_POOL, NETWORK_PROFILES, POOL, PROFILES
from shmem_mt.targets import fabrics, mpi
from shmem_mt.targets.places import MOST_SLOTS

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
# Operations whose points have an axis touch (by program), and of latency an axis owner.
_TOUCHED = {"latency": ("put_round_trip", "put_signal_round_trip"), "bandwidth": ("put",)}
_OWNED = ("g", "get", "atomic_add_quiet", "atomic_fetch_add", "atomic_fetch")
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
    setting: str = ""  # what the library is told (libraries.SETTINGS, ORDERS); empty where it is not compared
    has_references: bool = field(default=True, compare=False)  # MPI and bare UCX stand beside it, where they have it

    def key(self, label, round_number):
        place = [self.fabric.name, self.coalescing] if self.fabric.is_network else []
        rails = f"{self.fabric.rails} rails" if self.fabric.rails else ""
        place += [text for text in (self.setting, self.fabric.link_rate, rails) if text]
        return json.dumps([label, self.program, self.pes, self.threads, list(self.arguments), round_number, *place])

    @property
    def times_launch(self):
        """True where the time of the launch is wanted, which no program can take."""
        return any(LAUNCH in text.split(",") for text in self.arguments)

    @property
    def partner(self):
        """Where the PEs of a pair must be (catalogue.PARTNERS); empty: far where that can be, or there are no pairs."""
        return self.arguments[self.arguments.index(_PARTNER) + 1] if _PARTNER in self.arguments else ""

    def title(self, implementation):
        """For people."""
        over = f" over {self.fabric.name}" if self.fabric.is_network else ""
        params = {**self.params(implementation), **({"partner": self.partner} if self.partner else {})}
        told = "".join(f", {name.replace('_', ' ')} {text}" for name, text in params.items() if name != "fabric")
        return f"{self.program}{over}, {self.pes} PEs x {self.threads} threads{told}"

    def params(self, implementation):
        """What tells the points of this start from those of others with the same program and arguments."""
        params: dict[str, str | int] = {"fabric": self.fabric.name}
        if self.coalescing and implementation.coalesces:
            params["coalescing"] = self.coalescing
        if self.setting:
            params["setting"] = self.setting
        if self.fabric.link_rate:
            params["link_rate"] = self.fabric.link_rate
        if self.fabric.rails:
            params["rails"] = self.fabric.rails
        return params


_PARTNER = "--partner"
MOST_THREADS = 992  # of a PE: kMaxThreads of programs/common/options.hpp
COALESCED = ("message_rate",)  # programs (of message-rate and requests) that are measured with coalescing on and off


def profile_of(name, fabric):
    return (NETWORK_PROFILES if fabric.is_network else PROFILES)[name]


@dataclass(frozen=True)
class Choices:
    """What the user chose over the profile; None leaves the profile's."""

    pes: tuple | None = None
    threads: tuple | None = None
    sizes: tuple | None = None
    syncs: tuple | None = None
    rounds: int | None = None
    extra: tuple = ()  # arguments for every program
    partners: tuple | None = None  # between hosts


@dataclass(frozen=True)
class Room:
    """What is divided into PEs and threads (`splits`)."""

    cores: int
    hosts: int = 1  # each has as many PEs


def room_of(fabric, places, cores, threads_per_core=1):
    """The cores over that fabric. `places`: its hosts, which have a core for each slot where the user says how many;
    None: nothing is known of them. This machine may use `cores` hardware threads, and others are taken for its like.
    Over a network there are two PEs at least."""
    hosts = len(places.all) if places is not None else fabric.hosts
    own = max(1, cores // threads_per_core)
    if fabric.is_given and places is not None:
        slots = sum(host.slots for host in places.all)
        own = slots if slots < MOST_SLOTS else own * hosts
    return Room(own, max(hosts, 2) if fabric.is_network else 1)


def splits(cores, hosts=1):
    """All (PEs, threads) that use so many cores, the most PEs first. Each of several hosts has as many PEs; cores that
    do not divide are left out."""
    used = max(hosts, cores - cores % hosts)
    return [(pes, used // pes) for pes in range(used, 0, -1) if used % pes == 0 and pes % hosts == 0]


def starts_over(fabric, profile_name, benchmarks, choices, cores, room=None):
    """The program starts of one round over that fabric, in order."""
    plan = starts(profile_of(profile_name, fabric), benchmarks, choices, cores, room)
    if not fabric.is_network:
        return plan
    return [
        replace(start, fabric=fabric, coalescing=coalescing, arguments=(*start.arguments, *partner))
        for start in plan
        for coalescing in (("on", "off") if start.program in COALESCED else (start.coalescing,))
        for partner in _partners(start, choices if fabric.is_given else Choices())
    ]


def _partners(start, choices):
    """The further arguments of each start that it becomes."""
    ops = start.arguments[start.arguments.index("--ops") + 1].split(",")
    in_pairs = start.program in PAIRED and not set(ops) <= {"barrier_all", "sync_all"}
    return [(_PARTNER, name) for name in choices.partners or ()] if in_pairs and choices.partners else [()]


def starts(profile, benchmarks, choices, cores, room=None):
    """The program starts of one round, in order. `room`: what is divided; None: the cores of one host."""
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
        plan += _group_starts(profile, benchmarks, choices, cores, group, room or Room(cores))
    return plan


def _group_starts(profile, benchmarks, choices, cores, group, room):
    found = [benchmark for benchmark in benchmarks if benchmark.name == group.benchmark]
    plan = []
    for pes, threads in _divisions(group, choices, cores, room) if found else ():
        sizes = choices.sizes or group.sizes.get(threads) or group.sizes[max(group.sizes)]
        contexts = _contexts(group, threads)
        own_ms = group.sample_ms or profile.sample_ms
        sample_ms = profile.oversubscribed_sample_ms if pes * threads > max(cores, room.cores) else own_ms
        more = ["--contexts", ",".join(contexts), *group.more]
        all_ops = _wanted(profile, group.ops or found[0].ops)
        if not profile.thorough:
            all_ops = [op for op in all_ops if op not in SPINNING_OPS]
        rounds = choices.rounds or group.rounds
        for ops in [[op] for op in all_ops] if group.apart else [all_ops]:
            arguments = _arguments(profile, choices, ops, sizes, threads, sample_ms, more)
            points = len(ops) * len(sizes) * len(contexts) * group.points
            seconds = _estimate(profile, points, sample_ms) + group.seconds
            beside = found[0].program not in mpi.OPS
            start = Start(found[0].program, pes, threads, arguments, rounds, points, seconds, has_references=beside)
            plan += [replace(start, setting=setting, coalescing=group.coalescing) for setting in group.settings]
    return plan


def _divisions(group, choices, cores, room):
    """The (PEs, threads) of that group's starts."""
    if not group.splits:
        return [
            (pes, threads)
            for pes in choices.pes or group.pes
            for threads in ((1,) if group.one_thread else choices.threads or _threads(group, pes, cores))
        ]
    if choices.pes or choices.threads:
        found = [(pes, threads) for pes in choices.pes or () for threads in choices.threads or ()]
        found = found or [(pes, max(1, room.cores // pes)) for pes in choices.pes or ()]
        found = found or [(max(1, room.cores // threads), threads) for threads in choices.threads]
    else:
        found = splits(room.cores, room.hosts)
        if len(found) == 1 and room.hosts > 1:  # too few cores for a second one: one that is oversubscribed
            found = splits(2 * room.cores, room.hosts)
        if group.splits == ENDS:
            found = [found[0], found[len(found) // 2], found[-1]]
    least = {"single": (1, 1), "funneled": (2, MOST_THREADS), "serialized": (2, MOST_THREADS)}
    low, high = least.get(group.level, (1, MOST_THREADS))
    return [(pes, threads) for pes, threads in dict.fromkeys(found) if low <= threads <= high]


def _contexts(group, threads):
    """Those of so many threads; of starts that divide cores, those of one and of several. A pool has half as many as
    there are threads."""
    known = group.contexts or {}
    contexts = known.get(min(threads, 2) if group.splits else threads, ("default",))
    return [POOL + str(max(1, threads // 2)) if context == HALF_POOL else context for context in contexts]


def _threads(group, pes, cores):
    return (max(1, cores // pes),) if group.fills_cores else tuple(group.sizes)


def _program_starts(profile, benchmarks, choices, cores, program, pes, threads):
    grouped = {group.benchmark for group in profile.groups if not group.beside}
    benchmarks = [benchmark for benchmark in benchmarks if benchmark.name not in grouped]
    ops = [op for op in _wanted(profile, _ops(benchmarks, program)) if op not in ("barrier_all", "sync_all")]
    if not profile.thorough:
        # See the benchmarks requests and wait.
        ops = [op for op in ops if op not in ("put_quiet", "put_nbe", "get_nbe", "wait_burn")]
    if threads > 1:
        ops = [op for op in ops if op not in _single_thread_ops(profile)]
    if not ops:
        return []
    both = program == "message_rate" and (threads == 1 or profile.thorough)
    placements = profile.placements if both else ("heap",)
    contexts: tuple[str, ...] = ("default",)
    if threads > 1 or profile.thorough:
        three = program == "message_rate" and profile.thorough
        contexts = ("default", "shared", "private") if three else ("default", "private")
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
        # Beside back to back, in windows, which want no calibration: a third of the time.
        seconds = _estimate(profile, points if pes > cores else points * 4 / 3, sample_ms)
        points *= 1 if pes > cores else 2
        large = sum(size >= 1 << 20 for size in sizes) * len(ops)
        seconds += 0.1 * large
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
    points = _count_points(ops, len(sizes), len(placements), len(contexts))
    if program != "message_rate":
        all_axes = threads == 1 or profile.thorough
        touches = profile.touches if all_axes else profile.touches[-1:]
        # A hand-over is two hand-shakes a batch, and without a core for each thread those are context switches.
        owners = profile.owners if all_axes and pes * threads <= cores else ("warm",)
        more += ["--touches", ",".join(touches), "--owners", ",".join(owners)]
        touched = [op for op in ops if op in _TOUCHED[program]]
        owned = [op for op in ops if op in _OWNED] if program == "latency" else []
        points += (len(touches) - 1) * _count_points(touched, len(sizes), 1, len(contexts))
        points += (len(owners) - 1) * _count_points(owned, len(sizes), 1, len(contexts))
    arguments = _arguments(profile, choices, ops, sizes, threads, sample_ms, more)
    seconds = _estimate(profile, points, sample_ms)
    if "wait_burn" in ops:
        seconds += 1e-3 * profile.sleep_ms
    rounds = choices.rounds or (profile.rounds if threads == 1 else profile.threaded_rounds)
    # Over a network the quick profile has them with several threads for message-rate alone.
    beside = profile.thorough or (profile.network and (threads == 1 or program == "message_rate"))
    beside = beside and bool(set(ops) & set(mpi.OPS[program]))
    return Start(program, pes, threads, arguments, rounds, points, seconds, has_references=beside)


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
