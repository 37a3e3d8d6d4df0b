"""Compares what `shmem-mt advise` picks with everything measured at length, on machines of other shapes: fewer cores by
affinity, and links that are made slow. `make validate-advice` runs it on a quiet machine; nothing else runs it.

    validate.py OUT [--budget 5m] [--starts 8] [--pattern NAMES] [--shapes NAMES] [-- further options of advise]

A shape is measured twice, in folders of their own under OUT, which are continued when they are there: by `advise`
within the budget, and exhaustively, so many starts of every setup. The pick is judged by the second alone. Its best is
the best of many noisy medians, so the loss is overstated. Exit status 1: fewer than 9 of 10 picks are within 5 %.
"""

import argparse
import json
import os
import subprocess
import sys

from shmem_mt.advice.answers import rankings
from shmem_mt.advice.ranking import BEST, NEAR, times_better
from shmem_mt.advice.words import setup_of_way
from shmem_mt.runner.results import load_results

NAMESPACES = ["--fabric", "namespaces", "--link-rate"]
SHAPES = {  # name -> (cores, options of advise)
    "1-core": (1, []),
    "2-cores": (2, []),
    "1-core-100mbit": (1, [*NAMESPACES, "100mbit"]),
    "2-cores-100mbit": (2, [*NAMESPACES, "100mbit"]),
    "1-core-1gbit": (1, [*NAMESPACES, "1gbit"]),
    "2-cores-1gbit": (2, [*NAMESPACES, "1gbit"]),
}
WANTED = 0.9  # of the picks are to be within NEAR


def advise(folder, cores, *options):
    """What the command says as JSON, on that many of the cores that this process may use."""
    usable = sorted(os.sched_getaffinity(0))
    command = [sys.executable, "-m", "shmem_mt", "advise", "--json", *options]
    command += [folder] if os.path.exists(os.path.join(folder, "results.jsonl")) else ["--out", folder]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, usable[:cores])
    )
    if not done.stdout:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}")
    return json.loads(done.stdout)


def judged(shape, advice, exhaustive):
    """A row for each answer: (shape, pattern, size, verdict, pick, how many times better the exhaustive best is)."""
    found = {(q.op, q.size_bytes): ranking for q, ranking in rankings(load_results(exhaustive)).items()}
    for answer in advice["patterns"]:
        ranking = found.get((answer["pattern"], answer["size_bytes"]))
        pick = setup_of_way(answer["best"])
        if ranking is None or pick not in ranking.results or len(ranking.results) < 2:
            continue
        times = times_better(ranking.results[ranking.best], ranking.results[pick])
        yield shape, answer["pattern"], answer["size_bytes"], answer["verdict"], pick, ranking.best, times


def table(rows):
    """The lines of the table, and whether enough picks are within NEAR."""
    heads = ("shape", "pattern", "bytes", "verdict", "pick loses (95 %)")
    lines = ["{:16} {:14} {:8} {:12} {:24} pick; the exhaustive best".format(*heads)]
    for shape, pattern, size, verdict, pick, best, times in rows:
        share, low, high = (100 * value for value in times.loss)
        span = f"{share:.1f} % ({low:.1f} to {high:.1f})"
        lines.append(f"{shape:16} {pattern:14} {size:<8} {verdict:12} {span:24} {pick}; {best}")
    good = [row for row in rows if row[-1].loss[0] <= NEAR]
    told = [row for row in rows if row[3] == BEST]
    called = sum(row in good for row in told)
    words = f"{len(good)} of {len(rows)} picks lose no more than {100 * NEAR:.0f} %"
    lines.append(f"{words}; of {len(told)} that are called best {called}")
    return lines, len(good) >= WANTED * len(rows) > 0


def main(arguments):
    parser = argparse.ArgumentParser(prog="validate.py", description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--starts", default="8")
    parser.add_argument("--pattern")
    parser.add_argument("--shapes", default=",".join(SHAPES))
    at = arguments.index("--") if "--" in arguments else len(arguments)
    own, further = arguments[:at], arguments[at + 1 :]
    options = parser.parse_args(own)
    further += ["--pattern", options.pattern] if options.pattern else []
    rows = []
    for shape in options.shapes.split(","):
        if shape not in SHAPES:
            parser.error(f"no shape is called {shape}; there are {', '.join(SHAPES)}")
        cores, more = SHAPES[shape]
        if cores > len(os.sched_getaffinity(0)):
            print(f"{shape} skipped: there are fewer cores")
            continue
        folders = [os.path.join(options.out, f"{shape}-{kind}") for kind in ("advised", "exhaustive")]
        os.makedirs(options.out, exist_ok=True)
        advice = advise(folders[0], cores, "--budget", options.budget, *more, *further)
        advise(folders[1], cores, "--budget", "24h", "--exhaustive", options.starts, *more, *further)
        rows += judged(shape, advice, folders[1])
        print("\n".join(table(rows)[0]), flush=True)
    return 0 if table(rows)[1] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
