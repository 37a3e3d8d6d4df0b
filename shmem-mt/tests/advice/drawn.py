"""Machines whose truth is known: the throughput of each setup is drawn, and what a start measures of it is noisy."""

import numpy
from shmem_mt.advice.measuring import contexts
from shmem_mt.advice.setups import Question, Setup
from shmem_mt.catalogue.plan import splits
from shmem_mt.runner.results import RunFolder, merge_rounds

SYNCS = ("quiet", "quiet_each", "barrier_all", "request_merged")


def setups(cores):
    """All setups of so many cores."""
    return [Setup(pes, threads, context, sync, level="multiple") for pes, threads in splits(cores)
            for context in contexts(threads) for sync in SYNCS]  # fmt: skip


def raw_point(setup, value, number, op="stream", size=1024, metric="throughput", unit="bytes/s", label="A", **params):
    """What one start prints of a setup."""
    own = {"op": op, "size_bytes": size, "fabric": "on-node", "pes": setup.pes, "threads": setup.threads,
           "cores": setup.pes * setup.threads, "context": setup.context, "sync": setup.sync, "level": setup.level,
           "oversubscribed": False} | ({"setting": setup.setting} if setup.setting else {})  # fmt: skip
    samples = [value * scale for scale in (0.999, 1.0, 1.001)]
    return {"benchmark": "patterns", "params": {**own, **params}, "metric": metric, "unit": unit, "samples": samples,
            "valid": True, "label": label, "round": number}  # fmt: skip


class Machine:
    """Its times are drawn from the seed: how much each split, context and synchronization costs, what they cost
    together, how much starts differ, and how much all of a round do."""

    def __init__(self, seed, cores=8, noise=None):
        self.random = numpy.random.default_rng(seed)
        self.noise = self.random.uniform(0.01, 0.10) if noise is None else noise
        every = setups(cores)
        by_split = self._drawn(splits(cores), 0.2)
        by_context, by_sync = self._drawn(sorted({s.context for s in every}), 0.15), self._drawn(SYNCS, 0.15)
        together = self._drawn(every, 0.05)
        self.truth = {s: 1e9 * by_split[s.pes, s.threads] * by_context[s.context] * by_sync[s.sync] * together[s]
                      for s in every}  # fmt: skip
        self.starts = 0
        self._points = {}  # setup -> [raw point]
        self._merged = {}  # (setup, starts) -> result
        self._rounds = {}  # number -> how fast everything is in it

    def _drawn(self, names, spread):
        return {name: float(numpy.exp(self.random.normal(0, spread))) for name in names}

    def question(self):
        return Question("A", "on-node", "stream", 1024)

    def results(self):
        """{question: {setup: result}}, as advice.setups.questions makes them."""
        for setup, points in self._points.items():
            if (setup, len(points)) not in self._merged:
                self._merged[setup, len(points)] = merge_rounds(points)
        return {self.question(): {setup: self._merged[setup, len(its)] for setup, its in self._points.items()}}

    def measure(self, needed):
        """One more start for each of these setups."""
        for setup in needed[self.question()]:
            number = len(self._points.get(setup, ()))
            drift = self._rounds.setdefault(number, float(numpy.exp(self.random.normal(0, self.noise))))
            slow = 0.7 if self.random.random() < 0.05 else 1.0  # a start that something disturbed
            value = self.truth[setup] * drift * slow * float(numpy.exp(self.random.normal(0, self.noise)))
            self._points.setdefault(setup, []).append(raw_point(setup, value, number))
            self.starts += 1
        return True

    def loss(self, setup):
        """What a setup lacks of the truly best one, as a share."""
        return 1 - self.truth[setup] / max(self.truth.values())


WOBBLE = (1.0, 1.01, 0.99, 1.005, 0.995, 1.0)
FLAT = Setup(2, 1, "default", "quiet", level="multiple")
THREADED = Setup(1, 2, "private", "request_merged", level="multiple")
WORST = Setup(1, 2, "default", "quiet_each", level="multiple")


def known_points(starts=6, label="A", **more):
    """Raw points of a machine of two cores. In `random` one PE of two threads is twice as fast; in `stream` two PEs
    are, but for large messages. Half of its bandwidth is reached between 1 and 16 KiB. Of `collective` nothing can be
    told."""
    rates = {"stream": {64: (2e8, 1e8, 5e7), 1024: (8e8, 4e8, 1e8), 16384: (3e9, 2.95e9, 1e9), 262144: (3e9, 4e9, 2e9)},
             "random": {8: (1e6, 2e6, 5e5)}, "collective": {8: (1e-6, 1e-6, 1e-6)}}  # fmt: skip
    for op, sizes in rates.items():
        unit = {"stream": "bytes/s", "random": "1/s", "collective": "s"}[op]
        metric = "time" if op == "collective" else "throughput"
        for size, values in sizes.items():
            for place, (setup, value) in enumerate(zip((FLAT, THREADED, WORST), values)):
                for number in range(starts):
                    wobble = WOBBLE[number] if metric == "throughput" else (3, 1, 1 / 3)[(number + place) % 3]
                    yield raw_point(setup, value * wobble, number, op, size, metric, unit, label, **more)


def overlap_points(label="A"):
    """Of overlap: under `auto` half of a communication disappears behind a computation, under `manual` nothing."""
    for policy, total in (("manual", 2.0), ("auto", 1.5)):
        for part, value in (("communication", 1.0), ("compute", 1.0), ("total", total)):
            params = {"op": "put", "size_bytes": 1 << 20, "fabric": "on-node", "pes": 2, "threads": 1, "part": part,
                      "policy": policy, "context": "default", "sync": "quiet"}  # fmt: skip
            for number, wobble in enumerate(WOBBLE):
                yield {"benchmark": "overlap", "params": params, "metric": "time", "unit": "s", "valid": True,
                       "samples": [value * wobble], "label": label, "round": number}  # fmt: skip


def write_run(directory, points):
    """A run folder of raw points."""
    folder = RunFolder.open(str(directory))
    for point in points:
        folder.keep_point(point)
    folder.write_results()
    facts = {"machine": {"cpu": "Test CPU", "cores": 2}, "implementations": [], "settings": {"profile": "quick"}}
    folder.write_json("machine.json", facts)
    return folder.directory
