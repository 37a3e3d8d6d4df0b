"""The progress policy that hides most of a communication behind a computation, of the benchmark `overlap`."""

from shmem_mt.advice.model import Policy
from shmem_mt.advice.ranking import rank
from shmem_mt.runner.results import numbered_rounds
from shmem_mt.statistics import median_interval, start_values
from shmem_mt.targets.libraries import SETTINGS

_PARTS = ("communication", "compute", "total")
_NOT_ASKED = {"policy", "oversubscribed", "part", "hosts"}


class _Name(str):
    """A policy in the place of a setup."""

    @property
    def plainness(self):
        return (self != "auto", str(self))


def policies(points):
    """The answer for each operation and size that several policies were measured with, as model.Policy."""
    found: dict[tuple, dict] = {}
    for point in points:
        params = point["params"]
        if (point["benchmark"], point["metric"]) != ("overlap", "time") or point["valid"] is False:
            continue
        is_whole = "policy" in params and min(point["samples"]) > 0
        if is_whole and params.get("part") in _PARTS and not params.get("oversubscribed"):
            rest = tuple(sorted((name, str(v)) for name, v in params.items() if name not in _NOT_ASKED))
            parts = found.setdefault((point["label"], rest), {}).setdefault(_Name(params["policy"]), {})
            parts[params["part"]] = point
    judged = [{name: _together(parts) for name, parts in every.items() if len(parts) == 3} for every in found.values()]
    judged = [{name: result for name, result in results.items() if result} for results in judged]
    return [_policy(rank(results)) for results in judged if len(results) > 1]


def _together(parts):
    """A result: the time of both together over that of one after the other, a value a start. None where no start has
    measured all parts."""
    rounds_of = {part: numbered_rounds(point) for part, point in parts.items()}
    values = {part: dict(zip(found, start_values(found.values()))) for part, found in rounds_of.items()}
    rounds = [number for number in values["total"] if all(number in of_part for of_part in values.values())]
    if not rounds:
        return None
    samples = [
        float(values["total"][n] / max(values["communication"][n] + values["compute"][n], 1e-12)) for n in rounds
    ]
    median, low, high = median_interval([[sample] for sample in samples])
    made = {"samples": samples, "round_sizes": [1] * len(samples), "rounds": rounds, "starts": len(samples)}
    return {**parts["total"], **made, "median": median, "interval": [low, high]}


def _policy(ranking):
    result = ranking.results[ranking.best]
    times = next(iter(ranking.behind.values()))
    told = SETTINGS.get(ranking.best, {}) if ranking.best != "default" else {}
    return Policy(
        fabric=result["params"]["fabric"],
        library=result["label"],
        op=result["params"]["op"],
        size_bytes=int(result["params"].get("size_bytes") or 0),
        verdict=ranking.verdict,
        why=ranking.why,
        best=str(ranking.best),
        margin=times.ratio - 1,
        interval=[times.low - 1, times.high - 1],
        within_5_percent=[str(policy) for policy in ranking.near],
        environment=[f"{name}={value}" for name, value in told.items()],
    )
