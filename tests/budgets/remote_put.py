#!/usr/bin/env python3
"""Counts what a put of a word to another node takes, with callgrind, and compares it with the budgets in budgets.toml,
in the table of the program's name. Counted are the instructions of the program's loop and of the exported functions
that it calls: what these leave to others (a full message, a first one) is the network's, and rare. That it is rare is
checked.

    remote_put.py BUILD SOURCE

BUILD is a build tree with bin/oshcc; SOURCE is remote_put.c or remote_contexts.c. Exit 0: within budget; 1: not; 77: a
tool or the network's plugin is missing.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from measure import beyond, callgrind_report, compile_operations

NETWORK = {"HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp"}


# Beside the program's own loop: what it calls for nearly every operation.
SLOW = {"p": ["heddle_slow_p"], "put_nbi": ["heddle_slow_put_nbi"], "put_nbe": ["heddle_slow_put_nbe"],
        "sized_putmem_nbi": ["heddle_slow_put_nbi"], "sized_put_nbi": ["heddle_slow_put_nbi"],
        "int_put_nbi": ["heddle_slow_put_nbi"],
        "captured_put_nbi": ["heddle_slow_put_nbi"], "add": ["heddle_slow_amo"], "add_nbe": ["heddle_slow_amo_nbe"]}


def own_instructions(report: str, operations: int) -> tuple[dict[str, float], dict[str, float]]:
    """For each kind of put its instructions per operation, the loop's own included, and which part of the operations
    goes on to the general path."""
    own: dict[str, int] = {}
    general: dict[str, int] = {}
    function = callee = ""
    is_call = False
    for line in report.splitlines():
        if line.startswith("fn="):
            function = re.sub(r"(\.cold)?('\d+)?$", "", line[3:])  # gcc's cold parts, callgrind's recursions
        elif line.startswith("cfn="):
            callee = line[4:]
        elif line.startswith("calls="):
            if "heddle::operations::" in callee:
                general[function] = general.get(function, 0) + int(line[6:].split()[0])
            is_call = True  # the next line is what the callee cost
        elif re.match(r"[\d+*-]", line):
            if not is_call:
                own[function] = own.get(function, 0) + int(line.split()[1])
            is_call = False
    return ({kind: sum(own.get(name, 0) for name in (f"run_{kind}", *slow)) / operations
             for kind, slow in SLOW.items() if f"run_{kind}" in own},
            {kind: sum(general.get(name, 0) for name in slow) / operations for kind, slow in SLOW.items()})


def report_over_network(build: Path, source: Path) -> str:
    """Callgrind's report of PE 0 of two that are a node each; ends with 77 where a tool is missing."""
    if not shutil.which("valgrind") or not (build / "lib/libheddle_ucx.so").exists():
        print("skipped: there is no valgrind, or no plugin for a network")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / source.stem
        compile_operations(build, source, "gcc", program)
        return callgrind_report(build, program, 2, Path(name), NETWORK)


def budgets_of(source: Path) -> dict[str, float]:
    return tomllib.loads((Path(__file__).parent / "budgets.toml").read_text())[source.stem]


def main() -> int:
    build, source = map(Path, sys.argv[1:])
    operations = int(re.findall(r"kOperations = (\d+)", source.read_text())[0])
    counted, general = own_instructions(report_over_network(build, source), operations)
    budgets = budgets_of(source)
    wrong = beyond(counted, budgets)
    wrong += [f"{name}: {general[name]:.0%} of the calls take the general path: right would be below 1 %"
              for name in budgets if general.get(name, 1) >= 0.01]
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
