"""`shmem-mt advise`: measures what is missing, within a budget, and says how this machine is best used."""

import contextlib
import json
import os
import sys
import time

from shmem_mt.advice import answers, four_questions, policies, words
from shmem_mt.advice.measuring import Conductor, planner
from shmem_mt.advice.model import ADAPTER, VERSION, Advice
from shmem_mt.advice.setups import BENCHMARK, PATTERNS
from shmem_mt.errors import MeasuredOtherwiseError, UserError
from shmem_mt.runner.results import load_machine, load_results
from shmem_mt.runner.session import run
from shmem_mt.targets.launch_template import LaunchTemplate


def advise(options):
    """The exit status: 0, or 1 where a program failed or a point is invalid. Raises UserError."""
    patterns = _patterns(options.pattern)
    if options.run and options.out:
        raise UserError(f"RUN is {options.run} and --out {options.out}; right would be one of them")
    if options.run:
        load_results(options.run)
    directory, status = options.run or options.out, 0
    if options.budget > 0:
        directory = directory or time.strftime("shmem-mt-%Y%m%d-%H%M%S")
        with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
            status = _measure(options, directory, patterns)
        if not os.path.exists(os.path.join(directory, "results.jsonl")):
            raise UserError(f"nothing was measured within {options.budget} s, and compiling takes some; right would "
                            f"be a larger --budget, with --out {directory}, which has what was compiled")  # fmt: skip
    elif not directory:
        raise UserError("--budget 0 measures nothing: name the RUN whose points are to answer")
    advice = of_points(load_results(directory), [directory], patterns)
    if not advice["patterns"]:
        asked = f" of {', '.join(patterns)}" if options.pattern else ""
        raise UserError(f"{directory} has no valid points of the benchmark {BENCHMARK}{asked}; "
                        "right would be a RUN that has, or a --budget that measures them")  # fmt: skip
    if options.json:
        print(json.dumps(advice, indent=1))
    else:
        print("\n".join(words.lines(advice)))
    return status


def of_points(points, runs, patterns=PATTERNS):
    """What these points advise, as model.Advice."""
    of_patterns = [p for p in points if p["benchmark"] != BENCHMARK or p["params"]["op"] in patterns]
    ranked = answers.rankings(of_patterns)
    made = Advice(
        schema_version=VERSION,
        runs=list(runs),
        questions=four_questions.replies(of_patterns, ranked),
        patterns=answers.of_rankings(ranked),
        policies=policies.policies(points),
    )
    return ADAPTER.validate_python(made)


def _patterns(asked):
    """Those to measure and to answer, in the order in which they get time."""
    for name in asked or ():
        if name not in PATTERNS:
            raise UserError(f"--pattern {name}: no pattern is called so; there are {', '.join(PATTERNS)}")
    if asked == []:
        raise UserError("--pattern names no pattern")
    return tuple(dict.fromkeys(asked or PATTERNS))


def _measure(options, directory, patterns):
    """The exit status of a run that measures these patterns."""
    options.out, options.only, options.rounds = directory, [BENCHMARK], 1
    if options.run and not (options.oshcc or options.oshrun or options.library):
        _take_libraries(options)
    try:
        return run(options, planner(patterns), Conductor(options.budget, patterns, options.exhaustive))
    except MeasuredOtherwiseError as error:
        raise UserError(f"{str(error).partition(';')[0]}; right would be --budget 0, which answers from the points "
                        f"that {directory} has, or no RUN, which measures anew") from error  # fmt: skip


def _take_libraries(options):
    """Those that the run was measured with."""
    known = [one for one in load_machine(options.run).get("implementations", ()) if one.get("standard") != "MPI"]
    known = [one for one in known if one.get("oshcc") and one.get("oshrun") and os.path.exists(one["oshcc"])]
    for one in known:
        launcher = LaunchTemplate(one["oshrun"]) if "{program}" in one["oshrun"] else one["oshrun"]
        options.oshcc = [*(options.oshcc or []), one["oshcc"]]
        options.oshrun = [*(options.oshrun or []), launcher]
        options.label = [*(options.label or []), one["label"]]
