"""The short answers: how many PEs, how many threads in each, which message size, which synchronization?

The points of the benchmark `patterns` answer them. Where a run has none, or too few sizes, other benchmarks answer what
they can (other_benchmarks.py).
"""

from collections import Counter

from shmem_mt import units
from shmem_mt.advice import by_size, other_benchmarks
from shmem_mt.advice.answers import rankings, sizes_of
from shmem_mt.advice.model import Name, Reply
from shmem_mt.advice.policies import policies
from shmem_mt.advice.ranking import BEST, NEAR
from shmem_mt.advice.setups import BENCHMARK, context_words
from shmem_mt.statistics import FEWEST_STARTS

QUESTIONS: tuple[Name, ...] = ("PEs", "threads", "message size", "synchronization")
WORDS: dict[Name, str] = {
    "PEs": "How many PEs?",
    "threads": "How many threads in each?",
    "message size": "Which message size?",
    "synchronization": "Which synchronization?",
}


def replies(points, ranked=None):
    """The four answers of each implementation and fabric, as model.Reply, in the order of the points. `ranked`: what
    answers.rankings says of these points, where that is known."""
    points = [point for point in points if point["params"].get("coalescing") != "off"]
    ranked = rankings(points) if ranked is None else ranked
    found = []
    for label, fabric in dict.fromkeys((p["label"], p["params"]["fabric"]) for p in points if _is_asked(p)):
        own = [p for p in points if (p["label"], p["params"]["fabric"]) == (label, fabric)]
        mine = {q: ranking for q, ranking in ranked.items() if (q.label, q.fabric) == (label, fabric)}
        made = _of_patterns(mine) if mine else other_benchmarks.replies(own)
        if mine and made["message size"][0] == "not measured":
            made["message size"] = other_benchmarks.message_size(own)
        made["synchronization"][2].extend(map(policy_words, policies(own)))
        for question in QUESTIONS:
            verdict, text, evidence = made[question]
            found.append(Reply(question=question, fabric=fabric, library=label, verdict=verdict, text=text,
                               evidence=evidence))  # fmt: skip
    return found


def _is_asked(point):
    return point["benchmark"] in (BENCHMARK, *other_benchmarks.ASKED)


def line(reply, names=False):
    """For the terminal; `names`: with the implementation and the fabric."""
    where = f" ({reply['library']}, {reply['fabric']})" if names else ""
    return f"{reply['question']}{where}: {reply['text']}"


def _of_patterns(ranked):
    """{question: [verdict, text, evidence]}."""
    return {
        "PEs": _by_axis(ranked, lambda setup: setup.pes, lambda pes: f"{pes} PE{'s' * (pes > 1)}"),
        "threads": _by_axis(ranked, lambda setup: setup.threads, lambda n: f"{n} thread{'s' * (n > 1)} in each PE"),
        "message size": _sizes(ranked),
        "synchronization": _syncs(ranked),
    }


def _by_axis(ranked, axis_of, words):
    """Which value of an axis is good in most of what could be told."""
    told = {question: ranking for question, ranking in ranked.items() if ranking.verdict == BEST}
    evidence = [f"{_named(q)}: {_shares(ranking, axis_of, words)}" for q, ranking in ranked.items()]
    if not told:
        why = Counter(ranking.why for ranking in ranked.values()).most_common(1)[0][0]
        return ["cannot tell", f"cannot tell: {why}", evidence]
    good = {question: {axis_of(setup) for setup in (r.best, *r.near)} for question, r in told.items()}
    counts = Counter(value for values in good.values() for value in values)
    bests = Counter(axis_of(ranking.best) for ranking in told.values())
    value = max(counts, key=lambda one: (counts[one], bests[one]))
    text = f"{words(value)}, no more than {100 * NEAR:.0f} % from the best in {counts[value]} of {len(told)} answers"
    others = {question: axis_of(told[question].best) for question, values in good.items() if value not in values}
    for other in dict.fromkeys(others.values()):
        text += f"; {words(other)} for {_list(dict.fromkeys(q.op for q, best in others.items() if best == other))}"
    unclear = len(ranked) - len(told)
    return ["answered", text + f"; cannot tell in {unclear}" * (unclear > 0), evidence]


def _named(question):
    """Such as ``stream, 64 KiB``."""
    size = f", {units.size(question.size_bytes)}" if question.size_bytes else ""
    return question.op + size + "".join(f", {name} {value}" for name, value in question.where if name == "link_rate")


def _shares(ranking, axis_of, words):
    """Of each value of an axis what its best setup has of the best of all."""
    best: dict = {}
    for setup in (ranking.best, *ranking.behind):
        share = 1 / ranking.times(setup).ratio
        value = axis_of(setup)
        best[value] = max(share, best.get(value, 0.0))
    order = sorted(best, key=best.__getitem__, reverse=True)
    told = ", ".join(f"{words(value)} {100 * best[value]:.0f} %" for value in order)
    return told + f" (cannot tell: {ranking.why})" * (ranking.verdict != BEST)


def _list(words):
    return ", ".join(words)


def _syncs(ranked):
    verdict, text, evidence = _by_axis(ranked, lambda setup: setup.sync, str)
    contexts = Counter(ranking.best.context for ranking in ranked.values() if ranking.verdict == BEST)
    context, count = contexts.most_common(1)[0] if contexts else ("", 0)
    if 2 * count > sum(contexts.values()):
        text += f"; the best uses {context_words(context)} in {count} of {sum(contexts.values())}"
    return [verdict, text, evidence]


def _sizes(ranked):
    halves, steps, evidence = {}, [], []
    for question in ranked:
        sizes = sizes_of(question, ranked)
        name = question.op + "".join(f", {value}" for key, value in question.where if key == "link_rate")
        if name not in halves and (half := by_size.half_bandwidth(sizes)) is not None:
            halves[name] = half
            evidence.append(f"{name}: half of its bandwidth from {_about(half)} on")
        if step := by_size.step_at(sizes, question.size_bytes):
            steps.append(question.op)
            evidence.append(f"{_named(question)}: a message of {units.size(step)} takes less time")
        if change := by_size.changes_at(sizes, question.size_bytes):
            evidence.append(f"{_named(question)}: another setup is better from {units.size(change)} on")
    if not halves:
        return ["not measured", f"{other_benchmarks.ASK} (of three sizes and more)", evidence]
    text = size_text(halves) + f"; a larger message is faster in {_list(dict.fromkeys(steps))}" * bool(steps)
    if any(ranking.results[ranking.best]["starts"] < FEWEST_STARTS for ranking in ranked.values()):
        text += f"; by medians of fewer starts than the {FEWEST_STARTS} that an interval needs"
    return ["answered", text, evidence]


def size_text(halves):
    """Of {name: bytes with half of its bandwidth}."""
    last = max(halves, key=halves.__getitem__)
    first = min(halves, key=halves.__getitem__)
    if len(halves) == 1:
        return f"{_about(halves[last])} and more: from there on {last} has half of its bandwidth"
    return (f"{_about(halves[last])} and more: from there on all have half of their bandwidth ({first} from "
            f"{_about(halves[first])}, {last} last)")  # fmt: skip


def _about(count):
    """A size in two digits, such as ``13 KiB``."""
    for power, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= power:
            return f"{units.significant(count / power, 2)} {name}"
    return f"{count:.0f} B"


def policy_words(policy):
    """What a model.Policy says."""
    what = f"progress policy, {policy['op']}, {units.size(policy['size_bytes'])}: "
    if policy["verdict"] != BEST:
        return f"{what}cannot tell: {policy['why']}"
    others = [name for name in policy["within_5_percent"] if name != policy["best"]]
    return what + policy["best"] + f" (no more than 5 % from it: {_list(others)})" * bool(others)
