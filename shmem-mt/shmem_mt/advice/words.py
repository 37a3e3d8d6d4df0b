"""What `shmem-mt advise` prints: each answer in a few lines, then the short answers to the four questions."""

from shmem_mt import units
from shmem_mt.advice import four_questions
from shmem_mt.advice.ranking import BEST
from shmem_mt.advice.setups import Setup

INDENT = "    "
MOST_NEAR = 4  # setups that are named


def lines(advice):
    """The lines for people, of a model.Advice."""
    patterns, replies = advice["patterns"], advice["questions"]
    found: list[str] = []
    for number, pattern in enumerate(patterns):
        if _where(pattern) != _where(patterns[number - 1]) or not number:
            found += ["", _where(pattern)]
        found += of_pattern(pattern)
    several = len({(reply["library"], reply["fabric"]) for reply in replies}) > 1
    found += [f"{policy['library']} over {policy['fabric']}, {four_questions.policy_words(policy)}"
              for policy in advice["policies"]]  # fmt: skip
    return [*found, "", *(four_questions.line(reply, several) for reply in replies)]


def _where(pattern):
    more = "".join(f", {name.replace('_', ' ')} {value}" for name, value in pattern["where"].items())
    return f"{pattern['library']} over {pattern['fabric']}{more}"


def of_pattern(pattern):
    """The lines of one answer."""
    best = pattern["best"]
    size = f", {units.size(pattern['size_bytes'])}" if pattern["size_bytes"] else ""
    figure = f"{units.quantity(best['median'], pattern['unit'])}, {best['starts']} start{'s' * (best['starts'] > 1)}"
    if pattern["verdict"] == BEST:
        told = [f"{pattern['pattern']}{size}: {way_words(best)}: {figure}{_margin(pattern)}"]
    else:
        told = [f"{pattern['pattern']}{size}: cannot tell: {pattern['why']}",
                f"{INDENT}best so far: {way_words(best)}: {figure}"]  # fmt: skip
    told += [INDENT + text for text in _more(pattern)]
    told.append(f"{INDENT}{' '.join([*best['environment'], best['command']])}")
    return told + [INDENT + line for line in best["call"]]


def way_words(way):
    """Such as ``2 PEs x 4 threads, private contexts, quiet``."""
    return str(setup_of_way(way))


def setup_of_way(way):
    """The setups.Setup of a model.Way."""
    more = (way["setting"] or "", way["level"] or "")
    return Setup(way["pes"], way["threads"], way["context"], way["sync"], *more)


def _margin(pattern):
    if pattern["margin"] is None:
        return ""
    low, high = (100 * value for value in pattern["interval"])
    second = way_words(pattern["second"])
    if low <= 0:
        return f", not clearly better than {second} ({low:.0f} to {high:.0f} %)"
    return f", {100 * pattern['margin']:.0f} % ({low:.0f} to {high:.0f} %) better than {second}"


def _more(pattern):
    """What else there is to say of an answer."""
    near = [way_words(way) for way in pattern["within_5_percent"]]
    if near:
        more = f" and {len(near) - MOST_NEAR} more" * (len(near) > MOST_NEAR)
        yield f"within 5 %: {'; '.join(near[:MOST_NEAR])}{more}"
    for name, words in (("default_loss", "the default"), ("worst_common_loss", "the worst common choice")):
        loss = pattern[name]
        if loss:
            low, high = (100 * value for value in loss["interval"])
            span = f" ({low:.0f} to {high:.0f} %{'' if loss['is_sure'] else ', a range'})" if loss["share"] else ""
            yield f"{words} ({way_words(loss['way'])}) loses {100 * loss['share']:.0f} %{span}"
    if pattern["changes_at_bytes"]:
        yield f"another setup is better from {units.size(int(pattern['changes_at_bytes']))} on"
    if pattern["step_at_bytes"]:
        yield f"a message of {units.size(int(pattern['step_at_bytes']))} takes less time"
