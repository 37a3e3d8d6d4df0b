"""Communication contexts: objects whose methods are the operations of the library. Any thread; a PRIVATE context only
the thread that has created it."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _pending
from ._checks import described, gone, integer, pe_number, require_active, state
from ._library import address_of, foreign
from ._memory import list_of
from .generated.constants import CTX_NOSTORE, CTX_ORDERED, CTX_PRIVATE, CTX_RELAXED, CTX_SERIALIZED
from .generated.context_methods import ContextMethods

if TYPE_CHECKING:
    from ._teams import Team

_create = foreign("shmem_ctx_create", "i:lp")
_team_create = foreign("shmem_team_create_ctx", "i:plp")
_destroy = foreign("shmem_ctx_destroy", "v:p")
_session_start = foreign("shmem_ctx_session_start", "v:plpl")
_session_stop = foreign("shmem_ctx_session_stop", "v:p")
_fence = foreign("shmem_ctx_fence", "v:p")
_quiet = foreign("shmem_ctx_quiet", "v:p")
_pe_quiet = foreign("shmem_ctx_pe_quiet", "v:ppz")
_info = foreign("shmemx_ctx_info", "i:pp")
_quiet_local = foreign("shmemx_ctx_quiet_local", "v:p")
_quiet_test = foreign("shmemx_ctx_quiet_test", "i:p")

_OPTIONS = CTX_PRIVATE | CTX_SERIALIZED | CTX_NOSTORE | CTX_ORDERED | CTX_RELAXED
# Offset of default_ctx in struct heddle_abi_1.
_DEFAULT_OFFSET = 16


class _RawInfo(ctypes.Structure):
    _fields_ = [("options", ctypes.c_long), ("given", ctypes.c_long), ("stream_set", ctypes.c_int),
                ("lock", ctypes.c_int), ("rails", ctypes.c_int), ("channel", ctypes.c_int), ("bytes", ctypes.c_size_t),
                ("order", ctypes.c_int), ("channels", ctypes.c_int)]


@dataclass(frozen=True)
class CtxInfo:
    """What a context was asked to be and what it is; docs/user/threads.md explains the fields."""

    options: int
    given: int
    stream_set: int
    lock: int
    rails: int
    channel: int
    bytes: int
    order: int
    channels: int


class Context(ContextMethods):
    """A communication context (OpenSHMEM 1.6, section 9.5): Context(options), or one that heddle.ctx_create and
    Team.create_ctx return. Its methods are the functions of heddle with this context; PEs count in its team. As a
    context manager it is destroyed at the end, which completes its operations. One that the program loses without
    destroying it keeps its memory until finalize, and the buffers of its operations.

    options: 0, or an OR of CTX_PRIVATE, CTX_SERIALIZED, CTX_NOSTORE, and CTX_ORDERED or CTX_RELAXED. Local."""

    def __init__(self, options: SupportsIndex = 0, team: Team | None = None) -> None:
        require_active("ctx_create")
        asked = integer("ctx_create", "options", options)
        if asked & ~_OPTIONS or (asked & CTX_ORDERED and asked & CTX_RELAXED):
            raise ValueError(f"heddle.ctx_create: options is {asked:#x}: an OR of CTX_PRIVATE, CTX_SERIALIZED, "
                             "CTX_NOSTORE, and CTX_ORDERED or CTX_RELAXED would be right")
        handle = ctypes.c_void_p()
        if team is None:
            failed = _create(asked, ctypes.byref(handle))
        else:
            from ._teams import team_for
            failed = _team_create(team_for("ctx_create", team).handle_for("team_create_ctx"), asked,
                                  ctypes.byref(handle))
        if failed or not handle.value:
            raise MemoryError("heddle.ctx_create: the library has no memory for a context")
        self._become(handle.value, team.n_pes() if team else state.n_pes, team, asked)
        if team is not None:
            team.joins(self)

    def _become(self, handle: int, n_pes: int, team: Team | None, options: int) -> None:
        self._handle, self._n_pes, self._team, self._options = handle, n_pes, team, options
        self._life, self._pending = state.life, _pending.Buffers()
        self._owner = threading.get_ident() if options & CTX_PRIVATE else 0

    def __enter__(self) -> Context:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._lives() and state.ask():
            self.destroy()

    def __del__(self) -> None:
        if getattr(self, "_life", 0) and self._lives():
            self.abandon()

    def __repr__(self) -> str:
        if self is CTX_DEFAULT:
            return "heddle.CTX_DEFAULT"
        end = "" if self._lives() else ", destroyed"
        return f"<heddle.Context of {self._n_pes} PEs, options {self._options:#x}{end}>"

    def _lives(self) -> bool:
        return self._life == state.life or self is CTX_DEFAULT

    def handle_for(self, where: str) -> int:
        """The C handle, for the function `where`: RuntimeError before init, ValueError when it was destroyed."""
        if not state.active:
            require_active(where)
        if self._life != state.life and self is not CTX_DEFAULT:
            raise gone(where, "ctx", self._life, "was destroyed")
        if self._owner and self._owner != threading.get_ident():
            raise RuntimeError(f"heddle.{where}: ctx is a CTX_PRIVATE context of another thread: a context of this "
                               "thread would be right")
        return self._handle

    def pe_for(self, where: str, pe: SupportsIndex) -> int:
        """pe as the number of a PE of this context."""
        if type(pe) is int and 0 <= pe < self.n_pes:
            return pe
        return pe_number(where, "pe", pe, self.n_pes, "the context's team" if self._team else "the world")

    @property
    def n_pes(self) -> int:
        """The number of PEs that operations on the context can name."""
        return self._n_pes if self is not CTX_DEFAULT else state.n_pes

    def destroy(self) -> None:
        """Completes the operations on the context and frees it. Local. OpenSHMEM 1.6, section 9.5.3."""
        handle = self.handle_for("ctx_destroy")
        if self is CTX_DEFAULT:
            raise ValueError("heddle.ctx_destroy: ctx is CTX_DEFAULT, which cannot be destroyed")
        self._life = 0
        _destroy(handle)
        self._pending.drop()

    def abandon(self) -> None:
        """Marks the context as destroyed, by its team or by the collector. Neither completes its operations, so that
        their buffers stay until finalize."""
        self._life = 0
        if len(self._pending):
            _pending.abandoned.append(self._pending)

    def get_team(self) -> Team:
        """The team of the context. Local. OpenSHMEM 1.6, section 9.5.4."""
        self.handle_for("ctx_get_team")
        if self._team is None:
            from ._teams import TEAM_WORLD
            return TEAM_WORLD
        return self._team

    def fence(self) -> None:
        """Orders deliveries to each PE: operations before the fence come before those after it. Waits for no PE.
        OpenSHMEM 1.6, section 9.12.1."""
        _fence(self.handle_for("fence"))

    def quiet(self) -> None:
        """Returns when all earlier operations on the context are complete, and visible to all PEs. Sources may be
        reused, and destinations of gets and fetches hold their data. OpenSHMEM 1.6, section 9.12.2."""
        handle = self.handle_for("quiet")
        taken = self._pending.take()
        _quiet(handle)
        taken.clear()

    def pe_quiet(self, target_pes: Any) -> None:
        """quiet of the operations to the PEs of target_pes, a sequence of numbers in the context's team, or empty.
        OpenSHMEM 1.6, section 9.12.3."""
        handle = self.handle_for("pe_quiet")
        pes = list_of("pe_quiet", "target_pes", target_pes, "i4")
        taken = self._pending.take_of([self.pe_for("pe_quiet", int(pe)) for pe in pes])
        _pe_quiet(handle, pes.ctypes.data, pes.size)
        taken.clear()

    def session_start(self, options: SupportsIndex = 0, total_ops: SupportsIndex | None = None) -> None:
        """Says that a burst of operations follows: options is 0 or CTX_SESSION_BATCH, total_ops about how many.
        OpenSHMEM 1.6, section 9.9.2."""
        handle = self.handle_for("ctx_session_start")
        wanted = integer("ctx_session_start", "options", options, 0, 1)
        count = None if total_ops is None else integer("ctx_session_start", "total_ops", total_ops, 0, 2**64 - 1)
        config = ctypes.c_size_t(0 if count is None else count)
        _session_start(handle, wanted, ctypes.byref(config), 0 if count is None else 1)

    def session_stop(self) -> None:
        """Closes the session; completes no operation. OpenSHMEM 1.6, section 9.9.3."""
        _session_stop(self.handle_for("ctx_session_stop"))

    @contextlib.contextmanager
    def session(self, options: SupportsIndex = 0, total_ops: SupportsIndex | None = None) -> Iterator[Context]:
        """session_start and session_stop around a block."""
        self.session_start(options, total_ops)
        try:
            yield self
        finally:
            self.session_stop()

    def info(self) -> CtxInfo:
        """What the context was asked to be and what it is. An extension of Heddle."""
        raw = _RawInfo()
        _info(self.handle_for("ctx_info"), ctypes.byref(raw))
        return CtxInfo(*(getattr(raw, name) for name, _ in _RawInfo._fields_))  # type: ignore[misc]

    def quiet_local(self) -> None:
        """Waits until the sources of all operations on the context may be reused. An extension of Heddle."""
        _quiet_local(self.handle_for("ctx_quiet_local"))

    def quiet_test(self) -> bool:
        """True when no operation on the context is outstanding, which is then a quiet; otherwise False, after a little
        progress. Never blocks. An extension of Heddle."""
        handle = self.handle_for("ctx_quiet_test")
        taken = self._pending.take()
        if _quiet_test(handle):
            taken.clear()
            return True
        self._pending.put_back(taken)
        return False


CTX_DEFAULT = Context.__new__(Context)
CTX_DEFAULT._become(address_of("heddle_abi_1") + _DEFAULT_OFFSET, -1, None, 0)


def context_for(where: str, ctx: Context | None) -> tuple[Context, int]:
    """ctx, or the default context, and its handle."""
    if ctx is None:
        if not state.active:
            require_active(where)
        return CTX_DEFAULT, CTX_DEFAULT._handle
    if not isinstance(ctx, Context):
        raise TypeError(f"heddle.{where}: ctx is {described(ctx)}: a heddle.Context would be right")
    return ctx, ctx.handle_for(where)


def ctx_create(options: SupportsIndex = 0) -> Context:
    """A new context on all PEs: Context(options). Local. OpenSHMEM 1.6, section 9.5.1."""
    return Context(options)


def ctx_destroy(ctx: Context) -> None:
    """Context.destroy. OpenSHMEM 1.6, section 9.5.3."""
    context_for("ctx_destroy", ctx)[0].destroy()


def ctx_get_team(ctx: Context) -> Team:
    """Context.get_team. OpenSHMEM 1.6, section 9.5.4."""
    return context_for("ctx_get_team", ctx)[0].get_team()


def ctx_session_start(ctx: Context, options: SupportsIndex = 0, total_ops: SupportsIndex | None = None) -> None:
    """Context.session_start. OpenSHMEM 1.6, section 9.9.2."""
    context_for("ctx_session_start", ctx)[0].session_start(options, total_ops)


def ctx_session_stop(ctx: Context) -> None:
    """Context.session_stop. OpenSHMEM 1.6, section 9.9.3."""
    context_for("ctx_session_stop", ctx)[0].session_stop()


def ctx_info(ctx: Context) -> CtxInfo:
    """Context.info. An extension of Heddle."""
    return context_for("ctx_info", ctx)[0].info()


def ctx_quiet_local(ctx: Context) -> None:
    """Context.quiet_local. An extension of Heddle."""
    context_for("ctx_quiet_local", ctx)[0].quiet_local()


def ctx_quiet_test(ctx: Context) -> bool:
    """Context.quiet_test. An extension of Heddle."""
    return context_for("ctx_quiet_test", ctx)[0].quiet_test()


def fence(ctx: Context | None = None) -> None:
    """Context.fence of ctx, or of the default context. OpenSHMEM 1.6, section 9.12.1."""
    context_for("fence", ctx)[0].fence()


def quiet(ctx: Context | None = None) -> None:
    """Context.quiet of ctx, or of the default context. OpenSHMEM 1.6, section 9.12.2."""
    context_for("quiet", ctx)[0].quiet()


def pe_quiet(target_pes: Any, ctx: Context | None = None) -> None:
    """Context.pe_quiet of ctx, or of the default context. OpenSHMEM 1.6, section 9.12.3."""
    context_for("pe_quiet", ctx)[0].pe_quiet(target_pes)
