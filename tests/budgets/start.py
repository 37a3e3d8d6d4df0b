#!/usr/bin/env python3
"""Counts with callgrind the instructions of what init computes for itself (start.cpp), and compares them with a bound
for each PE of the job. Ten times the PEs show what grows faster than they do.

    start.py PROGRAM [--pes 10000,100000]

PROGRAM is start.cpp's. Exit 0: within the bounds; 1: not; 77: there is no valgrind.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SHAPES = ("blocks", "cyclic", "alone")
MOST = 250  # instructions a PE; 106 to 141 were counted with gcc 12
SETTLED = 20000  # instructions that no number of PEs changes


def instructions(program: Path, n_pes: int, shape: str, folder: Path) -> int:
    """Those of compute(), callees included."""
    report = folder / f"{shape}.{n_pes}"
    command = ["valgrind", "-q", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=compute",
               f"--callgrind-out-file={report}", str(program), str(n_pes), shape]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"^(?:summary|totals): (\d+)", report.read_text(), re.M) if report.exists() else None
    if result.returncode != 0 or not found:
        sys.exit(f"{shape}, {n_pes} PEs: status {result.returncode}\n{result.stdout}{result.stderr}")
    return int(found[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda it: Path(it).resolve())
    parser.add_argument("--pes", default="10000,100000")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: there is no valgrind")
        return 77
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        for n_pes in map(int, options.pes.split(",")):
            for shape in SHAPES:
                count = instructions(options.program, n_pes, shape, Path(name))
                line = f"{shape}, {n_pes} PEs: {count / n_pes:.1f} instructions a PE (most {MOST})"
                print(line)
                if count > MOST * n_pes + SETTLED:
                    wrong.append(line)
    print("\n".join(["", "too many:", *wrong] if wrong else []))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
