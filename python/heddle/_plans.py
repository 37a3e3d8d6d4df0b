"""Plans of collectives: an extension of Heddle. One thread records a plan, and one at a time starts it."""

from __future__ import annotations

import ctypes
import threading
from types import TracebackType
from typing import TYPE_CHECKING

from ._checks import described, gone, require_active, state
from ._library import foreign
from ._memory import Array, symmetric
from ._requests import Request, request_for

if TYPE_CHECKING:
    from ._teams import Team

_plan_begin = foreign("shmemx_plan_begin", "v:p")
_plan_end = foreign("shmemx_plan_end", "v:p")
_start = foreign("shmemx_request_start", "i:pp")
_plan_free = foreign("shmemx_plan_free", "v:p")


class Plan:
    """Recorded collectives that start() posts, any number of times: `with plan:` records those of the thread that are
    named *_nbe. All members of a team record and start alike. docs/user/nonblocking-collectives.md."""

    _recording = threading.local()

    def __init__(self) -> None:
        require_active("plan_begin")
        self._handle, self._life = ctypes.c_void_p(), state.life
        self._teams: list[Team] = []
        self._buffers: list[tuple[str, Array]] = []

    def __enter__(self) -> Plan:
        self.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.end()

    def begin(self) -> None:
        """Records the collectives of this thread from here to end(). Once a plan; may not be nested."""
        self._require("plan_begin")
        if getattr(Plan._recording, "plan", None) is not None or self._handle.value:
            raise RuntimeError("heddle.plan_begin: the plan has a recording, or this thread records another; one "
                               "recording a plan, and one at a time would be right")
        _plan_begin(ctypes.byref(self._handle))
        Plan._recording.plan = self

    def end(self) -> None:
        """Ends the recording, in the thread that has begun it."""
        self._require("plan_end")
        if getattr(Plan._recording, "plan", None) is not self:
            raise RuntimeError("heddle.plan_end: this thread does not record this plan")
        Plan._recording.plan = None
        _plan_end(ctypes.byref(self._handle))

    def note(self, team: Team, buffers: dict[str, Array]) -> None:
        """What a collective that was recorded uses: it has to live at each start."""
        self._teams.append(team)
        self._buffers += buffers.items()

    def start(self, req: Request) -> None:
        """Posts the recorded collectives to req. Those of an earlier start must be complete: its request waited for."""
        self._require("request_start")
        if not self._handle.value or getattr(Plan._recording, "plan", None) is self:
            raise RuntimeError("heddle.request_start: the plan has no recording that has ended")
        for team in self._teams:
            team.handle_for("request_start")
        for name, buffer in self._buffers:
            symmetric("request_start", f"a recorded {name}", buffer)
        _start(self._handle, request_for("request_start", req))

    def free(self) -> None:
        """Waits for the collectives of the last start and frees the plan. Local."""
        self._require("plan_free")
        if getattr(Plan._recording, "plan", None) is self:
            raise RuntimeError("heddle.plan_free: the plan is being recorded; end() comes first")
        self._life = 0
        _plan_free(ctypes.byref(self._handle))
        self._teams, self._buffers = [], []

    def _require(self, where: str) -> None:
        require_active(where)
        if self._life != state.life:
            raise gone(where, "plan", self._life, "was freed")


def note(req: Request | None, team: Team, buffers: dict[str, Array]) -> None:
    """Behind a collective: keeps what it uses where this thread records it."""
    recording = None if req is None else getattr(Plan._recording, "plan", None)
    if recording is not None:
        recording.note(team, buffers)


def _plan(where: str, plan: Plan) -> Plan:
    if not isinstance(plan, Plan):
        raise TypeError(f"heddle.{where}: plan is {described(plan)}: a heddle.Plan would be right")
    return plan


def plan_begin(plan: Plan) -> None:
    """Plan.begin."""
    _plan("plan_begin", plan).begin()


def plan_end(plan: Plan) -> None:
    """Plan.end."""
    _plan("plan_end", plan).end()


def plan_free(plan: Plan) -> None:
    """Plan.free."""
    _plan("plan_free", plan).free()


def request_start(plan: Plan, req: Request) -> None:
    """Plan.start."""
    _plan("request_start", plan).start(req)
