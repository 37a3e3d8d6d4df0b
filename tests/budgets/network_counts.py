#!/usr/bin/env python3
"""Counts messages, fences of all threads, and wake-ups of PEs on nodes of their own, and compares them with the
formulas of [network_counts] in scale.toml. network_counts.c says what the patterns are.

    network_counts.py BUILD SOURCE [--threads 0,8,64]

BUILD is a build tree with bin/oshrun and bin/oshcc. Exit 0: within the bounds; 1: not; 77: there is no network.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

TIMES = {"turns": 20000, "request_fence": 20000, "quiet": 100, "waiters": 200, "requests": 200, "collectives": 200,
         "flood": 200, "flood_manual": 200}
PES = {"requests": 3, "flood": 3, "flood_manual": 3}
COUNTED = {"flood": 2, "flood_manual": 2}  # that PE alone
OTHER_TIMES = 1000


def counts_of(build: Path, program: Path, pattern: str, *arguments: object) -> dict[str, int]:
    """The counters of all PEs together, or of the one that counts."""
    program_pattern = pattern.removesuffix("_manual")
    settings = {"HEDDLE_PROGRESS": "auto" if pattern == program_pattern else "manual",
                "HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp", "HEDDLE_STATS": "1",
                "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "60"}
    command = [build / "bin/oshrun", "-n", PES.get(pattern, 2), program, program_pattern, *arguments]
    result = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            check=False, timeout=300, env={**os.environ, **settings})
    if result.returncode != 0:
        sys.exit(f"{pattern} {arguments}: status {result.returncode}\n{result.stderr[-3000:]}")
    rows = re.findall(r"^ *(\w+) +(\d+) .*\[([\d ]+)\]$", result.stderr, re.M)
    return {name: int(of_pes.split()[COUNTED[pattern]] if pattern in COUNTED else total)
            for name, total, of_pes in rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda it: Path(it).resolve())
    parser.add_argument("source", type=Path)
    parser.add_argument("--threads", default="0,8,64,256")
    options = parser.parse_args()
    if not (options.build / "lib/libheddle_ucx.so").exists():
        print("skipped: there is no plugin for a network")
        return 77
    table = tomllib.loads((Path(__file__).parent / "scale.toml").read_text())["network_counts"]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "network_counts"
        subprocess.run([options.build / "bin/oshcc", "-O2", "-pthread", options.source, "-o", program], check=True)
        for pattern, formulas in table.items():
            times = TIMES.get(pattern, OTHER_TIMES)
            waiting = list(map(int, options.threads.split(",")))
            counts = {"waiters": waiting, "turns": [1, 2, 8], "bursts": [1, 16, 250], "quiet": [1, 16, 64],
                      "requests": waiting[1:], "collectives": waiting[1:]}
            for threads in counts.get(pattern, [16]):
                counted = counts_of(options.build, program, pattern, times, threads)
                for counter, formula in formulas.items():
                    most = eval(formula, {"__builtins__": {}}, {"n": times, "t": threads})  # pylint: disable=eval-used
                    line = f"{pattern}, {times} times, {threads} threads: {counter} {counted[counter]} (most {most:g})"
                    print(line)
                    if counted[counter] > most:
                        wrong.append(line)
    print("\n".join(["", "too many:", *wrong] if wrong else []))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
