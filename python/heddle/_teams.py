"""Teams: objects whose methods are the collectives. Splitting and destroying is collective; one thread of a PE at a
time does that. The rest any thread does."""

from __future__ import annotations

import ctypes
import weakref
from types import TracebackType
from typing import SupportsIndex

from ._checks import described, gone, integer, require_active, state
from ._contexts import Context
from ._library import address_of, foreign
from ._memory import Array, symmetric
from ._pointers import peer_array
from .generated.team_methods import TeamMethods

_my_pe = foreign("shmem_team_my_pe", "i:p")
_n_pes = foreign("shmem_team_n_pes", "i:p")
_get_config = foreign("shmem_team_get_config", "i:plp")
_translate = foreign("shmem_team_translate_pe", "i:pip")
_split_strided = foreign("shmem_team_split_strided", "i:piiiplp")
_split_2d = foreign("shmem_team_split_2d", "i:piplpplp")
_destroy = foreign("shmem_team_destroy", "v:p")
_ptr = foreign("shmem_team_ptr", "p:ppi")
_INT = 2**31 - 1


class Team(TeamMethods):
    """A team of PEs (OpenSHMEM 1.6, section 9.4): TEAM_WORLD, TEAM_SHARED, or what a split returns. Its methods are the
    collectives of heddle on this team, whose PEs count from 0 to n_pes() - 1. As a context manager it is destroyed at
    the end of the block, by all members."""

    def __init__(self, handle: int, predefined: str = "") -> None:
        self._handle, self._predefined = handle, predefined
        self._life = state.life
        self._contexts: weakref.WeakSet[Context] = weakref.WeakSet()
        self._size = -1 if predefined else int(_n_pes(handle))

    def __enter__(self) -> Team:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        # In an exception others may not come to the destruction.
        if kind is None and self._life == state.life and state.ask():
            self.destroy()

    def __repr__(self) -> str:
        if self._predefined:
            return f"heddle.{self._predefined}"
        return f"<heddle.Team of {self._size} PEs{'' if self._life == state.life else ', destroyed'}>"

    def handle_for(self, where: str) -> int:
        """The C handle, for the function `where`: RuntimeError before init, ValueError when it was destroyed."""
        if not state.active:
            require_active(where)
        if self._life != state.life and not self._predefined:
            raise gone(where, "team", self._life, "was destroyed")
        return self._handle

    def my_pe(self) -> int:
        """The number of this PE in the team. Local. OpenSHMEM 1.6, section 9.4.1."""
        return int(_my_pe(self.handle_for("team_my_pe")))

    def n_pes(self) -> int:
        """The number of PEs of the team. Local. OpenSHMEM 1.6, section 9.4.2."""
        handle = self.handle_for("team_n_pes")
        return self._size if self._size >= 0 else int(_n_pes(handle))

    def get_config(self) -> int:
        """num_contexts, as the split said, or 0. Local. OpenSHMEM 1.6, section 9.4.4."""
        config = ctypes.c_int()
        _get_config(self.handle_for("team_get_config"), 1, ctypes.byref(config))
        return config.value

    def translate_pe(self, src_pe: SupportsIndex, dest_team: Team) -> int | None:
        """The number in dest_team of PE src_pe of this team; None when it is no member. Local. OpenSHMEM 1.6, section
        9.4.5."""
        pe = integer("team_translate_pe", "src_pe", src_pe, 0, self.n_pes() - 1)
        found = int(_translate(self.handle_for("team_translate_pe"), pe,
                               team_for("team_translate_pe", dest_team).handle_for("team_translate_pe")))
        return None if found < 0 else found

    def split_strided(self, start: SupportsIndex, stride: SupportsIndex, size: SupportsIndex,
                      num_contexts: SupportsIndex | None = None) -> Team | None:
        """The team of this team's PEs start, start + stride, ..., size in number; None on its other PEs. A negative
        stride reverses. Collective over this team, with the same arguments. OpenSHMEM 1.6, section 9.4.6."""
        where, n = "team_split_strided", self.n_pes()
        first = integer(where, "start", start, 0, n - 1)
        count, step = integer(where, "size", size, 1, n), integer(where, "stride", stride, -_INT, _INT)
        if not 0 <= first + step * (count - 1) < n or (step == 0 and count > 1):
            raise ValueError(f"heddle.{where}: start {first}, stride {step} and size {count} end at PE "
                             f"{first + step * (count - 1)}; the team has PEs 0 to {n - 1}")
        config, mask = _config(where, num_contexts)
        made = ctypes.c_void_p()
        if _split_strided(self.handle_for(where), first, step, count, config, mask, ctypes.byref(made)):
            raise RuntimeError(f"heddle.{where}: the team cannot be made; stderr says why")
        return Team(made.value) if made.value else None

    def split_2d(self, xrange: SupportsIndex, x_num_contexts: SupportsIndex | None = None,
                 y_num_contexts: SupportsIndex | None = None) -> tuple[Team, Team]:
        """This team's PEs in rows of xrange: the team of this PE's row, and that of its column. Collective over this
        team, with the same arguments. OpenSHMEM 1.6, section 9.4.7."""
        where = "team_split_2d"
        width = integer(where, "xrange", xrange, 1, _INT)
        x_config, x_mask = _config(where, x_num_contexts)
        y_config, y_mask = _config(where, y_num_contexts)
        row, column = ctypes.c_void_p(), ctypes.c_void_p()
        failed = _split_2d(self.handle_for(where), width, x_config, x_mask, ctypes.byref(row), y_config, y_mask,
                           ctypes.byref(column))
        if failed or not row.value or not column.value:
            raise RuntimeError(f"heddle.{where}: the teams cannot be made; stderr says why")
        return Team(row.value), Team(column.value)

    def destroy(self) -> None:
        """Destroys the team and the contexts made on it. Collective over the team. OpenSHMEM 1.6, section 9.4.8."""
        handle = self.handle_for("team_destroy")
        if self._predefined:
            raise ValueError(f"heddle.team_destroy: team is {self._predefined}, which cannot be destroyed")
        self._life = 0
        for context in list(self._contexts):
            if context._life == state.life:
                context.abandon()
        _destroy(handle)

    def create_ctx(self, options: SupportsIndex = 0) -> Context:
        """A new context on the PEs of the team, by their numbers in it. Local. OpenSHMEM 1.6, section 9.5.2."""
        return Context(options, self)

    def joins(self, context: Context) -> None:
        """A context was made on the team, and ends with it."""
        if not self._predefined:
            self._contexts.add(context)

    def ptr(self, dest: Array, pe: SupportsIndex) -> Array | None:
        """dest on PE pe of the team as an array for loads and stores, or None where it is on another node. Local.
        OpenSHMEM 1.6, section 9.1.10."""
        handle, member = self.handle_for("team_ptr"), integer("team_ptr", "pe", pe, 0, self.n_pes() - 1)
        array, address = symmetric("team_ptr", "dest", dest)
        return peer_array(array, _ptr(handle, address, member))


def _config(where: str, num_contexts: SupportsIndex | None) -> tuple[ctypes.Array[ctypes.c_int] | None, int]:
    if num_contexts is None:
        return None, 0
    return (ctypes.c_int * 1)(integer(where, "num_contexts", num_contexts, 0, _INT)), 1


TEAM_WORLD = Team(address_of("heddle_team_world"), "TEAM_WORLD")
TEAM_SHARED = Team(address_of("heddle_team_shared"), "TEAM_SHARED")


def team_for(where: str, team: Team) -> Team:
    """team, which must be one."""
    if not isinstance(team, Team):
        raise TypeError(f"heddle.{where}: team is {described(team)}: a heddle.Team would be right, such as "
                        "heddle.TEAM_WORLD")
    return team


def team_my_pe(team: Team) -> int:
    """Team.my_pe. OpenSHMEM 1.6, section 9.4.1."""
    return team_for("team_my_pe", team).my_pe()


def team_n_pes(team: Team) -> int:
    """Team.n_pes. OpenSHMEM 1.6, section 9.4.2."""
    return team_for("team_n_pes", team).n_pes()


def team_get_config(team: Team) -> int:
    """Team.get_config. OpenSHMEM 1.6, section 9.4.4."""
    return team_for("team_get_config", team).get_config()


def team_translate_pe(src_team: Team, src_pe: SupportsIndex, dest_team: Team) -> int | None:
    """Team.translate_pe. OpenSHMEM 1.6, section 9.4.5."""
    return team_for("team_translate_pe", src_team).translate_pe(src_pe, dest_team)


def team_split_strided(parent_team: Team, start: SupportsIndex, stride: SupportsIndex, size: SupportsIndex,
                       num_contexts: SupportsIndex | None = None) -> Team | None:
    """Team.split_strided. OpenSHMEM 1.6, section 9.4.6."""
    return team_for("team_split_strided", parent_team).split_strided(start, stride, size, num_contexts)


def team_split_2d(parent_team: Team, xrange: SupportsIndex, x_num_contexts: SupportsIndex | None = None,
                  y_num_contexts: SupportsIndex | None = None) -> tuple[Team, Team]:
    """Team.split_2d. OpenSHMEM 1.6, section 9.4.7."""
    return team_for("team_split_2d", parent_team).split_2d(xrange, x_num_contexts, y_num_contexts)


def team_destroy(team: Team) -> None:
    """Team.destroy. OpenSHMEM 1.6, section 9.4.8."""
    team_for("team_destroy", team).destroy()


def team_create_ctx(team: Team, options: SupportsIndex = 0) -> Context:
    """Team.create_ctx. OpenSHMEM 1.6, section 9.5.2."""
    return team_for("team_create_ctx", team).create_ctx(options)


def team_ptr(team: Team, dest: Array, pe: SupportsIndex) -> Array | None:
    """Team.ptr. OpenSHMEM 1.6, section 9.1.10."""
    return team_for("team_ptr", team).ptr(dest, pe)
