#!/usr/bin/env python3
"""Counts what a fence and a quiet take where nothing is outstanding on a network, with callgrind, and compares it with
the budgets of [remote_order] in budgets.toml: after one stream, and after the streams of many threads and contexts.

    remote_order.py BUILD SOURCE

BUILD is a build tree with bin/oshcc; SOURCE is remote_order.c. Exit 0: within budget; 1: not; 77: a tool or the
network's plugin is missing.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from measure import beyond, callgrind_report, compile_operations, instructions
from remote_put import NETWORK


def main() -> int:
    build, source = map(Path, sys.argv[1:])
    if not shutil.which("valgrind") or not (build / "lib/libheddle_ucx.so").exists():
        print("skipped: there is no valgrind, or no plugin for a network")
        return 77
    budgets = tomllib.loads((Path(__file__).parent / "budgets.toml").read_text())["remote_order"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "remote_order"
        compile_operations(build, source, "gcc", program)
        counted, _ = instructions(callgrind_report(build, program, 2, folder, NETWORK))
    wrong = beyond(counted, budgets)
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
