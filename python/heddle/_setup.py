"""Start and end of the library, and questions about it. One thread of a PE starts and ends it; any thread asks."""

from __future__ import annotations

import ctypes
import sys
from typing import NoReturn, SupportsIndex

from . import _checks
from ._checks import choice, integer, require_active, state
from ._contexts import CTX_DEFAULT
from ._exceptions import hooks
from ._library import foreign
from ._memory import Buffer, local
from .generated import constants

_init_thread = foreign("shmem_init_thread", "i:ip")
_finalize = foreign("shmem_finalize", "v:")
_query_thread = foreign("shmem_query_thread", "v:p")
_global_exit = foreign("shmem_global_exit", "v:i")
_version = foreign("shmem_info_get_version", "v:pp")
_name = foreign("shmem_info_get_name", "v:p")
_pcontrol = foreign("shmem_pcontrol", "v:i")
_get_uniqueid = foreign("shmemx_get_uniqueid", "i:p")
_init_uniqueid = foreign("shmemx_init_thread_uniqueid", "i:piiip")
_pcntr_num = foreign("shmemx_pcntr_num", "i:")
_pcntr_name = foreign("shmemx_pcntr_name", "s:i")
_pcntr_description = foreign("shmemx_pcntr_description", "s:i")
_pcntr_get = foreign("shmemx_pcntr_get", "u:i")
_progress = foreign("shmemx_progress", "v:")
_progress_policy = foreign("shmemx_progress_policy", "i:s")
_progress_network = foreign("shmemx_progress_network", "s:")
_LEVELS = {value: name for name, value in vars(constants).items() if name.startswith("THREAD_")}
_POLICIES = ["auto", "thread", "thread:spin", "thread:monitor", "thread:block", "manual"]
_ID_BYTES = 128


def init() -> None:
    """Starts the library, for any number of threads. Collective over all PEs. May be repeated: each call is matched by
    one finalize(). RuntimeError where the library cannot start. OpenSHMEM 1.6, section 9.1.1."""
    init_thread(constants.THREAD_MULTIPLE)


def init_thread(requested: SupportsIndex) -> int:
    """init; requested is THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED or THREAD_MULTIPLE. Returns the level that
    the program has: THREAD_MULTIPLE, always. Collective. OpenSHMEM 1.6, section 9.2.1."""
    level, provided = choice("init_thread", "requested", requested, _LEVELS), ctypes.c_int()
    state.ask()  # code beside Python may have ended it
    if _init_thread(level, ctypes.byref(provided)):
        raise RuntimeError("heddle.init: the library cannot start; stderr says why")
    _started()
    return provided.value


def _started() -> None:
    state.begin()
    hooks.set()


def finalize() -> None:
    """Ends what one init() began: a barrier of all PEs. The last one completes all communication and shuts the library
    down; symmetric arrays and other objects of heddle may not be used any more. Collective. OpenSHMEM 1.6, section
    9.1.4."""
    require_active("finalize")
    taken = CTX_DEFAULT._pending.take()
    _finalize()
    taken.clear()
    state.end()


def query_initialized() -> bool:
    """Whether the library runs: True between init and finalize. At any time; any thread. OpenSHMEM 1.6, section
    9.1.5."""
    return _checks.is_initialized()


def query_thread() -> int:
    """The thread level: THREAD_MULTIPLE. Any thread. OpenSHMEM 1.6, section 9.2.2."""
    require_active("query_thread")
    provided = ctypes.c_int()
    _query_thread(ctypes.byref(provided))
    return provided.value


def global_exit(status: SupportsIndex) -> NoReturn:
    """Ends every PE of the job, with the low 8 bits of status; what Python has not written is flushed first. Any
    thread. OpenSHMEM 1.6, section 9.1.6."""
    require_active("global_exit")
    code = integer("global_exit", "status", status, -2**31, 2**31 - 1)
    sys.stdout.flush()
    sys.stderr.flush()
    _global_exit(code)
    raise SystemExit(code)


def my_pe() -> int:
    """The number of this PE, 0 to n_pes() - 1. Any thread. OpenSHMEM 1.6, section 9.1.2."""
    require_active("my_pe")
    return state.my_pe


def n_pes() -> int:
    """The number of PEs of the job. Any thread. OpenSHMEM 1.6, section 9.1.3."""
    require_active("n_pes")
    return state.n_pes


def info_get_version() -> tuple[int, int]:
    """The version of the specification: (1, 6). At any time; any thread. OpenSHMEM 1.6, section 9.1.11."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _version(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def info_get_name() -> str:
    """The vendor string. At any time; any thread. OpenSHMEM 1.6, section 9.1.12."""
    text = ctypes.create_string_buffer(constants.MAX_NAME_LEN)
    _name(text)
    return text.value.decode()


def pcontrol(level: SupportsIndex) -> None:
    """For profilers, which replace it; does nothing here. Any thread. OpenSHMEM 1.6, section 10.1.1."""
    _pcontrol(integer("pcontrol", "level", level, -2**31, 2**31 - 1))


def get_uniqueid() -> bytes:
    """The id of a new job, 128 bytes to be passed on to its PEs, for processes that no launcher has started. One
    process calls, which lives as long as the job. RuntimeError where no port or thread can be had. An extension of
    Heddle: docs/user/running.md. Any thread."""
    made = (ctypes.c_ubyte * _ID_BYTES)()
    if _get_uniqueid(made):
        raise RuntimeError("heddle.get_uniqueid: there is no id; stderr says why")
    return bytes(made)


def init_uniqueid(id: Buffer, my_pe: SupportsIndex, n_pes: SupportsIndex) -> None:
    """init of PE my_pe of the n_pes PEs of the job that get_uniqueid() has named. Collective over them. RuntimeError
    when not all have come within HEDDLE_LAUNCH_TIMEOUT_S. An extension of Heddle."""
    init_thread_uniqueid(id, my_pe, n_pes, constants.THREAD_MULTIPLE)


def init_thread_uniqueid(id: Buffer, my_pe: SupportsIndex, n_pes: SupportsIndex, requested: SupportsIndex) -> int:
    """init_uniqueid with a thread level, as init_thread. An extension of Heddle."""
    where = "init_uniqueid"
    array, address = local(where, "id", id)
    if array.nbytes != _ID_BYTES:
        raise ValueError(f"heddle.{where}: id has {array.nbytes} bytes: {_ID_BYTES} of get_uniqueid() would be right")
    count = integer(where, "n_pes", n_pes, 1, 2**31 - 1)
    number = integer(where, "my_pe", my_pe, 0, count - 1)
    level, provided = choice(where, "requested", requested, _LEVELS), ctypes.c_int()
    state.ask()
    if _init_uniqueid(address, number, count, level, ctypes.byref(provided)):
        raise RuntimeError(f"heddle.{where}: the library cannot start; stderr says why")
    _started()
    return provided.value


def progress() -> None:
    """Makes progress: operations and non-blocking collectives that can go on do. Never blocks. An extension of Heddle.
    Any thread."""
    require_active("progress")
    _progress()


def progress_policy(policy: str) -> None:
    """Sets who makes progress in this PE beside the program's calls: "auto", "thread", "thread:spin", "thread:monitor",
    "thread:block" or "manual". RuntimeError for one that this machine cannot have. An extension of Heddle."""
    require_active("progress_policy")
    if policy not in _POLICIES:
        raise ValueError(f"heddle.progress_policy: policy is {policy!r}: one of {', '.join(_POLICIES)} would be right")
    if _progress_policy(policy.encode()):
        raise RuntimeError(f"heddle.progress_policy: this machine cannot have {policy!r}; stderr says why")


def progress_network() -> str:
    """What this PE's thread for the network does between two polls: "epoll", "umwait", "mwaitx", "wfe", "spin" or
    "none". An extension of Heddle. Any thread."""
    require_active("progress_network")
    return str(_progress_network().decode())


def _counter(where: str, index: SupportsIndex) -> int:
    require_active(where)
    return integer(where, "index", index, 0, _pcntr_num() - 1)


def pcntr_num() -> int:
    """The number of counters of what the library has done in this PE (docs/user/counters.md). An extension of Heddle.
    Any thread."""
    require_active("pcntr_num")
    return int(_pcntr_num())


def pcntr_name(index: SupportsIndex) -> str:
    """The name of a counter: "messages_sent". An extension of Heddle. Any thread."""
    return str(_pcntr_name(_counter("pcntr_name", index)).decode())


def pcntr_description(index: SupportsIndex) -> str:
    """The unit of a counter, a colon, and what it counts. An extension of Heddle. Any thread."""
    return str(_pcntr_description(_counter("pcntr_description", index)).decode())


def pcntr_get(index: SupportsIndex) -> int:
    """The value of a counter of this PE, since its first init. An extension of Heddle. Any thread."""
    return int(_pcntr_get(_counter("pcntr_get", index)))
