#!/usr/bin/env python3
"""Counts what a fence and a quiet take where nothing is outstanding on a network, with callgrind, and compares it with
the budgets of [remote_order] in budgets.toml: after one stream, and after the streams of many threads and contexts.

    remote_order.py BUILD SOURCE

BUILD is a build tree with bin/oshcc; SOURCE is remote_order.c. Exit 0: within budget; 1: not; 77: a tool or the
network's plugin is missing.
"""

from __future__ import annotations

import sys
from pathlib import Path

from measure import beyond, instructions
from remote_put import budgets_of, report_over_network


def main() -> int:
    build, source = map(Path, sys.argv[1:])
    counted, _ = instructions(report_over_network(build, source))
    wrong = beyond(counted, budgets_of(source))
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
