"""Every function of the Python bindings that is generated, for each dtype that its table has, by what NumPy computes.

Run by oshrun; exit status 0 when all is right, and when no function and no dtype was left out.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import heddle
import numpy as np
from heddle.generated import operations

heddle.init()
me, n = heddle.my_pe(), heddle.n_pes()
right, left = (me + 1) % n, (me + n - 1) % n
space = heddle.zeros(24000, "u1")
sent = heddle.zeros(24000, "u1")
signals = heddle.zeros(4, "u8")
request = heddle.Request()
context = heddle.Context()
called = set()
TABLE = {name: getattr(operations, f"_{name.upper()}") for name in operations.__all__}


def function(name):
    called.add(name)
    return getattr(heddle, name)


def values(dtype, pe, length=6, most=5):
    return ((np.arange(length) + pe) % most + 1).astype(dtype)


def fresh(dtype, length=40):
    """dest and source of the dtype: parts of two allocations, the first of them zero on all PEs."""
    heddle.barrier_all()
    space[:] = 0
    heddle.barrier_all()
    return space.view(dtype)[:length], sent.view(dtype)[:length]


def complete(name):
    if name.endswith("_nbe"):
        request.wait()
    heddle.quiet()
    context.quiet()
    heddle.barrier_all()


def requested(name):
    return {"req": request} if name.endswith("_nbe") else {}


def forms(name, dtypes):
    """(dtype, context) for the calls of a function: one of two contexts, in turns."""
    return [(np.dtype(dtype), context if place % 2 else None) for place, dtype in enumerate(dtypes)]


def check_transfers():
    extra = [np.complex64, np.complex128, np.bool_, np.float16, np.dtype([("a", "i4"), ("b", "u2")])]
    for kind in ("put", "get"):
        for end in ("", "_nbi", "_nbe"):
            for size in ["", "8", "16", "32", "64", "128", "mem"]:
                name = f"{kind}{size}{end}"
                for dtype, ctx in forms(name, TABLE[name].dtypes() + extra if size == "" else ["u8", "f8"]):
                    check_copy(name, kind, dtype, ctx)


def check_copy(name, kind, dtype, ctx):
    dest, source = fresh(dtype, 6)
    mine = values(np.uint8, me, 6 * dtype.itemsize).view(dtype) if dtype.names or dtype.kind == "b" else \
        values(dtype, me)
    if kind == "put":
        function(name)(dest, mine, right, **requested(name), ctx=ctx)
        complete(name)
        got = dest
    else:
        source[:] = mine
        heddle.barrier_all()
        got = np.zeros(6, dtype)
        function(name)(got, source, left, **requested(name), ctx=ctx)
        complete(name)
    theirs = values(np.uint8, left, 6 * dtype.itemsize).view(dtype) if dtype.names or dtype.kind == "b" else \
        values(dtype, left)
    assert (got == theirs).all() and got.dtype == dtype, (name, dtype, got, theirs)


def check_signals():
    for end in ("", "_nbi", "_nbe"):
        for size in ["", "8", "16", "32", "64", "128", "mem"]:
            name = f"put{size}_signal{end}"
            for dtype, ctx in forms(name, TABLE[name].dtypes() if size == "" else ["u8"]):
                dest, _ = fresh(dtype, 6)
                signals[:] = 0
                heddle.barrier_all()
                for operation in (heddle.SIGNAL_SET, heddle.SIGNAL_ADD):
                    function(name)(dest, values(dtype, me), signals[1:2], 3, operation, right, ctx=ctx,
                                   **requested(name))
                complete(name)
                assert function("signal_wait_until")(signals[1:2], heddle.CMP_GE, 6) == 6
                assert (dest == values(dtype, left)).all(), name
    heddle.barrier_all()
    function("signal_set")(signals[2:3], 40, right)
    heddle.quiet()
    function("signal_add")(signals[2:3], 2, right, ctx=context)
    context.quiet()
    heddle.barrier_all()
    assert function("signal_fetch")(signals[2:3]) == 42


def check_strided():
    for kind in ("iput", "iget", "ibput", "ibget"):
        block = 2 if "b" in kind else 1
        for size in ["", "8", "16", "32", "64", "128"]:
            dtypes = [*TABLE[kind].dtypes(), np.complex128] if size == "" else [f"u{min(int(size) // 8, 8)}"]
            for dtype, ctx in forms(kind, dtypes):
                check_stride(f"{kind}{size}", dtype, ctx, block, 2 if size == "128" else 1)


def check_stride(name, dtype, ctx, block, width):
    """block: elements of a block; width: of the dtype in one of the function's elements."""
    dest, source = fresh(dtype, 60)
    mine, dst, sst = values(dtype, me, 48), 3, 4
    wanted = np.zeros(60, dtype)
    counted = 4
    for i in range(counted):
        for k in range(block * width):
            wanted[i * dst * width + k] = values(dtype, left, 48)[i * sst * width + k]
    more = {"bsize": block} if "b" in name else {}
    more |= {"nblocks" if "b" in name else "nelems": counted}
    if "put" in name:
        function(name)(dest, mine, dst, sst, pe=right, ctx=ctx, **more)
        complete(name)
        got = dest
    else:
        source[:48] = mine
        heddle.barrier_all()
        got = np.zeros(60, dtype)
        function(name)(got, source, dst, sst, pe=left, ctx=ctx, **more)
    heddle.barrier_all()
    assert (got == wanted).all(), (name, dtype, got, wanted)


def check_single():
    for dtype, ctx in forms("p", [*TABLE["p"].dtypes(), np.complex128]):
        dest, _ = fresh(dtype, 3)
        function("p")(dest[1:2], dtype.type(me + 1), right, ctx=ctx)
        complete("p")
        assert dest[1] == left + 1 and dest[0] == dest[2] == 0, dtype
        assert function("g")(dest[1:2], right, ctx=ctx) == me + 1
        heddle.barrier_all()


NEW = {
    "fetch": lambda old, value: old, "set": lambda old, value: value, "swap": lambda old, value: value,
    "compare_swap": lambda old, value: value, "inc": lambda old, value: old + 1, "add": lambda old, value: old + value,
    "and": lambda old, value: old & value, "or": lambda old, value: old | value, "xor": lambda old, value: old ^ value,
}


def check_atomics():
    for name in [name for name in operations.__all__ if name.startswith("atomic_")]:
        stem = name.removeprefix("atomic_").removesuffix("_nbi").removesuffix("_nbe")
        operation = stem if stem in NEW else stem.removeprefix("fetch_")
        fetches = stem in ("fetch", "swap", "compare_swap") or stem.startswith("fetch_")
        for dtype, ctx in forms(name, TABLE[name].dtypes()):
            dest, _ = fresh(dtype, 2)
            dest[1] = 6
            heddle.barrier_all()
            old, fetched = None, np.zeros(1, dtype)
            operands = {"compare_swap": (6, 3), "fetch": (), "inc": ()}.get(operation, (3,))
            lead = (fetched,) if fetches and name.endswith(("_nbi", "_nbe")) else ()
            old = function(name)(*lead, dest[1:2], *operands, right, **requested(name), ctx=ctx)
            complete(name)
            assert (fetched[0] if lead else old) == (6 if fetches else None), (name, dtype, old, fetched)
            assert dest[1] == NEW[operation](6, 3) and dest[0] == 0, (name, dtype, dest)


def check_waits():
    some = [name for name in operations.__all__ if name.startswith(("wait_until", "test"))]
    for name in some:
        for dtype in TABLE[name].dtypes():
            ivars, _ = fresh(dtype, 4)
            one = name in ("wait_until", "test")
            target = ivars[2:3] if one else ivars
            value = np.array([9, 9, 7, 9], dtype) if name.endswith("_vector") else 7
            if name.startswith("test"):
                result = function(name)(target, heddle.CMP_EQ, value)
                assert (len(result) == 0 if "_some" in name else not result), name
                heddle.barrier_all()
            for place in range(4) if "_all" in name else [2]:
                wanted = value[place] if name.endswith("_vector") else 7
                heddle.atomic_set(ivars[place:place + 1], wanted, right)
            if name.startswith("test"):
                heddle.barrier_all()
            result = function(name)(target, heddle.CMP_EQ, value)
            if "_some" in name:
                assert result.tolist() == [2], (name, result)
            elif "_any" in name:
                assert result == 2, (name, result)
            else:
                assert result is (True if name.startswith("test") else None), (name, result)
            if not one:
                result = function(name)(target, heddle.CMP_NE, value, status=[1, 1, 1, 1])
                assert (len(result) == 0 if "_some" in name else result is (None if "test_all" not in name else True))


REDUCE = {
    "and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce, "max": np.maximum.reduce,
    "min": np.minimum.reduce, "sum": np.add.reduce, "prod": np.multiply.reduce,
}
pool = ThreadPoolExecutor(2)


def collective(name, *arguments, **more):
    """Calls it, by two threads for mt, and waits for it."""
    team = heddle.TEAM_WORLD
    if "_mt" not in name:
        function(name)(team, *arguments, **requested(name), **more)
        complete(name)
        return
    called.add(name)
    if name.endswith("_nbe"):
        more["req"] = heddle.Request(shared=True)
    for done in [pool.submit(getattr(heddle, name), team, *arguments, thread=thread, nthreads=2, **more)
                 for thread in (0, 1)]:
        done.result()
    if name.endswith("_nbe"):
        more["req"].wait()
        more["req"].free()
    heddle.barrier_all()


def check_collectives():
    for end in ("", "_mt", "_nbe", "_mt_nbe"):
        for form in ("broadcast", "collect", "fcollect", "alltoall", "alltoalls"):
            for dtype in TABLE[f"{form}{end}"].dtypes() + ([np.complex64] if form != "alltoalls" else []):
                check_movement(f"{form}{end}", form, np.dtype(dtype))
            check_movement(f"{form}mem{end}", form, np.dtype("u1"))
        for operation in REDUCE:
            for dtype in TABLE[f"{operation}_reduce{end}"].dtypes():
                check_reduction(f"{operation}_reduce{end}", operation, dtype)
        for form in ("sum_inscan", "sum_exscan"):
            for dtype in TABLE[f"{form}{end}"].dtypes():
                dest, source = fresh(dtype, 6)
                source[:] = values(dtype, me)
                collective(form + end, dest, source)
                members = range(me + 1 if "inscan" in form else me)
                assert (dest == sum((values(dtype, pe) for pe in members), np.zeros(6, dtype))).all(), form + end
        for form in ("team_sync", "team_barrier"):
            if form + end in TABLE:
                collective(form + end)
    function("sync")(heddle.TEAM_WORLD)


def check_movement(name, form, dtype):
    dest, source = fresh(dtype, 60 * n)
    source[:60] = values(dtype, me, 60)
    members = [values(dtype, pe, 60) for pe in range(n)]
    if form == "broadcast":
        collective(name, dest[:5], source[:5], n - 1)
        wanted = members[n - 1][:5]
    elif form == "collect":
        collective(name, dest, source[:me + 1])
        wanted = np.concatenate([members[pe][:pe + 1] for pe in range(n)])
    elif form == "fcollect":
        collective(name, dest, source[:3])
        wanted = np.concatenate([member[:3] for member in members])
    elif form == "alltoall":
        collective(name, dest, source[:3 * n])
        wanted = np.concatenate([member[3 * me:3 * me + 3] for member in members])
    else:
        collective(name, dest, source, 2, 3, nelems=2)
        wanted = np.concatenate([member[3 * 2 * me:3 * 2 * me + 6:3] for member in members])
        assert (dest[:4 * n:2] == wanted).all(), (name, dtype)
        return
    assert (dest[:len(wanted)] == wanted).all(), (name, dtype, dest[:len(wanted)], wanted)


def check_reduction(name, operation, dtype):
    dest, source = fresh(dtype, 6)
    most = 2 if operation == "prod" else 5
    source[:] = values(dtype, me, most=most)
    collective(name, dest, source)
    wanted = REDUCE[operation](np.stack([values(dtype, pe, most=most) for pe in range(n)]), axis=0, dtype=dtype)
    assert (dest == wanted).all(), (name, dtype, dest, wanted)


def check_exchanges():
    for end in ("", "_nbe"):
        for dtype in ("i4", "f8"):
            counts, offsets = [pe + 1 for pe in range(n)], [pe * (n + 1) for pe in range(n)]
            dest, source = fresh(dtype, n * (n + 1))
            source[:] = np.arange(n * (n + 1)) + 1000 * me
            collective(f"alltoallv{end}", dest, [me + 1] * n, offsets, source, counts, offsets)
            for pe in range(n):
                wanted = 1000 * pe + offsets[me] + np.arange(me + 1)
                assert (dest[offsets[pe]:offsets[pe] + me + 1] == wanted).all()
            dest, source = fresh(dtype, 4)
            source[:] = np.arange(4) + 1000 * me
            collective(f"neighbor_alltoall{end}", [right, left], dest, source)
            first, second = ([0, 1], [2, 3]) if right == left else ([2, 3], [0, 1])
            assert dest.tolist() == [1000 * right + k for k in first] + [1000 * left + k for k in second], dest
            dest, source = fresh(dtype, 4)
            source[:] = np.arange(4) + 1000 * me
            collective(f"neighbor_alltoallv{end}", [right, left], dest, [1, 1], [3, 0], source, [1, 1], [0, 2])
            first, second = (0, 2) if right == left else (2, 0)
            assert dest[3] == 1000 * right + first and dest[0] == 1000 * left + second


for check in (check_transfers, check_signals, check_strided, check_single, check_atomics, check_waits,
              check_collectives, check_exchanges):
    check()
pool.shutdown()
assert called == set(TABLE), set(TABLE) ^ called
for name, family in TABLE.items():
    missing = [] if family.plain else set(family.dtypes()) - set(family.entries)
    assert family.plain or name in ("p", "g") or not missing, (name, missing)
heddle.barrier_all()
assert threading.active_count() == 1
if me == 0:
    print(f"families: pass on {n} PEs, {len(called)} functions")
context.destroy()
heddle.finalize()
