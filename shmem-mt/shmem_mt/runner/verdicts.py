"""The lines at the end of a run: whether each mini-app's answer was right, and where its time went."""

from shmem_mt import units
from shmem_mt.runner.points import (
    COMMUNICATION,
    FIGURE,
    IMBALANCE,
    MEMORY,
    form_of_app,
    headline_of_app,
    memory_of_app,
    pes_threads_and_load,
    problem_of_app,
    run_of_app,
)


def verdict_lines(results):
    """A line for each form of each mini-app that was run, for people."""
    return [_line(result, results) for result in results if result["metric"] == COMMUNICATION]


def _line(share, results):
    verdict = {True: "pass", False: "FAIL", None: "not checked"}[share["valid"]]
    run = [r for r in results if r["label"] == share["label"] and _same_run(r, share)]
    phases = {r["params"]["part"]: r["median"] for r in run if r["metric"] == "time"}
    uneven = "".join(f", imbalance {units.significant(r['median'])}" for r in run if r["metric"] == IMBALANCE)
    merit = headline_of_app([r for r in run if r["metric"] == FIGURE])
    memory = memory_of_app([r for r in run if r["metric"] == MEMORY])
    total = phases.pop("total")
    spent = ", ".join(f"{part} {_percent(seconds, total)}" for part, seconds in phases.items())
    params = share["params"]
    return (
        f"{share['label']}: {share['benchmark']}, {form_of_app(params)}, {_where(params)}: {verdict}, "
        f"{units.quantity(total, 's')} ({spent}; communication {share['median']:.0f} %{uneven})"
        + f"; {merit}" * bool(merit)
        + f"; {memory}" * bool(memory)
    )


def _same_run(one, other):
    return one["benchmark"] == other["benchmark"] and run_of_app(one["params"]) == run_of_app(other["params"])


def _percent(part, total):
    return f"{100 * part / total:.0f} %"


def _where(params):
    links = f"links of {params['link_rate']}" if "link_rate" in params else ""
    return ", ".join(filter(None, [problem_of_app(params), pes_threads_and_load(params), params["fabric"], links]))
