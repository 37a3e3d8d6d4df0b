"""OpenSHMEM for Python, by Heddle: the functions of OpenSHMEM 1.6 without `shmem_`, on symmetric NumPy arrays.

    import heddle

    heddle.init()
    me, n = heddle.my_pe(), heddle.n_pes()
    inbox = heddle.zeros(1, "i8")
    heddle.p(inbox, me, (me + 1) % n)
    heddle.barrier_all()
    print(f"PE {me} of {n}: {inbox[0]} is to my left")
    heddle.finalize()

Started by `oshrun -n 4 python hello.py`. Arguments are those of C in their order; counts, which buffers tell, and
contexts are keywords; results are returned. A function is chosen by the dtype of its data. Any thread calls any
function, unless its documentation says otherwise; other Python threads run while one waits. docs/user/python.md has
the introduction."""

from __future__ import annotations

from ._collectives import barrier_all, sync_all
from ._contexts import (
    CTX_DEFAULT,
    Context,
    CtxInfo,
    ctx_create,
    ctx_destroy,
    ctx_get_team,
    ctx_info,
    ctx_quiet_local,
    ctx_quiet_test,
    ctx_session_start,
    ctx_session_stop,
    fence,
    pe_quiet,
    quiet,
)
from ._locks import Lock, clear_lock, set_lock, test_lock
from ._memory import (
    Array,
    Buffer,
    align,
    array,
    as_array,
    calloc,
    empty,
    free,
    full,
    malloc,
    malloc_with_hints,
    realloc,
    zeros,
)
from ._plans import Plan, plan_begin, plan_end, plan_free, request_start
from ._pointers import addr_accessible, pe_accessible, ptr
from ._requests import (
    Request,
    request_allocate,
    request_begin,
    request_end,
    request_fence,
    request_free,
    request_merge,
    request_test,
    request_test_any,
    request_wait,
    request_wait_any,
    request_wait_local,
    request_wait_some,
)
from ._setup import (
    finalize,
    get_uniqueid,
    global_exit,
    info_get_name,
    info_get_version,
    init,
    init_thread,
    init_thread_uniqueid,
    init_uniqueid,
    my_pe,
    n_pes,
    pcntr_description,
    pcntr_get,
    pcntr_name,
    pcntr_num,
    pcontrol,
    progress,
    progress_network,
    progress_policy,
    query_initialized,
    query_thread,
)
from ._teams import (
    TEAM_SHARED,
    TEAM_WORLD,
    Team,
    team_create_ctx,
    team_destroy,
    team_get_config,
    team_my_pe,
    team_n_pes,
    team_ptr,
    team_split_2d,
    team_split_strided,
    team_translate_pe,
)
from .generated import constants, operations
from .generated.constants import *  # noqa: F403
from .generated.operations import *  # noqa: F403

__all__ = [  # noqa: RUF022
    "Array",
    "Buffer",
    "CTX_DEFAULT",
    "Context",
    "CtxInfo",
    "Lock",
    "Plan",
    "Request",
    "TEAM_SHARED",
    "TEAM_WORLD",
    "Team",
    "addr_accessible",
    "align",
    "array",
    "as_array",
    "barrier_all",
    "calloc",
    "clear_lock",
    "ctx_create",
    "ctx_destroy",
    "ctx_get_team",
    "ctx_info",
    "ctx_quiet_local",
    "ctx_quiet_test",
    "ctx_session_start",
    "ctx_session_stop",
    "empty",
    "fence",
    "finalize",
    "free",
    "full",
    "get_uniqueid",
    "global_exit",
    "info_get_name",
    "info_get_version",
    "init",
    "init_thread",
    "init_thread_uniqueid",
    "init_uniqueid",
    "malloc",
    "malloc_with_hints",
    "my_pe",
    "n_pes",
    "pcntr_description",
    "pcntr_get",
    "pcntr_name",
    "pcntr_num",
    "pcontrol",
    "pe_accessible",
    "pe_quiet",
    "plan_begin",
    "plan_end",
    "plan_free",
    "progress",
    "progress_network",
    "progress_policy",
    "ptr",
    "query_initialized",
    "query_thread",
    "quiet",
    "realloc",
    "request_allocate",
    "request_begin",
    "request_end",
    "request_fence",
    "request_free",
    "request_merge",
    "request_start",
    "request_test",
    "request_test_any",
    "request_wait",
    "request_wait_any",
    "request_wait_local",
    "request_wait_some",
    "set_lock",
    "sync_all",
    "team_create_ctx",
    "team_destroy",
    "team_get_config",
    "team_my_pe",
    "team_n_pes",
    "team_ptr",
    "team_split_2d",
    "team_split_strided",
    "team_translate_pe",
    "test_lock",
    "zeros",
]
__all__ += constants.__all__
__all__ += operations.__all__
