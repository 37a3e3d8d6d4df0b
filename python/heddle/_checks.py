"""What every function checks first: that the library runs, numbers of PEs, counts, values. A message says which
function and argument, what it was, and what would be right. Any thread."""

from __future__ import annotations

import operator
import threading
from typing import Any, SupportsIndex

from ._library import foreign

_query = foreign("shmem_query_initialized", "v:p")
_my_pe = foreign("shmem_my_pe", "i:")
_n_pes = foreign("shmem_n_pes", "i:")


class State:
    """Whether the library runs, and this PE's place. active: Python has started it. Otherwise code beside Python may
    have started or ended it since the last call: ask() asks. life: how many times it has started, which all that is
    made keeps: what is of an earlier life, or has 0, is no more."""

    def __init__(self) -> None:
        self.active = self._seen = False
        self.life = self.inits = 0
        self.my_pe = self.n_pes = -1
        self.ends_with_life: list[Any] = []  # containers, which are emptied then
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Behind a start by Python."""
        self._see(True)
        self.inits += 1
        self.active = True

    def end(self) -> None:
        """Behind an end by Python."""
        self.inits = max(self.inits - 1, 0)
        self.active = self.inits > 0
        self.ask()

    def ask(self) -> bool:
        """Whether the library runs."""
        if not self.active:
            self._see(is_initialized())
        return self._seen

    def _see(self, runs: bool) -> None:
        with self._lock:
            if runs and not self._seen:
                self.life += 1
                self.my_pe, self.n_pes = _my_pe(), _n_pes()
            elif self._seen and not runs:
                for container in self.ends_with_life:
                    container.clear()
            self._seen = runs


state = State()


def require_active(where: str) -> None:
    """Raises RuntimeError before init and after finalize."""
    if state.active or state.ask():
        return
    if state.life:
        raise RuntimeError(f"heddle.{where}: the library is finalized; heddle.finalize() comes last")
    raise RuntimeError(f"heddle.{where}: call heddle.init() first")


def is_initialized() -> bool:
    import ctypes
    value = ctypes.c_int()
    _query(ctypes.addressof(value))
    return bool(value.value)


def gone(where: str, name: str, life: int, how: str) -> ValueError:
    """The error for what has ended: `how`, or with its life."""
    return ValueError(f"heddle.{where}: {name} {'is from before heddle.finalize(), which ended it' if life else how}")


def integer(where: str, name: str, value: SupportsIndex, least: int | None = None, most: int | None = None) -> int:
    """value as an int between least and most."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"heddle.{where}: {name} is {described(value)}: an integer would be right") from None
    if (least is not None and number < least) or (most is not None and number > most):
        bounds = f"{least} or more" if most is None else f"{least} to {most}"
        raise ValueError(f"heddle.{where}: {name} is {number}: {bounds} would be right")
    return number


def pe_number(where: str, name: str, pe: SupportsIndex, n_pes: int, of: str = "the world") -> int:
    """pe as the number of one of n_pes PEs."""
    number = pe if type(pe) is int else integer(where, name, pe)
    if not 0 <= number < n_pes:
        raise ValueError(f"heddle.{where}: {name} is {number}: {of} has PEs 0 to {n_pes - 1}")
    return number


def choice(where: str, name: str, value: SupportsIndex, valid: dict[int, str]) -> int:
    """value as one of the constants in valid."""
    number = integer(where, name, value)
    if number not in valid:
        raise ValueError(f"heddle.{where}: {name} is {number}: {', '.join(valid.values())} would be right")
    return number


def described(value: Any) -> str:
    """value for a message: what it is, shortly."""
    kind = type(value).__name__
    if value is None:
        return "None"
    if type(value) is int and value.bit_length() > 128:
        return f"an int of {value.bit_length()} bits"
    text = repr(value)
    if kind in ("int", "float", "str") and len(text) <= 40:
        return text
    article = "an" if kind[0] in "aeiou" else "a"
    return f"{article} {kind}"
