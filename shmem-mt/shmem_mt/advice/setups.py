"""What a user chooses, and the questions that points of the benchmark `patterns` answer: which choice is best for one
pattern of communication, message size and fabric, of all that were measured on the same cores."""

from dataclasses import dataclass

from shmem_mt import units
from shmem_mt.catalogue import catalogue
from shmem_mt.targets import fabrics

BENCHMARK = "patterns"
PATTERNS = next(benchmark.ops for benchmark in catalogue.BENCHMARKS if benchmark.name == BENCHMARK)
# What a setup is made of, what an answer names, and what follows from how the cores are divided.
_OF_SETUPS = {"pes", "threads", "context", "sync", "setting", "level"}
_OF_QUESTIONS = {"op", "size_bytes", "fabric"}
_OF_DIVISIONS = {"cores", "oversubscribed", "hosts", "grid", "messages", "pinning"}
_NOT_ASKED = _OF_SETUPS | _OF_QUESTIONS | _OF_DIVISIONS | {"placement", "touch"}  # a pattern has one of these two


@dataclass(frozen=True)
class Setup:
    """How a program may divide its work and complete its operations."""

    pes: int
    threads: int  # of each PE
    context: str
    sync: str
    setting: str = ""  # what the library is told (libraries.SETTINGS, CHANNELS); empty: nothing
    level: str = ""  # of threads, that the program asks for; empty: not recorded

    def __str__(self):
        """Such as ``2 PEs x 4 threads, private contexts, request_merged``."""
        words = [split_words(self.pes, self.threads), context_words(self.context), self.sync]
        words += [text for text in (self.setting, f"level {self.level}" if self.level != "multiple" else "") if text]
        return ", ".join(words).removesuffix(", level ")

    @property
    def plainness(self):
        """The less, the plainer: what is chosen of two that are equally fast."""
        return (bool(self.setting), self.context != "default", self.sync != "quiet", self.threads, self.sync)


@dataclass(frozen=True)
class Question:
    """What one answer is for."""

    label: str
    fabric: str
    op: str
    size_bytes: int
    where: tuple = ()  # what else tells points apart, as (name, value): the rate of links, say

    def of_other_size(self, size_bytes):
        return Question(self.label, self.fabric, self.op, size_bytes, self.where)


def split_words(pes, threads):
    """Such as ``1 PE x 8 threads``."""
    return f"{pes} PE{'s' * (pes > 1)} x {threads} thread{'s' * (threads > 1)}"


def context_words(context):
    """Such as ``a pool of 4 contexts``."""
    kind, _, count = context.partition(":")
    words = {"default": "default context", "shared": "one SHARED context", "private": "private contexts",
             "serialized": "one SERIALIZED context", "pool": f"a pool of {count} contexts"}  # fmt: skip
    return words.get(kind, f"context {context}")


def setup_of(params):
    """The choice that a point was measured with."""
    names = ("context", "sync", "setting", "level")
    told = {name: str(params.get(name) or "") for name in names}
    return Setup(int(params["pes"]), int(params.get("threads", 1)), **told)


def question_of(point):
    """The question that a point is part of the answer to."""
    params = point["params"]
    where = sorted((name, str(value)) for name, value in params.items() if name not in _NOT_ASKED)
    size = int(params.get("size_bytes") or 0)
    return Question(point["label"], params["fabric"], params["op"], size, tuple(where))


def questions(points, benchmark=BENCHMARK, metrics=("throughput", "time")):
    """{question: {setup: result}} of the points that can be judged: valid ones, and on-node those with a core for each
    thread. Hosts within the machine share its cores. Times of patterns are those with the most cores alone: fewer have
    fewer partners at the same time, and smaller sums."""
    found: dict[Question, dict[Setup, dict]] = {}
    for point in points:
        if point["benchmark"] != benchmark or point["metric"] not in metrics:
            continue
        shares = point["params"].get("oversubscribed") and point["params"]["fabric"] == fabrics.ON_NODE.name
        if point["valid"] is False or shares or min(point["samples"]) <= 0:
            continue
        found.setdefault(question_of(point), {})[setup_of(point["params"])] = point
    is_of_all = benchmark == BENCHMARK
    return {question: _of_most_cores(results) if is_of_all else results for question, results in found.items()}


def _of_most_cores(results):
    """Of times those with the most PEs x threads; of throughputs all, for fewer cores that get more are better."""
    if sense(results) > 0:
        return results
    most = max(setup.pes * setup.threads for setup in results)
    return {setup: result for setup, result in results.items() if setup.pes * setup.threads == most}


def sense(results):
    """1 where more is better, -1 where less is, of the results of one question."""
    return units.sense(next(iter(results.values()))["metric"])
