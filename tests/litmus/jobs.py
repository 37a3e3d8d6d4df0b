"""Runs the litmus tests (litmus.h) and reads their outcomes. The build under test is the folder HEDDLE_BUILD.

A place is where the PEs are and how operations reach them: on the node, across nodes, or under chaos."""

import collections
import json
import os
import pathlib
import subprocess

BUILD = pathlib.Path(os.environ["HEDDLE_BUILD"]).resolve()
PROGRAMS = BUILD / "tests/litmus"
OSHRUN = BUILD / "bin/oshrun"
LIMIT_S = 600  # of a job that hangs
HAS_NETWORK = (BUILD / "lib/libheddle_ucx.so").exists()

ON_NODE = {}
ACROSS_NODES = {"HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp"}
TWO_PER_NODE = {**ACROSS_NODES, "HEDDLE_TEST_PES_PER_NODE": "2"}


def chaos(seed):
    return {"HEDDLE_CHAOS": str(seed)}


def described():
    """Test to its parts: program (a text for each role), outcomes (registers to kind), why."""
    said = subprocess.run([PROGRAMS / "litmus", "--describe"], capture_output=True, text=True, check=True).stdout
    return {part["test"]: part for part in map(json.loads, said.splitlines())}


class Job:
    """A job that has ended: its status, what it said, and how often it has seen each outcome of each test."""

    def __init__(self, pes, rounds, place, *names, program="litmus"):
        command = [OSHRUN, "-n", str(pes), PROGRAMS / program, str(rounds), *names]
        self.shown = f"{' '.join(f'{name}={value}' for name, value in place.items())} {' '.join(map(str, command))}"
        environment = {**os.environ, "SHMEM_SYMMETRIC_SIZE": "64M", **place}
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S,
                               check=False, env=environment)
        self.status, self.errors = ended.returncode, ended.stderr
        parts = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        self.seen = {part["test"]: collections.Counter(part["seen"]) for part in parts}

    def __repr__(self):
        return f"{self.shown}: status {self.status}\n{self.errors[-3000:]}"


def added(jobs):
    """How often the jobs together have seen each outcome of each test."""
    seen = collections.defaultdict(collections.Counter)
    for job in jobs:
        for test, outcomes in job.seen.items():
            seen[test] += outcomes
    return seen
