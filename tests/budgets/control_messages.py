#!/usr/bin/env python3
"""Counts the control messages that collectives across nodes send as the nodes grow in number, and compares them with
the formulas of [control_messages] in scale.toml. The exact numbers on a few nodes are the subject of
tests/conformance/test_message_counts.py.

    control_messages.py BUILD [--nodes 8,16]

BUILD is a build tree with bin/oshrun and conformance_message_counts; each node has one PE. Exit 0: within the bounds;
1: not; 77: there is no network.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

BYTES = 64
TIMES = 4


def messages(build: Path, operation: str, nodes: int, times: int) -> int:
    """Those that have come to all PEs of a job."""
    program = build / "tests/conformance/conformance_message_counts"
    command = [build / "bin/oshrun", "-n", nodes, program, operation, BYTES, times]
    settings = {"HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp", "HEDDLE_STATS": "1",
                "SHMEM_SYMMETRIC_SIZE": "4M", "HEDDLE_NET_HEARTBEAT_TIMEOUT_S": "60"}
    result = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            check=False, env={**os.environ, **settings})
    found = re.search(r"^ *control_messages_received +(\d+) ", result.stderr, re.M)
    if result.returncode != 0 or not found:
        sys.exit(f"{operation} on {nodes} nodes: status {result.returncode}\n{result.stderr[-3000:]}")
    return int(found[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda it: Path(it).resolve())
    parser.add_argument("--nodes", default="8,16")
    options = parser.parse_args()
    if not (options.build / "lib/libheddle_ucx.so").exists():
        print("skipped: there is no plugin for a network")
        return 77
    table = tomllib.loads((Path(__file__).parent / "scale.toml").read_text())["control_messages"]
    wrong = []
    for nodes in map(int, options.nodes.split(",")):
        names = {"N": nodes, "log": math.ceil(math.log2(nodes)), "log4": math.ceil(math.log2(nodes) / 2)}
        none = messages(options.build, "sync", nodes, 0)
        for operation, formula in table.items():
            each = (messages(options.build, operation, nodes, TIMES) - none) / TIMES
            most = eval(formula, {"__builtins__": {}}, names)  # pylint: disable=eval-used
            line = f"{operation} on {nodes} nodes: {each:g} messages (most {most})"
            print(line)
            if each > most:
                wrong.append(line)
    print("\n".join(["", "too many:", *wrong] if wrong else []))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
