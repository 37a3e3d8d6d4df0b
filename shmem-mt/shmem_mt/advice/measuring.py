"""The program starts of `shmem-mt advise`: what is measured first, and starts that measure what halving.py asks for."""

import functools
import time
from dataclasses import dataclass, replace

from shmem_mt.advice.halving import MOST_ROUNDS, race, second_looks, wanted
from shmem_mt.advice.setups import BENCHMARK, PATTERNS, questions
from shmem_mt.catalogue import plan
from shmem_mt.runner.results import numbered_rounds

PROGRAM = "patterns"
LEVEL = "multiple"  # of threads, that the program asks for by itself
GRACE_S = 10  # of a start that hangs, behind the budget
MOST_TRIES = 2  # starts that leave a setup without a value, before nobody asks for it again
SIZES = {
    "latency": (8, 1024, 65536),
    "stream": (8, 1024, 16384, 262144),
    "bidirectional": (8, 1024, 16384, 262144),
    "incast": (8, 1024, 65536),
    "fan-out": (8, 1024, 65536),
    "halo2d": (64, 1024, 16384, 131072),
    "halo3d": (64, 1024, 16384, 131072),
    "alltoall": (64, 1024, 16384),
    "random": (8,),
    "collective": (8, 1024, 65536),
}


@dataclass(frozen=True)
class Cell:
    """One setup of one question: what a start can be asked for."""

    size_bytes: int
    context: str
    sync: str


def contexts(threads):
    """The contexts that a PE with so many threads can have."""
    several = ("shared", "serialized", *((f"pool:{threads // 2}",) if threads > 2 else ()))
    return ("default", *(several if threads > 1 else ()), "private")


def divisions(room):
    """The (PEs, threads) that use the cores of a room (plan.Room); of hosts with too few cores for two such, those of
    twice as many. Those with more threads than a program takes are left out."""
    found = plan.splits(room.cores, room.hosts)
    found = found if len(found) > 1 or room.hosts == 1 else plan.splits(2 * room.cores, room.hosts)
    return [(pes, threads) for pes, threads in found if threads <= plan.MOST_THREADS]


def planner(patterns=PATTERNS):
    """What plans the first look at each pattern, as plan.starts_over does a run."""

    def starts_over(fabric, profile_name, _benchmarks, choices, cores, room):
        profile = plan.profile_of(profile_name, fabric)
        found = []
        for op in patterns:
            for split in divisions(room):
                first = _first_look(profile, choices, fabric, op, split, max(cores, room.cores))
                channels = ["channels:2"] * (fabric.is_network and split[1] > 1)
                found += [replace(first, setting=setting) for setting in ("", *channels)]
        return found

    return starts_over


_ASSUMED_SYNCS = 6  # of a pattern; for the time left only


def _first_look(profile, choices, fabric, op, split, cores):
    """The start that measures all contexts and synchronizations."""
    pes, threads = split
    sizes, its_contexts = choices.sizes or SIZES[op], contexts(threads)
    sample_ms = profile.oversubscribed_sample_ms if pes * threads > cores else profile.sample_ms
    arguments = ["--ops", op, "--sizes", ",".join(map(str, sizes)), "--contexts", ",".join(its_contexts)]
    arguments += ["--threads", str(threads), "--samples", str(profile.samples), "--sample-ms", f"{sample_ms:g}"]
    points = len(sizes) * len(its_contexts) * _ASSUMED_SYNCS
    seconds = plan.START_S + points * 1.4e-3 * sample_ms * (profile.samples + 6)
    more = profile.more or ("--point-ms", "50")  # 3 samples are enough where one takes so long
    return plan.Start(PROGRAM, pes, threads, (*arguments, *more, *choices.extra), 1, points, seconds, fabric)


def covering(cells):
    """[(sizes, contexts, syncs)] whose products are exactly these cells, in few parts."""
    by_context: dict[str, set] = {}
    for cell in cells:
        by_context.setdefault(cell.context, set()).add((cell.sync, cell.size_bytes))
    alike: dict[frozenset, list] = {}
    for context, pairs in by_context.items():
        alike.setdefault(frozenset(pairs), []).append(context)
    found = []
    for same, its_contexts in alike.items():
        by_sync: dict[str, set] = {}
        for sync, size in same:
            by_sync.setdefault(sync, set()).add(size)
        by_sizes: dict[tuple, list] = {}
        for sync, sizes in sorted(by_sync.items()):
            by_sizes.setdefault(tuple(sorted(sizes)), []).append(sync)
        found += [(sizes, tuple(its_contexts), tuple(syncs)) for sizes, syncs in by_sizes.items()]
    return found


class Conductor:
    """Gives the starts of a session (runner/session.py) to what is still in the race, within a budget. `exhaustive`: so
    many to everything instead, which is what advice is compared with."""

    def __init__(self, budget_s, patterns, exhaustive=None):
        self.budget_s, self.patterns, self.exhaustive = budget_s, patterns, exhaustive

    def __call__(self, session, began):
        self.session, self.began = session, began
        self.tries: dict[tuple, int] = {}  # (question, setup, starts that it has) -> how often it was asked for
        self.firsts = {self._place(start): start for start in session.starts}
        firsts = [(number, start) for number in range(self.exhaustive or 1) for start in session.starts]
        if self._run(firsts) and not self.exhaustive:
            for pattern in self.patterns:
                race(functools.partial(self._questions, [pattern]), self._measure, (wanted,))
            race(self._questions, self._measure, (second_looks, wanted))

    def left_s(self):
        return self.budget_s - (time.monotonic() - self.began)

    def _place(self, start):
        op = start.arguments[start.arguments.index("--ops") + 1]
        fabric = start.fabric
        links = (fabric.link_rate or "", fabric.rails or 0)
        return (op, start.pes, start.threads, start.setting, LEVEL, fabric.name, *links)

    def _questions(self, patterns=None):
        labels = {implementation.label for implementation in self.session.implementations}
        ours = [p for p in self.session.folder.results() if p["label"] in labels and p["benchmark"] == BENCHMARK]
        found = questions([point for point in ours if point["params"]["op"] in (patterns or self.patterns)])
        return {question: results for question, results in found.items() if any(self._of(question, results))}

    def _of(self, question, results):
        """The places of the setups of a question that this invocation can measure."""
        where = dict(question.where)
        for setup in results:
            links = (where.get("link_rate", ""), int(where.get("rails", 0)))
            place = (question.op, setup.pes, setup.threads, setup.setting, setup.level, question.fabric, *links)
            if place in self.firsts:
                yield setup, self.firsts[place]

    def _measure(self, needed):
        """One more start for each of {question: [setup]}; False where there is no time, None where none is left that
        gives a value."""
        cells: dict[tuple, set] = {}
        every = self._questions()
        for question, setups in needed.items():
            known = dict(self._of(question, every[question]))
            for setup in filter(known.__contains__, setups):
                rounds = numbered_rounds(every[question][setup])
                number = next(n for n in range(MOST_ROUNDS + 1) if n not in rounds)
                tried = (question, setup, len(rounds))
                self.tries[tried] = self.tries.get(tried, 0) + 1
                if self.tries[tried] <= MOST_TRIES and number < MOST_ROUNDS:
                    cell = Cell(question.size_bytes, setup.context, setup.sync)
                    cells.setdefault((number, known[setup]), set()).add(cell)
        jobs = [
            (number, self._narrowed(first, *part)) for (number, first), its in cells.items() for part in covering(its)
        ]
        return self._run(jobs) if jobs else None

    def _narrowed(self, first, sizes, its_contexts, syncs):
        """The start with these sizes, contexts and synchronizations alone."""
        changed = {"--sizes": sizes, "--contexts": its_contexts, "--syncs": syncs}
        arguments = list(first.arguments)
        if "--syncs" not in arguments:
            arguments += ["--syncs", ""]
        for name, values in changed.items():
            arguments[arguments.index(name) + 1] = ",".join(map(str, values))
        points = len(sizes) * len(its_contexts) * len(syncs)
        each_s = (first.estimate_s - plan.START_S) / first.points
        return replace(first, arguments=tuple(arguments), points=points, estimate_s=plan.START_S + points * each_s)

    def _run(self, jobs):
        """Runs (round, start) pairs as long as there is time for them. False where there was not for all. What an
        earlier invocation has done takes none."""
        for number, start in jobs:
            if self._is_done(number, start):
                continue
            if self.session.expected_of(start) > self.left_s():
                return False
            self.session.most_s = self.left_s() + GRACE_S
            self.session.run_start(number, start, self.left_s())
        return True

    def _is_done(self, number, start):
        labels = [one.label for one in self.session.implementations if one.measures(start)]
        return all(self.session.folder.has_job(start.key(label, number)) for label in labels)
