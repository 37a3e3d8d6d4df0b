#!/usr/bin/env python3
"""Counts what collectives cost as their members grow in number, and compares it with the formulas of scale.toml.
Counts, no times: a busy machine changes nothing.

    scale.py PROGRAM [--pes 8,16,64,256,512]

PROGRAM is scale.cpp's. Exit 0: within the bounds; 1: not.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tomllib
from pathlib import Path

LEVELS = ("single", "multiple")


def count(program: Path, n_pes: int, algorithm: str, level: str) -> dict[str, dict[str, int]]:
    """For each collective its counts."""
    result = subprocess.run([program, str(n_pes), algorithm, level], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{program.name} {n_pes} {algorithm} {level} failed with status {result.returncode}:\n"
                 f"{result.stdout}{result.stderr}")
    counts = {}
    for line in result.stdout.splitlines():
        name, *words = line.split()
        counts[name] = dict(zip(words[::2], map(int, words[1::2])))
    return counts


def bounds(algorithm: dict[str, str], collective: dict[str, str], n_pes: int, at_wakeups: bool) -> dict[str, float]:
    """The most of each count. Members sleep on the wake-ups of their PEs, or on event counts."""
    def value(formula: str, n: int) -> float:
        names: dict[str, object] = {"n": n, "log": math.ceil(math.log2(n)), "at_one": n - 1 if at_wakeups else 1,
                                    "wakeups": n if at_wakeups else 0}
        names |= {name: lambda k, formula=formula: value(formula, int(k)) for name, formula in algorithm.items()}
        return eval(formula, {"__builtins__": {}}, names)  # pylint: disable=eval-used
    first, pairs, lines = (value(collective[name], n_pes) for name in ("first", "pairs", "lines"))
    return {"wakes": first, "woken": pairs, "all_wakes": pairs, "waits": 2 * pairs, "lines": lines}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda it: Path(it).resolve())
    parser.add_argument("--pes", default="8,16,64,256")
    options = parser.parse_args()
    table = tomllib.loads((Path(__file__).parent / "scale.toml").read_text())
    wrong = []
    for name, algorithm in table["algorithm"].items():
        for level in LEVELS:
            for n_pes in map(int, options.pes.split(",")):
                counts = count(options.program, n_pes, name, level)
                if others := counts.keys() ^ table["collective"].keys():
                    sys.exit(f"without counts or without bounds: {others}")
                for collective, counted in counts.items():
                    most = bounds(algorithm, table["collective"][collective], n_pes,
                                  level == "multiple" or collective.endswith("_nbe"))
                    line = f"{name} {level}, {n_pes} PEs, {collective}: " + ", ".join(
                        f"{what} {number} (most {most[what]:g})" for what, number in counted.items())
                    print(line)
                    if any(number > most[what] for what, number in counted.items()):
                        wrong.append(line)
    print("\n".join(["", "too many:", *wrong] if wrong else []))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
