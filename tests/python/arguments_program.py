"""Functions of the Python bindings with arguments that nobody would pass, from a seed: each call returns or raises an
exception of Python; none ends the PE, nor overwrites what Python has. One PE. The last call is printed, should there be
one that does.

    arguments_program.py SEED CALLS
"""

import array
import inspect
import random
import sys

import heddle
import numpy as np

seed, calls = int(sys.argv[1]), int(sys.argv[2])
choose = random.Random(seed)
heddle.init()

# Left out: what ends the program or the library, what waits for ever by right, and what makes symmetric memory scarce.
LEFT_OUT = {"finalize", "global_exit", "init", "init_thread", "init_uniqueid", "init_thread_uniqueid", "get_uniqueid",
            "set_lock", "Lock", "Plan", "plan_begin", "plan_end", "plan_free", "request_start", "request_begin",
            "request_end", "progress_policy", "free", "realloc", "request_free", "ctx_destroy"}
NAMES = [name for name in heddle.__all__ if callable(getattr(heddle, name)) and name not in LEFT_OUT
         and name not in ("Array", "Buffer", "CtxInfo", "Team", "Context") and "wait_until" not in name]
freed = heddle.zeros(8, "i8")
heddle.free(freed)
destroyed = heddle.Context()
destroyed.destroy()
gone = heddle.TEAM_WORLD.split_strided(0, 1, 1)
gone.destroy()
spent = heddle.Request()
spent.free()
live = heddle.Request()
SYMMETRIC = [heddle.zeros(8, kind) for kind in ("i1", "i4", "i8", "u8", "f4", "f8", "c16")]
ONES = [heddle.zeros(1, kind) for kind in ("i4", "i8", "u8", "f8")]
POOL = [
    None, 0, 1, -1, 2, 5, 7, 2**31, 2**63, 2**64, -2**70, 1.5, float("nan"), "x", b"", b"12345678", object(), True,
    [], [0], [0, 1], [-1], ["a"], (1, 2), {}, np.int32(1), np.float64(2), np.zeros(8, "i8"), np.zeros(8, "f8")[::2],
    np.zeros((2, 4), "i4").T, np.zeros(0, "i8"), np.zeros(3, object), np.array(5), array.array("q", [1] * 8),
    bytearray(16), memoryview(b"abcdefgh"), heddle.CMP_EQ, heddle.CTX_PRIVATE, heddle.TEAM_WORLD, heddle.TEAM_SHARED,
    heddle.CTX_DEFAULT, heddle.Request(), heddle.Request(shared=True), freed, freed[2:4], destroyed, gone, spent,
    *SYMMETRIC, *ONES, *SYMMETRIC, *ONES, SYMMETRIC[2][::2], SYMMETRIC[2][3:4], SYMMETRIC[2].view(">i8"),
    SYMMETRIC[0][1:5].view("i4"), heddle.as_array(SYMMETRIC[2].ctypes.data, 8, "i8"),
]


def likely(name):
    """Something of the right kind, most of the time: what is checked late is reached, too."""
    if name in ("dest", "source", "ivars"):
        return choose.choice(SYMMETRIC)
    if name in ("ivar", "sig_addr", "fetch"):
        return choose.choice(ONES)
    if name in ("team", "ctx", "req"):
        return {"team": heddle.TEAM_WORLD, "ctx": None, "req": live}[name]
    if name in ("pe", "PE_root", "thread", "sig_op"):
        return 0
    return choose.choice([0, 1, 2, 3])


kinds = {}
for number in range(calls):
    name = choose.choice(NAMES)
    function = getattr(heddle, name)
    parameters = inspect.signature(function).parameters.values()
    given = {one.name: likely(one.name) if choose.random() < 0.75 else choose.choice(POOL) for one in parameters
             if one.default is one.empty or choose.random() < 0.5}
    if "nthreads" in given:  # more would wait for the others
        given["nthreads"] = choose.choice([1, 1, 0, -1, None, "x"])
    print(f"{number}: {name}({given})", flush=True)
    try:
        result = function(**given)
        kinds["returned"] = kinds.get("returned", 0) + 1
        if name in ("malloc", "calloc", "align", "malloc_with_hints", "empty", "zeros", "full", "array"):
            heddle.free(result)
    except (TypeError, ValueError, OverflowError, RuntimeError, MemoryError) as error:
        assert str(error), name
        kinds[type(error).__name__] = kinds.get(type(error).__name__, 0) + 1
heddle.quiet()
print(f"arguments: pass, {kinds}")
heddle.finalize()
