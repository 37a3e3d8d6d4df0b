"""The answers that points give: one for each pattern of communication, fabric and message size."""

from shmem_mt.advice import by_size, recipes
from shmem_mt.advice.model import Loss, Pattern, Way
from shmem_mt.advice.ranking import rank
from shmem_mt.advice.setups import PATTERNS, Setup, questions


def rankings(points):
    """{question: its ranking}, by fabric, pattern and size."""
    found = questions(points)
    order = sorted(found, key=lambda q: (q.label, q.fabric, q.where, _place(q.op), q.size_bytes))
    return {question: rank(found[question]) for question in order}


def _place(op):
    return PATTERNS.index(op) if op in PATTERNS else len(PATTERNS)


def of_rankings(ranked):
    """The answers, as model.Pattern, of what `rankings` returns."""
    return [_pattern(question, ranking, sizes_of(question, ranked)) for question, ranking in ranked.items()]


def sizes_of(question, ranked):
    """{bytes: ranking} of the questions that differ from that one by nothing else."""
    alike = [other for other in ranked if other.of_other_size(question.size_bytes) == question]
    return {other.size_bytes: ranked[other] for other in alike}


def _pattern(question, ranking, sizes):
    result = ranking.results[ranking.best]
    second = next(iter(ranking.behind), None)
    times = ranking.behind.get(second)
    return Pattern(
        pattern=question.op,
        size_bytes=question.size_bytes,
        fabric=question.fabric,
        library=question.label,
        where=dict(question.where),
        metric=result["metric"],
        unit=result["unit"],
        verdict=ranking.verdict,
        why=ranking.why,
        best=way(ranking, ranking.best),
        second=way(ranking, second) if second else None,
        margin=times.ratio - 1 if times else None,
        interval=[times.low - 1, times.high - 1] if times else None,
        within_5_percent=[way(ranking, setup) for setup in ranking.near],
        default_loss=_loss(ranking, ranking.default),
        worst_common_loss=_loss(ranking, ranking.worst_common),
        changes_at_bytes=by_size.changes_at(sizes, question.size_bytes),
        half_bandwidth_bytes=by_size.half_bandwidth(sizes),
        step_at_bytes=by_size.step_at(sizes, question.size_bytes),
    )


def way(ranking, setup: Setup):
    """That setup, with what it takes to have it."""
    result = ranking.results[setup]
    return Way(
        pes=setup.pes,
        threads=setup.threads,
        context=setup.context,
        sync=setup.sync,
        setting=setup.setting or None,
        level=setup.level or None,
        median=result["median"],
        low=result["interval"][0],
        high=result["interval"][1],
        starts=result["starts"],
        behind=ranking.times(setup).ratio,
        command=recipes.command(setup),
        environment=recipes.environment(setup),
        call=recipes.calls(setup),
    )


def _loss(ranking, setup):
    if setup is None:
        return None
    share, low, high = ranking.times(setup).loss
    return Loss(way=way(ranking, setup), share=share, interval=[low, high], is_sure=ranking.times(setup).is_sure)
