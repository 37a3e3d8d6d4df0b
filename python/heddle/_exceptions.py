"""Exceptions that nobody catches: they end the job. Python ends the process for one in the main thread, and the
launcher ends the others then. For other threads the hooks of this file do it. Any thread."""

from __future__ import annotations

import sys
import threading
from types import TracebackType

from ._checks import state
from ._library import foreign

_global_exit = foreign("shmem_global_exit", "v:i")


def end_the_job() -> None:
    """With exit status 1, if the library runs."""
    if state.ask():
        sys.stdout.flush()
        sys.stderr.flush()
        _global_exit(1)


class Hooks:
    """threading.excepthook and sys.excepthook, behind those that were there."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Sets the hooks, the first time."""
        if not self._set:
            self._set = True
            self._thread, threading.excepthook = threading.excepthook, self.thread_ends
            self._main, sys.excepthook = sys.excepthook, self.main_ends

    def thread_ends(self, args: threading.ExceptHookArgs) -> None:
        self._thread(args)
        if args.exc_type is not SystemExit:
            end_the_job()

    def main_ends(self, kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        """Python would first wait for the other threads, which may wait for this PE."""
        self._main(kind, value, trace)
        others = [one for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]
        if others and not hasattr(sys, "ps1"):
            end_the_job()


hooks = Hooks()
