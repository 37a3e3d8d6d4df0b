"""Processes that tests look at."""

import pathlib


def alive(pid):
    """False for a process that is gone or waits only to be reaped."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
