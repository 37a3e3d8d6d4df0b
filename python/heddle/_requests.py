"""Requests, one handle for a group of operations: an extension of Heddle. One thread at a time
posts to a private request, and another may wait for it; any number of threads use a shared one."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from ._checks import described, gone, require_active, state
from ._library import foreign
from ._pending import Buffers, abandoned, posting
from .generated.constants import REQUEST_SHARED

_allocate = foreign("shmemx_request_allocate", "i:pl")
_free = foreign("shmemx_request_free", "v:p")
_begin = foreign("shmemx_request_begin", "v:p")
_end = foreign("shmemx_request_end", "v:p")
_merge = foreign("shmemx_request_merge", "v:pzp")
_wait = foreign("shmemx_request_wait", "v:p")
_wait_local = foreign("shmemx_request_wait_local", "v:p")
_test = foreign("shmemx_request_test", "i:p")
_wait_any = foreign("shmemx_request_wait_any", "z:zp")
_wait_some = foreign("shmemx_request_wait_some", "z:zpp")
_test_any = foreign("shmemx_request_test_any", "z:zp")
_fence = foreign("shmemx_request_fence", "v:p")
_SIZE_MAX = 2**64 - 1


class Request:
    """A request: the operations named *_nbe join it, and so do the nbi operations of the thread within `with request:`.
    shared: any number of threads post, test and wait at the same time. Local. docs/user/requests.md."""

    def __init__(self, shared: bool = False) -> None:
        require_active("request_allocate")
        self._handle, self._pending = ctypes.c_void_p(), Buffers()
        self._place = ctypes.addressof(self._handle)
        self._shared, self._life = bool(shared), state.life
        self._thread = 0  # that nbi operations are joined in
        if shared and _allocate(self._place, REQUEST_SHARED):
            raise MemoryError("heddle.request_allocate: the library has no memory for a request")

    def __repr__(self) -> str:
        kind = "shared" if self._shared else "private"
        return f"<heddle.Request, {kind}{'' if self._life == state.life else ', freed'}>"

    def __del__(self) -> None:
        if getattr(self, "_life", 0) == state.life and self._handle.value:
            abandoned.append((self._handle, self._pending))

    def __enter__(self) -> Request:
        self.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.end()

    def place_for(self, where: str) -> int:
        """The address of the C handle, for the function `where`; ValueError when the request was freed."""
        if not state.active:
            require_active(where)
        if self._life != state.life:
            raise gone(where, "req", self._life, "was freed")
        return self._place

    def hold(self, buffer: Any, pe: int) -> None:
        """Keeps a buffer of an operation that was posted, until the request is complete."""
        self._pending.add(buffer, pe)

    def begin(self) -> None:
        """The nbi operations of this thread join the request from here to end(). May not be nested."""
        place = self.place_for("request_begin")
        if posting.joined is not None and posting.life == state.life:
            raise RuntimeError("heddle.request_begin: this thread has begun a request and not ended it; blocks of "
                               "requests may not be nested")
        _begin(place)
        posting.request, posting.joined, posting.life = self, self._pending, state.life
        self._thread = threading.get_ident()

    def end(self) -> None:
        """Ends what begin() began, in the same thread."""
        place = self.place_for("request_end")
        if posting.joined is not self._pending:
            raise RuntimeError("heddle.request_end: this thread has not begun this request")
        _end(place)
        posting.request, posting.joined, self._thread = None, None, 0

    def merge(self, requests: Sequence[Request]) -> None:
        """Merges requests into this one: it is complete when they are, and each is then without operations. They are
        private ones, for a shared request ends with free alone."""
        place, others = self.place_for("request_merge"), _handles("request_merge", requests)
        if any(other is self for other in requests):
            raise ValueError("heddle.request_merge: requests has the request itself")
        if any(other._shared for other in requests):
            raise ValueError("heddle.request_merge: requests has a shared request, which other threads may use: "
                             "private ones would be right")
        _merge(place, len(requests), others)
        for request, handle in zip(requests, others):
            request._handle.value = handle
            self._pending.put_back(request._pending.take())

    def wait(self) -> None:
        """Waits until the operations posted before the call are complete at their targets."""
        place, taken = self.place_for("request_wait"), self._pending.take()
        _wait(place)
        taken.clear()

    def wait_local(self) -> None:
        """Waits until the sources of the operations may be reused. The request stays."""
        _wait_local(self.place_for("request_wait_local"))

    def test(self) -> bool:
        """True when the operations are complete; otherwise False, after a little progress. Never blocks."""
        place, taken = self.place_for("request_test"), self._pending.take()
        if _test(place):
            taken.clear()
            return True
        self._pending.put_back(taken)
        return False

    def fence(self) -> None:
        """Operations posted after the fence are delivered to each PE after those posted before it."""
        _fence(self.place_for("request_fence"))

    def free(self) -> None:
        """Waits for the operations and frees the request. RuntimeError between begin() and end()."""
        place = self.place_for("request_free")
        if self._thread and any(one.ident == self._thread for one in threading.enumerate()):
            raise RuntimeError("heddle.request_free: a thread has begun the request and not ended it; end() comes "
                               "first")
        self._life = 0
        _free(place)
        self._pending.drop()


def request_for(where: str, req: Request) -> int:
    """The address of req's handle."""
    if not isinstance(req, Request):
        raise TypeError(f"heddle.{where}: req is {described(req)}: a heddle.Request would be right")
    return req.place_for(where)


def shared_request_for(where: str, req: Request) -> int:
    """The same of one that several threads post to."""
    place = request_for(where, req)
    if not req._shared:
        raise ValueError(f"heddle.{where}: req is private: a shared request, to which several threads may post, would "
                         "be right")
    return place


def _handles(where: str, requests: Sequence[Request]) -> ctypes.Array[ctypes.c_void_p]:
    if not isinstance(requests, Sequence):
        raise TypeError(f"heddle.{where}: requests is {described(requests)}: a sequence of requests would be right")
    for request in requests:
        request_for(where, request)
    if len({id(request) for request in requests}) < len(requests):
        raise ValueError(f"heddle.{where}: requests has one request more than once: each once would be right")
    return (ctypes.c_void_p * max(len(requests), 1))(*(request._handle.value for request in requests))


def _settle(requests: Sequence[Request], handles: ctypes.Array[ctypes.c_void_p], taken: list[list[Any]],
            complete: set[int]) -> None:
    """What a call has done to the handles becomes that of the requests."""
    for place, request in enumerate(requests):
        if place in complete:
            taken[place].clear()
            if not request._shared:
                request._handle.value = handles[place]
        else:
            request._pending.put_back(taken[place])


def _one_of(where: str, call: Any, requests: Sequence[Request]) -> int | None:
    require_active(where)
    handles = _handles(where, requests)
    taken = [request._pending.take() for request in requests]
    found = int(call(len(requests), handles))
    _settle(requests, handles, taken, set() if found == _SIZE_MAX else {found})
    return None if found == _SIZE_MAX else found


def request_wait_any(requests: Sequence[Request]) -> int | None:
    """Waits for one of the requests and returns its index; None when none has operations. Any thread."""
    return _one_of("request_wait_any", _wait_any, requests)


def request_test_any(requests: Sequence[Request]) -> int | None:
    """request_wait_any without waiting: None also when none is complete, after a little progress. Any thread."""
    return _one_of("request_test_any", _test_any, requests)


def request_wait_some(requests: Sequence[Request]) -> npt.NDArray[np.intp]:
    """Waits until at least one request is complete and returns the indices of all that are. Any thread."""
    require_active("request_wait_some")
    handles = _handles("request_wait_some", requests)
    taken = [request._pending.take() for request in requests]
    indices = np.empty(max(len(requests), 1), np.uintp)
    count = int(_wait_some(len(requests), handles, indices.ctypes.data))
    found = indices[:count].astype(np.intp)
    _settle(requests, handles, taken, set(found.tolist()))
    return found


def request_allocate(options: int = 0) -> Request:
    """A new request: Request(options == REQUEST_SHARED). Local; any thread."""
    if options not in (0, REQUEST_SHARED):
        raise ValueError(f"heddle.request_allocate: options is {described(options)}: REQUEST_PRIVATE or REQUEST_SHARED "
                         "would be right")
    return Request(options == REQUEST_SHARED)


def checked(where: str, req: Request) -> Request:
    """req, which must be a request that was not freed."""
    request_for(where, req)
    return req


def request_free(req: Request) -> None:
    """Request.free."""
    checked("request_free", req).free()


def request_begin(req: Request) -> None:
    """Request.begin."""
    checked("request_begin", req).begin()


def request_end(req: Request) -> None:
    """Request.end."""
    checked("request_end", req).end()


def request_merge(req: Request, requests: Sequence[Request]) -> None:
    """Request.merge."""
    checked("request_merge", req).merge(requests)


def request_wait(req: Request) -> None:
    """Request.wait."""
    checked("request_wait", req).wait()


def request_wait_local(req: Request) -> None:
    """Request.wait_local."""
    checked("request_wait_local", req).wait_local()


def request_test(req: Request) -> bool:
    """Request.test."""
    return checked("request_test", req).test()


def request_fence(req: Request) -> None:
    """Request.fence."""
    checked("request_fence", req).fence()
