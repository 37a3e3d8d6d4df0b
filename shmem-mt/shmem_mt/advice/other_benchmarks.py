"""What other benchmarks than `patterns` say to the four questions: bandwidth of the message size, requests of the
synchronization, message-rate, halo and alltoallv of threads and their contexts. They do not split the same cores in
several ways, so the number of PEs stays open."""

from shmem_mt import units
from shmem_mt.advice.by_size import half_bandwidth
from shmem_mt.advice.ranking import BEST, rank
from shmem_mt.advice.setups import context_words, questions, split_words

ASKED = ("bandwidth", "requests", "message-rate", "halo", "alltoallv")
ASK = "not measured: shmem-mt advise"
_CONTEXTS = {"message-rate": ("rate",), "halo": ("time",), "alltoallv": ("bandwidth",)}


def replies(points):
    """{question: [verdict, text, evidence]} of the points of one implementation over one fabric."""
    return {
        "PEs": ["not measured", ASK, []],
        "threads": _threads(points),
        "message size": message_size(points),
        "synchronization": _syncs(points),
    }


def _fewest(points):
    """Those with the fewest PEs and threads, so that the same cores are compared."""
    splits = [(p["params"]["pes"], p["params"].get("threads", 1)) for p in points]
    return [point for point, split in zip(points, splits) if split == min(splits)]


def _rankings(points, benchmark, metrics):
    return {question: rank(results) for question, results in questions(points, benchmark, metrics).items()}


def message_size(points):
    """[verdict, text, evidence] of puts by size."""
    read = [p for p in points if p["benchmark"] == "bandwidth" and p["params"]["op"] == "put"
            and p["params"].get("touch") in ("read", None) and p["params"].get("cache") in ("hot", None)]  # fmt: skip
    ranked = _rankings(_fewest(read), "bandwidth", ("bandwidth",))
    sizes = {question.size_bytes: ranking for question, ranking in ranked.items()}
    half = half_bandwidth(sizes)
    if half is None:
        return ["not measured", ASK, []]
    rates = {size: ranking.results[ranking.best] for size, ranking in sorted(sizes.items())}
    evidence = [f"put, {units.size(s)}: {units.quantity(r['median'], r['unit'])}" for s, r in rates.items()]
    size = units.size(round(half)) if half < 1024 else f"{units.significant(half / 1024, 2)} KiB"
    return ["answered", f"{size} and more: from there on a put has half of its bandwidth", evidence]


def _syncs(points):
    ranked = _rankings(_fewest([p for p in points if p["benchmark"] == "requests"]), "requests", ("rate",))
    ranked = {question: ranking for question, ranking in ranked.items() if ranking.behind}
    if not ranked:
        return ["not measured", ASK, []]
    evidence = [f"{q.op}, {units.size(q.size_bytes)}: {_told(ranking)}" for q, ranking in ranked.items()]
    told = [f"{q.op} of {units.size(q.size_bytes)}: {_told(ranking)}" for q, ranking in ranked.items()
            if ranking.verdict == BEST]  # fmt: skip
    if not told:
        return ["cannot tell", f"cannot tell: {next(iter(ranked.values())).why}", evidence]
    return ["answered", "; ".join(told), evidence]


def _told(ranking):
    if ranking.verdict != BEST:
        return f"cannot tell: {ranking.why}"
    near = ", ".join(setup.sync for setup in ranking.near if setup.sync != ranking.best.sync)
    return ranking.best.sync + f" (no more than 5 % from it: {near})" * bool(near)


def _threads(points):
    """The contexts of several threads; and what more threads, on more cores, gain."""
    evidence, answers = [], []
    for benchmark, metrics in _CONTEXTS.items():
        for question, results in questions(points, benchmark, metrics).items():
            threaded = {setup: result for setup, result in results.items() if setup.threads > 1}
            for split in sorted({(setup.pes, setup.threads) for setup in threaded}):
                alike = {setup: r for setup, r in threaded.items() if (setup.pes, setup.threads) == split}
                if len({setup.context for setup in alike}) > 1:
                    ranking = rank(alike)
                    what = f"{benchmark} {question.op}, {units.size(question.size_bytes)}, {split_words(*split)}"
                    unclear = ranking.verdict != BEST
                    told = f"cannot tell: {ranking.why}" if unclear else context_words(ranking.best.context)
                    evidence.append(f"{what}: {told}")
                    answers += [] if unclear else [ranking.best.context]
    if not answers:
        return ["cannot tell" if evidence else "not measured", ASK, evidence]
    context = max(dict.fromkeys(answers), key=answers.count)
    text = f"of several threads in a PE {context_words(context)} in {answers.count(context)} of {len(answers)} cases"
    return ["answered", f"{text}; how many threads is {ASK}", evidence]
