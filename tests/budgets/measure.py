#!/usr/bin/env python3
"""Counts the instructions of each operation with callgrind and compares them with budgets.toml. Noise changes nothing.

    measure.py BUILD SOURCE --compiler gcc [--pes 2]

BUILD is a build tree with bin/oshcc; SOURCE is operations.c. Exit 0: within budget; 1: not; 77: a tool is missing.
Counted is a call of the function around an operation, less its return; what the operation calls is included.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

CALLS = 1000  # kCalls of operations.c


def compile_operations(build: Path, source: Path, compiler: str, program: Path) -> None:
    options = ["-O2", "-g0", "-std=c11"]
    subprocess.run([build / "bin/oshcc", *options, source, "-o", program], check=True,
                   env={**os.environ, "HEDDLE_CC": compiler})


def callgrind_report(build: Path, program: Path, n_pes: int, folder: Path, job: dict[str, str]) -> str:
    """PE 0's callgrind report; job: settings."""
    valgrind = ["valgrind", "-q", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
                f"--callgrind-out-file={folder}/out.%q{{HEDDLE_PE}}", str(program)]
    command = [str(build / "bin/oshrun"), "-n", str(n_pes), *valgrind] if n_pes > 1 else valgrind
    environment = {**os.environ, "SHMEM_SYMMETRIC_SIZE": "1M", **job}
    if n_pes == 1:
        environment["HEDDLE_PE"] = "0"  # only for the name of the file: without a launcher the library ignores it
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=800)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\nfailed with status {result.returncode}:\n{result.stdout}{result.stderr}")
    return (folder / "out.0").read_text()


def instructions(report: str) -> tuple[dict[str, float], dict[str, int]]:
    """For each op_ function its instructions per call, callees included, and how many calls it made."""
    total: dict[str, int] = {}
    calls: dict[str, int] = {}
    function = ""
    for line in report.splitlines():
        if line.startswith("fn="):
            function = re.sub(r"'\d+$", "", line[3:])
        elif line.startswith("calls="):
            calls[function] = calls.get(function, 0) + int(line[6:].split()[0])
        elif re.match(r"[\d+*-]", line):
            total[function] = total.get(function, 0) + int(line.split()[1])
    counted = {name[3:]: total[name] / CALLS for name in total if name.startswith("op_")}
    overhead = counted.pop("nothing")
    counted = {name: count if name.endswith("_loop") else count - overhead for name, count in counted.items()}
    return counted, {name: calls.get(f"op_{name}", 0) for name in counted}


def slow_calls(program: Path, name: str) -> list[str]:
    """What the machine code of an operation calls or jumps to outside itself; its slow paths should be all."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble=op_{name}", program], check=True,
                          capture_output=True, text=True).stdout
    return [target for target in re.findall(r"(?:call|jmp)\s.*<([\w@.]+)(?:\+0x[0-9a-f]+)?>", text)
            if not target.startswith("op_")]


def compare(counted: dict[str, float], calls: dict[str, int], budgets: dict, program: Path) -> list[str]:
    wrong = [f"{name} has no budget" for name in counted if name not in budgets]
    for name, budget in budgets.items():
        if name not in counted:
            wrong.append(f"{name} was not measured")
            continue
        if counted[name] > budget["instructions"]:
            wrong.append(f"{name}: {counted[name]:.1f} instructions, the budget is {budget['instructions']}")
        if budget.get("calls", 0) == 0:
            outside = slow_calls(program, name)
            if calls[name] > 0:
                wrong.append(f"{name} made {calls[name] / CALLS:g} calls: the budget is none")
            if len(set(outside)) < len(outside) or not all(target.startswith("heddle_slow_") for target in outside):
                wrong.append(f"{name} contains calls other than one of each of the slow path: {outside}")
    return wrong


def beyond(counted: dict[str, float], budgets: dict[str, float]) -> list[str]:
    """Prints what was counted; the rows that are beyond their budget, or were not counted."""
    for name, count in sorted(counted.items()):
        print(f"{name:24} {count:6.1f} instructions, budget {budgets.get(name, '?')}")
    return [f"{name}: {counted.get(name, 'not')} counted, the budget is {budget}" for name, budget in budgets.items()
            if not counted.get(name, float("inf")) <= budget]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--pes", type=int, default=1)
    options = parser.parse_args()
    for tool in ("valgrind", "objdump", options.compiler):
        if not shutil.which(tool):
            print(f"skipped: there is no {tool}")
            return 77
    table = tomllib.loads((Path(__file__).parent / "budgets.toml").read_text())
    budgets = {name: budget for name, budget in table["clang" if "clang" in options.compiler else "gcc"].items()
               if budget.get("pes", options.pes) == options.pes}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "operations"
        compile_operations(options.build, options.source, options.compiler, program)
        counted, calls = instructions(callgrind_report(options.build, program, options.pes, folder,
                                                        {"LD_BIND_NOW": "1"}))
        wrong = compare(counted, calls, budgets, program)
    for name, count in sorted(counted.items()):
        budget = budgets.get(name, {}).get("instructions", "?")
        print(f"{name:24} {count:6.1f} instructions, {calls[name] / CALLS:g} calls, budget {budget}")
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
