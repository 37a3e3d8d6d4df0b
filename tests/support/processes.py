"""Processes that tests look at."""

import pathlib


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
