"""Processes that tests look at."""

import os
import pathlib
import signal
import time


def stat(pid):
    """The state of a process as a letter, X for one that is gone, and the number of its parent."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)


def alive(pid):
    """False for a process that is gone or waits only to be reaped."""
    return stat(pid)[0] not in "ZX"


def await_end(pids, seconds=60):
    """False when one of these processes lives on for so long."""
    end = time.monotonic() + seconds
    while any(map(alive, pids)):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def stop(pid):
    """Stops a process. A thread runs on until the thread to which the kernel has given the signal takes it."""
    os.kill(pid, signal.SIGSTOP)

    def states():
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            yield (task / "stat").read_text().rpartition(")")[2].split()[0]
    while any(state != "T" for state in states()):
        time.sleep(0.001)
