"""What runs under chaos: the conformance programs as ctest runs them, the examples, a sample of the old programs, and
the mini-apps, each on a node and between nodes. What is left out is named here, with the reason."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NODES = {"HEDDLE_TEST_PES_PER_NODE": "1", "HEDDLE_NET_TRANSPORTS": "tcp"}
KINDS = ("conformance", "examples", "old_programs", "apps")

# Chaos makes each call take the slow path, so that the way to call says nothing new.
WAYS = ("calls", "debug", "generic", "cxx11", "cxx20")

# Conformance programs that chaos would rightly fail, or that say nothing about it.
LEFT_OUT = {
    "idle": "asserts how little a PE costs that has nothing to do, for ten seconds",
    "no_locks": "asserts which locks and system calls the hot path makes",
    "node_memory": "asserts how much of the node's memory is committed",
    "monitored": "asserts how a machine waits that is emulated",
    "global_exit": "ends with a status of its own, which test_jobs.py looks at",
    "message_counts": "asserts how many messages there are",
    "heap_size": "asserts the size of the heap, and communicates nothing",
    "touch_heap": "asserts which pages the heap has, and communicates nothing",
    "beyond_cache": "takes 2 GiB and minutes, for instructions that only copies of that size use",
    "captured_far": "stands still outside of the library, and chaos waits for it where the program does not",
    "puts_beside_fences": "holds threads in their copies, which chaos makes under its lock",
    "short_threads": "takes a minute to start and end threads, and says of messages what schedules does",
}
# Settings of tests that mean something else under chaos, or take minutes for one seed. HEDDLE_TEST_ABSENT stands still
# outside of the library, where chaos, as any checked run, compares calls with those of the others. A run has one
# observer, chaos or the race detector.
LEFT_OUT_SETTINGS = ("LD_PRELOAD", "HEDDLE_TEST_CYCLES", "HEDDLE_TEST_COUNT", "HEDDLE_TEST_ABSENT",
                     "HEDDLE_TEST_NO_THREAD")
# Fewer steps, and rows, for a seed, and more seeds: each seed takes other rows, and other ways through a schedule.
ROWS = ("HEDDLE_TEST_ROWS", "8")
SHORTER = {
    **dict.fromkeys(("rma", "rma_nbe", "strided", "atomics", "atomics_nbe", "signals", "signals_nbe", "waits"), ROWS),
    **dict.fromkeys((f"{body}{way}" for body in ("data_movement", "reductions") for way in ("", "_mt", "_nbe")), ROWS),
    "ordering": ("HEDDLE_TEST_ROUNDS", "20"),
    "contention": ("HEDDLE_TEST_ROUNDS", "10"),
    "sequences": ("HEDDLE_TEST_OPERATIONS", "400"),
    "stress": ("HEDDLE_TEST_OPERATIONS", "2000"),
    "fence_schedules": ("HEDDLE_TEST_STEPS", "200"),
    "nonblocking_schedules": ("HEDDLE_TEST_STEPS", "600"),
    "schedules": ("HEDDLE_TEST_STEPS", "100"),
    "exchanges": ("HEDDLE_TEST_STEPS", "100"),
    "context_kinds": ("HEDDLE_TEST_CYCLES", "1000"),
}
REPLACED = ("HEDDLE_BUILD", "HEDDLE_CHECK")  # chaos checks every run
MOST_PES = 8


@dataclass(frozen=True)
class Shape:
    """One way to start a program: words behind oshrun's options, number of PEs, variables."""

    words: tuple[str, ...]
    pes: int
    environment: tuple[tuple[str, str], ...] = ()


@dataclass
class Program:
    """A row of the record. Its seeds are dealt to its shapes in turns."""

    kind: str
    name: str
    place: str  # node or nodes
    shapes: list[Shape] = field(default_factory=list)

    @property
    def key(self) -> str:
        return f"{self.kind} {self.name} {self.place}"

    def shape(self, seed: int) -> Shape:
        return self.shapes[seed % len(self.shapes)]


def tests_of(build: Path, label: str) -> list[tuple[list[str], dict[str, str], list[str]]]:
    """(command, environment, labels) of each test with that label. Raises CalledProcessError where ctest fails."""
    listed = subprocess.run(["ctest", "--test-dir", str(build), "-C", "all", "-L", f"^{label}$", "--show-only=json-v1"],
                            capture_output=True, text=True, check=True)
    found = []
    for test in json.loads(listed.stdout)["tests"]:
        properties = {each["name"]: each["value"] for each in test["properties"]}
        environment = dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []))
        found.append((test.get("command", []), environment, properties.get("LABELS", [])))
    return found


def split_jobs(build: Path, label: str, prefix: str) -> dict[tuple[str, str], list[Shape]]:
    """The tests that are jobs of one program: by the program's name and where it runs, its shapes."""
    found: dict[tuple[str, str], list[Shape]] = {}
    for command, environment, labels in tests_of(build, label):
        if len(command) < 4 or Path(command[0]).name != "oshrun" or command[1] != "-n" or "many" in labels:
            continue
        name = Path(command[3]).name
        if not name.startswith(prefix) or int(command[2]) > MOST_PES:
            continue
        if environment.get("HEDDLE_CHECK") == "1" or any(setting in environment for setting in LEFT_OUT_SETTINGS):
            continue
        place = "nodes" if "HEDDLE_TEST_PES_PER_NODE" in environment else "node"
        kept = {key: value for key, value in environment.items() if key not in REPLACED}
        setting, value = SHORTER.get(name.removeprefix(prefix).removesuffix("_inline"), ("", ""))
        if setting:
            kept[setting] = value
        shape = Shape(tuple(command[3:]), int(command[2]), tuple(sorted(kept.items())))
        found.setdefault((name.removeprefix(prefix), place), []).append(shape)
    return found


def conformance(build: Path) -> list[Program]:
    """Each program, in one way to call, with all its numbers of PEs and settings."""
    rows = []
    for (name, place), shapes in split_jobs(build, "conformance", "conformance_").items():
        stem, _, way = name.rpartition("_")
        if way in WAYS:
            continue
        stem = stem if way == "inline" else name
        if stem not in LEFT_OUT and not stem.startswith("static_data_"):
            rows.append(Program("conformance", stem, place, shapes))
    return rows


def examples(build: Path) -> list[Program]:
    rows = []
    for (name, place), shapes in split_jobs(build, "examples", "example_").items():
        rows.append(Program("examples", name, place, shapes))
        between = tuple(sorted({**dict(shapes[0].environment), **NODES}.items()))
        rows.append(Program("examples", name, "nodes", [Shape(shapes[0].words, pes, between) for pes in (2, 3)]))
    return rows


def old_programs(build: Path) -> list[Program]:
    """The sample that `make test` compiles together: one row for all of it, a shape for each program."""
    sys.path.insert(0, str(ROOT / "tests/old_programs"))
    import table

    step = int(re.search(r"set\(step (\d+)\)", (ROOT / "tests/old_programs/CMakeLists.txt").read_text())[1])
    rows = [Program("old_programs", "sample", "node"), Program("old_programs", "sample", "nodes")]
    for row in rows:
        between = NODES if row.place == "nodes" else {}
        for number, program in enumerate(table.programs()[::step]):
            binary = build / f"tests/old_programs/old_programs_{program.language.replace('+', 'p')}"
            environment = tuple(sorted({**between, "SMA_SYMMETRIC_SIZE": "16M"}.items()))
            row.shapes.append(Shape((str(binary), program.name), 2 + number % 3, environment))
    return rows


# Of the mini-apps' forms those that differ by more than who makes progress.
FORMS = {
    "cg": ("--form", "blocking,manual,auto,pipelined"),
    "minife": ("--form", "blocking,overlapped,manual,auto,pipelined"),
    "hpccg": ("--form", "blocking,overlapped,manual,auto,pipelined"),
    "halo": ("--form", "jacobi7,jacobi7-overlapped,jacobi27,async7,async27", "--contexts", "private", "--size", "8"),
}


def apps(build: Path) -> list[Program]:
    """The forms of each mini-app, with small problems. Compiles them where that is to be done."""
    from shmem_mt import sources
    from shmem_mt.catalogue import catalogue
    from shmem_mt.targets import build as compiling
    from shmem_mt.targets import openshmem

    library = openshmem.resolve([str(build / "bin/oshcc")], [str(build / "bin/oshrun")], ["chaos"])[0]
    names = sorted({row.program for row in catalogue.BENCHMARKS if sources.is_app(row.program)})
    failures = compiling.build(library, str(build / "chaos/apps"), names, lambda text: print(text, file=sys.stderr))
    if failures:
        raise RuntimeError(f"mini-apps do not compile: {failures}")
    rows = []
    for name in names:
        for place, between in (("node", {}), ("nodes", NODES)):
            quick = ("--samples", "1", "--sample-ms", "0.1", "--point-ms", "1", "--threads")
            shapes = [Shape((library.binaries[name], *quick, str(threads), *FORMS.get(name, ())), pes,
                            tuple(sorted(between.items()))) for pes, threads in ((2, 1), (3, 2), (4, 1))]
            rows.append(Program("apps", name, place, shapes))
    return rows


def programs(build: Path, kinds: tuple[str, ...] = KINDS) -> list[Program]:
    """All rows of these kinds, in the order of their names. Without UCX there are none between nodes."""
    made = {"conformance": conformance, "examples": examples, "old_programs": old_programs, "apps": apps}
    rows = [row for kind in kinds for row in sorted(made[kind](build), key=lambda row: row.key)]
    has_network = os.path.exists(build / "lib/libheddle_ucx.so")
    return [row for row in rows if has_network or row.place == "node"]
