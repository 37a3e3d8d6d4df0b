"""The buffers of operations that are under way. Python would free a temporary array as soon as a call returns, while
the library still reads or writes it. A buffer is added behind the call that posts its operation, and let go by whoever
has taken the list before a quiet or wait that covers the operation. Any thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from ._checks import state


class Buffers:
    """What a context or a request has under way: each buffer, and the PE that its operation is for."""

    def __init__(self) -> None:
        self._held: list[tuple[int, Any]] = []

    def add(self, buffer: Any, pe: int) -> None:
        self._held.append((pe, buffer))

    def take(self) -> list[Any]:
        """The buffers until now. The caller lets them go when the operations are complete."""
        taken, self._held = self._held, []
        return taken

    def take_of(self, pes: Iterable[int]) -> list[Any]:
        """take, of the operations for some PEs."""
        taken, chosen = self.take(), set(pes)
        self.put_back([one for one in taken if one[0] not in chosen])
        return [one for one in taken if one[0] in chosen]

    def put_back(self, taken: list[Any]) -> None:
        self._held = taken + self._held

    def drop(self) -> None:
        self._held = []

    def __len__(self) -> int:
        return len(self._held)


class _Posting(threading.local):
    """The request that the thread's nbi operations join (request_begin), its buffers, or None, and its life."""

    request: Any = None  # the library has its address until the end
    joined: Buffers | None = None
    life = 0

    def keep(self, own: Buffers, buffer: Any, pe: int) -> None:
        """Adds the buffer of an nbi operation to its request, or to own, those of its context."""
        joined = self.joined
        (own if joined is None or self.life != state.life else joined).add(buffer, pe)


posting = _Posting()
# What nobody will wait for any more: the library may use it until finalize. Collectors add to it, in any thread.
abandoned: list[Any] = []
state.ends_with_life.append(abandoned)
