"""Distributed locks. Any thread; the threads of a PE exclude each other."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

import numpy as np

from ._checks import require_active
from ._contexts import CTX_DEFAULT
from ._library import foreign
from ._memory import Array, element, free, lock_holders, zeros

_set = foreign("shmem_set_lock", "v:p")
_clear = foreign("shmem_clear_lock", "v:p")
_test = foreign("shmem_test_lock", "i:p")


def _place(where: str, lock: Any) -> int:
    require_active(where)
    array, address = element(where, "lock", lock.array if isinstance(lock, Lock) else lock)
    if array.dtype != np.int64:
        raise TypeError(f"heddle.{where}: lock has dtype {array.dtype}: int64 would be right, as of zeros(1, 'i8')")
    return address


def set_lock(lock: Array | Lock) -> None:
    """Takes lock, a symmetric int64 that was 0 on all PEs before its first use, or a Lock; waits until it is this PE's
    turn. RuntimeError when this thread has it. Any thread. OpenSHMEM 1.6, section 9.13.1."""
    address = _place("set_lock", lock)
    if lock_holders.get(address) == threading.get_ident():
        raise RuntimeError("heddle.set_lock: this thread has the lock; it would wait for itself")
    _set(address)
    lock_holders[address] = threading.get_ident()


def clear_lock(lock: Array | Lock) -> None:
    """Completes the operations on the default context, then gives lock to the next PE that waits. RuntimeError when
    this PE does not have it. Any thread. OpenSHMEM 1.6, section 9.13.1."""
    address = _place("clear_lock", lock)
    if lock_holders.pop(address, None) is None:
        raise RuntimeError("heddle.clear_lock: this PE does not have the lock; set_lock comes first")
    taken = CTX_DEFAULT._pending.take()
    _clear(address)
    taken.clear()


def test_lock(lock: Array | Lock) -> bool:
    """Takes lock when it is free: True when it did, False when another PE or thread has it. (C returns 0 and 1.) Never
    waits. Any thread. OpenSHMEM 1.6, section 9.13.1."""
    address = _place("test_lock", lock)
    if _test(address):
        return False
    lock_holders[address] = threading.get_ident()
    return True


class Lock:
    """A lock of all PEs: `with lock:` takes and gives it. Made and freed by all PEs (collective), as an array.
    OpenSHMEM 1.6, section 9.13."""

    def __init__(self) -> None:
        self.array = zeros(1, np.int64)

    def __enter__(self) -> Lock:
        set_lock(self.array)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        clear_lock(self.array)

    def free(self) -> None:
        """Frees the memory of the lock. RuntimeError on the PE that has it. Collective."""
        free(self.array)
