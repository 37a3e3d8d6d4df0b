"""One job of a program with or without chaos: runs it, and says what is wrong with it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from catalogue import Program

TIMEOUT_S = 300  # of a job: none takes so long on the busiest machine
STATUS_SKIPPED = 77  # the machine lacks what the program needs
IS_SKIPPED = "skipped"


@dataclass(frozen=True)
class Outcome:
    """Of one job: a line of the file of results. `seconds` is the wall time of oshrun, `cpu_seconds` the time that all
    its processes ran; `failure` is empty for a good one. Without chaos the seed chooses the shape alone."""

    key: str
    seed: int
    chaos: bool
    pes: int
    seconds: float
    cpu_seconds: float
    failure: str
    command: str


def command_of(build: Path, program: Program, seed: int, chaos: bool,
               timeout_s: int) -> tuple[list[str], dict[str, str]]:
    """The words that start the job, and the variables that it needs beside those that are there."""
    shape = program.shape(seed)
    option = [f"--chaos={seed}"] if chaos else []
    words = [str(build / "bin/oshrun"), *option, "--timeout", str(timeout_s), "-n", str(shape.pes), *shape.words]
    environment = dict(shape.environment)
    if program.kind == "conformance":
        environment["HEDDLE_TEST_SEED"] = str(seed)  # of the data that the program draws
    return words, environment


def what_is_wrong(program: Program, pes: int, status: int, out: str, err: str) -> str:
    """Nothing for a good job. The verdict of a mini-app and of an old program is in what it prints."""
    if status == STATUS_SKIPPED:
        return IS_SKIPPED
    if status != 0:
        last = [line for line in err.splitlines() if line.strip() and "this job again" not in line]
        return f"status {status}: " + " | ".join(last[:6])[:600]
    lines = out.splitlines()
    if program.kind == "apps":
        events = [json.loads(line) for line in lines if line.startswith("{")]
        verdicts = [event for event in events if event["event"] == "verdict"]
        bad = [event["form"] for event in verdicts if event["verdict"] != "pass"]
        if bad:
            return f"verdict of {', '.join(bad)}"
        return "" if verdicts and events[-1]["event"] == "done" else "no verdict"
    if program.kind == "old_programs":
        passed = sum(line.endswith(" passed") for line in lines)
        return "" if passed == pes else f"{passed} of {pes} PEs passed: {out[-300:]}"
    return ""


def run(build: Path, program: Program, seed: int, chaos: bool, timeout_s: int = TIMEOUT_S) -> Outcome:
    """One job, to its end. oshrun ends it after the timeout."""
    words, environment = command_of(build, program, seed, chaos, timeout_s)
    clean = {key: value for key, value in os.environ.items() if key not in ("HEDDLE_CHAOS", "HEDDLE_TEST_SEED")}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env={**clean, **environment})
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        texts = [file.read().decode(errors="replace") for file in (out, err)]
    variables = [f"{key}={shlex.quote(value)}" for key, value in environment.items()]
    pes = program.shape(seed).pes
    return Outcome(program.key, seed, chaos, pes, round(seconds, 4), round(used.ru_utime + used.ru_stime, 4),
                   what_is_wrong(program, pes, process.returncode, *texts), " ".join([*variables, shlex.join(words)]))


def to_line(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome))


def from_line(line: str) -> Outcome:
    return Outcome(**json.loads(line))
