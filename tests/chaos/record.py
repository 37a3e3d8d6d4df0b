#!/usr/bin/env python3
"""Runs correct programs under chaos (HEDDLE_CHAOS), which none of them may notice, and keeps a record.

    record.py BUILD --seeds N [--first SEED] [--kind KIND]... [--only REGEX] [--jobs N] [--limit SECONDS]
    record.py BUILD --sample                   a few programs, two seeds that are drawn: for `make test`
    record.py BUILD --keep COMMIT              adds the results that are there to PARTS, as a part of that commit
    record.py BUILD --write PAGE               the page with the table, of PARTS

Results are lines of BUILD/chaos/results.jsonl. Jobs that are there are not run again, so that they can be stopped and
go on; another build of the library begins a new file. Every seed runs all programs before the next one begins.
PARTS is record.jsonl beside this file: what earlier builds have shown stays, and a later build runs other seeds.
Exit status 1: a job has failed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import jobs
import parts
from catalogue import KINDS, Program, programs
from page import page

SAMPLE = re.compile(r"conformance (rma|signals|waits|ordering|requests|schedules|sequences|order_of_contexts) node|"
                    r"conformance (rma|signals|stress) nodes|old_programs .*")
SAMPLE_SEEDS = 2
PARTS = Path(__file__).resolve().parent / "record.jsonl"


class Results:
    """The outcomes of one build of the library, in a file or only in memory (path None)."""

    def __init__(self, path: Path | None, digest: str):
        self._path, self._lock = path, threading.Lock()
        self.outcomes: list[jobs.Outcome] = []
        head = json.dumps({"library": digest})
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        if lines[:1] == [head]:
            self.outcomes = [jobs.from_line(line) for line in lines[1:] if line.endswith("}")]  # the last may be cut
        path.write_text("\n".join([head, *map(jobs.to_line, self.outcomes)]) + "\n")

    def add(self, outcome: jobs.Outcome) -> None:
        with self._lock:
            self.outcomes.append(outcome)
            if self._path:
                with self._path.open("a") as file:
                    file.write(jobs.to_line(outcome) + "\n")

    def known(self) -> set[tuple[str, int, bool]]:
        return {(outcome.key, outcome.seed, outcome.chaos) for outcome in self.outcomes}


def digest_of(build: Path) -> str:
    return hashlib.sha256((build / "lib/libheddle.so").read_bytes()).hexdigest()[:16]


def plan(rows: list[Program], first: int, seeds: int) -> Iterator[tuple[Program, int, bool]]:
    """(program, seed, with chaos): seed by seed. The first seeds run without chaos, too, up to once for each shape."""
    for seed in range(first, first + seeds):
        for row in rows:
            if seed - first < max(3, len(row.shapes)):
                yield row, seed, False
            yield row, seed, True


def run_all(build: Path, planned: Iterable[tuple[Program, int, bool]], results: Results, workers: int,
            limit_s: float, timeout_s: int) -> int:
    """Runs what is planned and not known, `workers` jobs at once, until the limit. The number of failures."""
    lock, known, todo = threading.Lock(), results.known(), iter(planned)
    end, failures, skipped = time.monotonic() + limit_s, [], set()

    def next_job() -> tuple[Program, int, bool] | None:
        with lock:
            for row, seed, chaos in todo:
                if (row.key, seed, chaos) not in known and row.key not in skipped:
                    return (row, seed, chaos) if time.monotonic() < end else None
        return None

    def work() -> None:
        while job := next_job():
            outcome = jobs.run(build, *job, timeout_s)
            if outcome.failure == jobs.IS_SKIPPED:
                skipped.add(outcome.key)
                continue
            results.add(outcome)
            if outcome.failure:
                failures.append(outcome)
                print(f"FAILED {outcome.key}, seed {outcome.seed if outcome.chaos else 'none'}, {outcome.pes} PEs: "
                      f"{outcome.failure}\n    {outcome.command}", flush=True)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(failures)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--seeds", type=int, default=int(os.environ.get("CHAOS_SEEDS", "3")))
    parser.add_argument("--first", type=int, default=int(os.environ.get("CHAOS_FIRST", "1")))
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--only", default="", help="a regular expression on 'KIND NAME node' or 'KIND NAME nodes'")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds after which no job begins")
    parser.add_argument("--timeout", type=int, default=jobs.TIMEOUT_S, help="seconds for one job")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--keep", metavar="COMMIT")
    parser.add_argument("--write", type=Path)
    return parser.parse_args()


def main() -> int:
    given = arguments()
    build = given.build.resolve()
    results = Results(None if given.sample else build / "chaos/results.jsonl", digest_of(build))
    if given.keep or given.write:
        if given.keep:
            try:
                parts.add(PARTS, parts.parts_of(results.outcomes, given.keep))
            except ValueError as error:
                sys.exit(f"record.py: {error}")
        if given.write:
            given.write.write_text(page(parts.read(PARTS)))
        return 0
    kinds = ("conformance", "old_programs") if given.sample else tuple(given.kind or KINDS)
    wanted = SAMPLE if given.sample else re.compile(given.only)
    rows = [row for row in programs(build, kinds) if (wanted.fullmatch if given.sample else wanted.search)(row.key)]
    first, seeds = (random.randrange(1, 10**9), SAMPLE_SEEDS) if given.sample else (given.first, given.seeds)
    print(f"seeds {first} to {first + seeds - 1}, {len(rows)} programs", flush=True)
    failures = run_all(build, plan(rows, first, seeds), results, given.jobs, given.limit, given.timeout)
    print(f"{len(results.outcomes)} jobs, {failures} failures")
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
