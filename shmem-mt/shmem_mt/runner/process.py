"""Runs one compiled program under its launcher: reads its JSON lines as they come, within a time limit.

The launcher runs under a supervisor (supervisor.py), so that nothing of it is left, however it and this process end.
Success is the program's last line ("done"), not the exit status: Open MPI's launcher reports a crash in shmem_finalize
after everything has been measured. Other launchers' exit status counts. Behind that line comes at most what finalize
itself took.
"""

import json
import queue
import subprocess
import threading
import time
from dataclasses import dataclass, field

from shmem_mt import supervisor

EXIT_GRACE_S = 15  # from the program's last line to the launcher's end
REST_S = 1  # for what the program has printed behind it


@dataclass
class Outcome:
    ok: bool = False
    problem: str = ""
    seconds: float = 0.0
    start: dict = field(default_factory=dict)
    skips: list = field(default_factory=list)
    verdicts: list = field(default_factory=list)  # of a mini-app's forms: what its check found, such as a residual
    tuned: list = field(default_factory=list)  # what a mini-app chose ahead of its samples
    points: int = 0
    left_by_itself: bool = False  # the launcher ended, and was not ended

    def of_forms(self):
        """{"verdicts": ..., "tuned": ...} as a job notes them; without those that there are none of."""
        said = {"verdicts": self.verdicts, "tuned": self.tuned}
        return {name: [_without_kind(event) for event in events] for name, events in said.items() if events}


def run_program(command, log_path, timeout_s, on_point, exit_status_counts, environment=None):
    """Runs `command`; calls on_point(point) for each point. KeyboardInterrupt ends the program and passes on.
    `environment`: None: that of this process."""
    outcome = Outcome()
    began = time.monotonic()
    with open(log_path, "w", encoding="utf-8") as log:
        log.write(" ".join(command) + "\n")
        log.flush()
        try:
            process = subprocess.Popen(
                supervisor.command(command),
                stdout=subprocess.PIPE,
                stderr=log,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            outcome.problem = f"cannot start: {error.strerror}"
            return outcome
        try:
            lines = _lines(process)
            done = _read_lines(lines, log, outcome, began + timeout_s, on_point)
            if done:
                outcome.left_by_itself = _wait(process, EXIT_GRACE_S)
                _read_lines(lines, log, outcome, time.monotonic() + REST_S, on_point)
        finally:
            supervisor.end(process)
    outcome.seconds = time.monotonic() - began
    _judge(outcome, done, process.returncode, exit_status_counts, timeout_s)
    return outcome


def last_lines(path, count=5):
    """The last lines of a program's log, for a person to read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip() for line in file.readlines()[1:] if line.strip(" -\n")]
    except OSError:
        return []
    return lines[-count:]


def _judge(outcome, done, status, exit_status_counts, timeout_s):
    if done is None:
        outcome.problem = f"took longer than {timeout_s} s and was ended"
    elif not done:
        outcome.problem = f"ended early with {_status_text(status)}"
    elif exit_status_counts and status != 0:
        outcome.problem = f"measured everything, then ended with {_status_text(status)}"
    else:
        outcome.ok = True


def _status_text(status):
    if status is not None and status < 0:
        return f"signal {-status}"
    return f"exit status {status}"


def _lines(process):
    """What the program prints, as a queue; None at its end."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def pump():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=pump, daemon=True).start()
    return lines


def _read_lines(lines, log, outcome, deadline, on_point):
    """True: the program said that it is done; False: its output ended before; None: out of time."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        try:
            line = lines.get(timeout=min(left, 0.5))
        except queue.Empty:
            continue
        if line is None:
            return False
        event = _parse(line)
        kind = event and event["event"]
        if kind == "point":
            outcome.points += 1
            on_point(event)
        elif kind == "start":
            outcome.start = event
        elif kind == "skip":
            outcome.skips.append(event)
        elif kind == "verdict":
            outcome.verdicts.append(event)
        elif kind == "tuned":
            outcome.tuned.append(event)
        elif kind == "done":
            return True
        else:
            log.write("stdout: " + line)


def _without_kind(event):
    return {name: value for name, value in event.items() if name != "event"}


def _parse(line):
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "event" in value else None


def _wait(process, seconds):
    try:
        process.wait(timeout=seconds)
        return True
    except subprocess.TimeoutExpired:
        return False
