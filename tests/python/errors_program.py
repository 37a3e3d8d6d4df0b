"""Mistakes of Python programs: each becomes an exception with a message that says what would be right, and the program
goes on. Run by oshrun with two PEs; exit status 0 when all messages are as they should be.
"""

import threading

import heddle
import numpy as np


def wants(kind, message, call):
    try:
        call()
    except kind as error:
        assert message in str(error), f"{message!r} is not in {str(error)!r}"
        assert str(error).startswith("heddle."), error
        return
    raise AssertionError(f"no {kind.__name__}: {message}")


wants(RuntimeError, "heddle.my_pe: call heddle.init() first", heddle.my_pe)
wants(RuntimeError, "heddle.zeros: call heddle.init() first", lambda: heddle.zeros(3))
wants(RuntimeError, "heddle.put: call heddle.init() first", lambda: heddle.put(b"", b"", 0))
wants(RuntimeError, "heddle.sum_reduce: call heddle.init() first", lambda: heddle.TEAM_WORLD.sum_reduce(b"", b""))
wants(ValueError, "requested is 7: THREAD_SINGLE, THREAD_FUNNELED", lambda: heddle.init_thread(7))
wants(RuntimeError, "call heddle.init() first", heddle.finalize)
wants(ValueError, "id has 3 bytes", lambda: heddle.init_uniqueid(b"abc", 0, 1))

heddle.init()
me, n = heddle.my_pe(), heddle.n_pes()
WORLD = heddle.TEAM_WORLD
a, b = heddle.zeros(10, "i8"), heddle.zeros(10, "i4")
small, floats, signal = heddle.zeros(1, "i4"), heddle.zeros(4, "f8"), heddle.zeros(1, "u8")
single = heddle.zeros(1, "f4")
local = np.zeros(10, "i8")

# What is no memory, and of the wrong kind.
wants(TypeError, "dest is None: memory would be right", lambda: heddle.put(None, local, 0))
wants(TypeError, "source is a list: memory would be right", lambda: heddle.put(a, [1, 2], 0))
wants(TypeError, "dest is 5: memory", lambda: heddle.p(5, 1, 0))
wants(TypeError, "dest is a NumPy scalar, a copy of its element", lambda: heddle.p(a[3], 1, 0))
wants(ValueError, "dest is not symmetric memory", lambda: heddle.put(local, local, 0))
wants(ValueError, "source is not symmetric memory", lambda: heddle.get(local, local, 0))
wants(ValueError, "dest is read-only memory", lambda: heddle.getmem(b"12345678", a, 0))
wants(TypeError, "dest has dtype int64 and source int32", lambda: heddle.put(a, np.zeros(10, "i4"), 0))
wants(TypeError, "are Python objects", lambda: heddle.zeros(2, object))
wants(TypeError, "elements of dest are Python objects", lambda: heddle.getmem(np.zeros(2, object), a, 0, nelems=8))
wants(TypeError, "elements of source are Python objects", lambda: heddle.put(a, np.zeros(2, object), 0))
wants(ValueError, "do not lie one behind the other", lambda: heddle.put(a[::2], local[:5], 0))
wants(ValueError, "do not lie one behind the other", lambda: heddle.put(a, local[::-1], 0))
# Lengths.
wants(ValueError, "dest has 10 elements of 8 bytes, and a count of 11", lambda: heddle.put(a, np.zeros(11, "i8"), 0))
wants(ValueError, "source has 2 elements", lambda: heddle.put(a, local[:2], 0, nelems=3))
wants(ValueError, "nelems is -1: 0 to", lambda: heddle.put(a, local, 0, nelems=-1))
wants(TypeError, "nelems is 1.5: an integer", lambda: heddle.put(a, local, 0, nelems=1.5))
wants(ValueError, "source has 5 bytes, no multiple of 8", lambda: heddle.put64(a, b"12345", 0))
wants(ValueError, "dest has 10 elements: one would be right", lambda: heddle.p(a, 1, 0))
wants(ValueError, "a count of 4 needs 13", lambda: heddle.iput(a, local, 4, 1, 0, nelems=4))
wants(ValueError, "dst is 0: 1 to", lambda: heddle.iput(a, local, 0, 1, 0))
wants(ValueError, "sst is 1: 2 to", lambda: heddle.ibput(a, local, 2, 1, 2, 0))
# PEs.
wants(ValueError, "pe is 2: the world has PEs 0 to 1", lambda: heddle.put(a, local, 2))
wants(ValueError, "pe is -1: the world has PEs 0 to 1", lambda: heddle.atomic_inc(small, -1))
wants(TypeError, "pe is 'x': an integer", lambda: heddle.put(a, local, "x"))
wants(ValueError, "pe is 2: the world", lambda: heddle.ptr(a, 2))
# Values and dtypes.
wants(OverflowError, "value is 4294967296, and int32 holds", lambda: heddle.p(small, 2**32, 0))
wants(OverflowError, "value is -1, and uint64 holds 0 to", lambda: heddle.atomic_set(signal, -1, 0))
wants(OverflowError, "value is 1e+300, which float32 cannot hold", lambda: heddle.p(single, 1e300, 0))
wants(OverflowError, "value is -1e+39, which float32", lambda: heddle.atomic_set(single, -1e39, 0))
wants(OverflowError, "value is an int of 1329 bits, which float64", lambda: heddle.p(floats[:1], 10**400, 0))
wants(OverflowError, "value is 1000000.0, which float16", lambda: heddle.p(heddle.zeros(1, "f2"), 1e6, 0))
wants(OverflowError, "bits, which float128", lambda: heddle.p(heddle.zeros(1, np.longdouble), 10**5000, 0))
wants(OverflowError, "value is a bytes, which |S3", lambda: heddle.p(heddle.zeros(2, "S3")[1:], b"abcd", 0))
wants(OverflowError, "signal is -1, and uint64 holds 0 to", lambda: heddle.signal_add(signal, -1, 0))
wants(OverflowError, "signal is -1, and uint64", lambda: heddle.put_signal(a, local, signal, -1, 0, 0))
wants(OverflowError, "cmp_value is -1, and uint64", lambda: heddle.signal_wait_until(signal, heddle.CMP_EQ, -1))
wants(TypeError, "value is a complex: a number", lambda: heddle.p(floats[:1], 1 + 2j, 0))
wants(TypeError, "value is a complex128: a number", lambda: heddle.p(floats[:1], np.complex128(1), 0))
wants(TypeError, "value is a complex128: a number", lambda: heddle.p(heddle.zeros(1, "g"), np.complex128(1), 0))
wants(TypeError, "value is a ndarray: a number", lambda: heddle.p(floats[:1], np.zeros(2), 0))
wants(TypeError, "value is a tuple: a value of", lambda: heddle.p(heddle.zeros(2, "i4,i4,i4")[1:], (1, 2), 0))
wants(TypeError, "value is 1.5: an integer", lambda: heddle.p(small.view(">i4"), 1.5, 0))
wants(TypeError, "elements of dtype |S0 have no bytes", lambda: heddle.zeros(1, "S"))
wants(TypeError, "dtype is 'nope'", lambda: heddle.zeros(1, "nope"))
wants(ValueError, "are not all symmetric", lambda: heddle.as_array(a.ctypes.data, (2**62, 4), "i8"))
wants(TypeError, "value is 1.5: an integer", lambda: heddle.p(small, 1.5, 0))
wants(TypeError, "value is '1': a number", lambda: heddle.p(floats[:1], "1", 0))
wants(TypeError, "there is none for dtype float64; right would be", lambda: heddle.atomic_add(floats[:1], 1, 0))
wants(TypeError, "there is none for dtype float64", lambda: heddle.wait_until(floats[:1], heddle.CMP_EQ, 0))
wants(TypeError, "there is none for dtype >i4", lambda: heddle.atomic_inc(small.view(">i4"), 0))
wants(ValueError, "no multiple of its 4 bytes", lambda: heddle.atomic_inc(a.view("u1")[1:5].view("i4"), 0))
wants(TypeError, "fetch has dtype int64 and dest int32", lambda: heddle.atomic_swap_nbi(local[:1], small, 1, 0))
wants(ValueError, "fetch has 10 elements", lambda: heddle.atomic_fetch_nbi(local, a[:1], 0))
# Signals and waits.
wants(TypeError, "sig_addr has dtype int64: uint64", lambda: heddle.put_signal(a, local, a[:1], 1, 0, 0))
wants(ValueError, "sig_op is 5: SIGNAL_SET, SIGNAL_ADD", lambda: heddle.put_signal(a, local, signal, 1, 5, 0))
wants(ValueError, "cmp is 0: CMP_EQ, CMP_NE", lambda: heddle.wait_until(small, 0, 1))
wants(ValueError, "status has 2 entries: 10", lambda: heddle.test_any(b, heddle.CMP_EQ, 1, status=[0, 0]))
wants(TypeError, "status is", lambda: heddle.test_any(b, heddle.CMP_EQ, 1, status=["a"] * 10))
wants(ValueError, "cmp_values has 3 elements: 10",
      lambda: heddle.test_all_vector(b, heddle.CMP_EQ, np.zeros(3, "i4")))
# Collectives: checked before any PE waits.
wants(TypeError, "team is None: a heddle.Team", lambda: heddle.sum_reduce(None, a, a))
wants(TypeError, "there is none for dtype float64", lambda: WORLD.and_reduce(floats, floats))
wants(ValueError, "dest has 10 elements, and nelems 6 on a team of 2 PEs needs 12", lambda: WORLD.fcollect(a, a[:6]))
wants(ValueError, "source has 9 elements, no multiple", lambda: WORLD.alltoall(a, a[:9]))
wants(ValueError, "PE_root is 2: 0 to 1", lambda: WORLD.broadcast(a, a, 2))
wants(ValueError, "source is not symmetric memory", lambda: WORLD.broadcast(a, local, 0))
wants(ValueError, "nreduce is -2: 0 to", lambda: WORLD.sum_reduce(a, a, nreduce=-2))
wants(ValueError, "thread is 2: 0 to 1", lambda: WORLD.sync_mt(2, 2))
wants(ValueError, "req is private: a shared request", lambda: WORLD.sync_mt_nbe(0, 1, heddle.Request()))
wants(ValueError, "dest_counts has 1 entries: 2",
      lambda: WORLD.alltoallv(a, [1], [0, 1], a, [1, 1], [0, 1]))
wants(ValueError, "block 1 of dest, 4 elements from 8 on, ends behind the 10",
      lambda: WORLD.alltoallv(a, [1, 4], [0, 8], a, [1, 1], [0, 1]))
wants(ValueError, "dest_counts has entries from -1", lambda: WORLD.alltoallv(a, [-1, 4], [0, 8], a, [1, 1], [0, 1]))
wants(ValueError, "an entry of neighbors is 2: 0 to 1", lambda: WORLD.neighbor_alltoall([2], a, a))
unwritable = a[:]
unwritable.flags.writeable = False
wants(ValueError, "dest is a read-only array", lambda: WORLD.sum_reduce(unwritable, a))
wants(ValueError, "dest is a read-only array", lambda: WORLD.broadcast(unwritable, a, 0))
wants(ValueError, "dest is a read-only array", lambda: WORLD.alltoallv(unwritable, [1, 1], [0, 1], a, [1, 1], [0, 1]))
WORLD.sum_reduce(a, unwritable)
# Handles.
wants(TypeError, "ctx is 5: a heddle.Context", lambda: heddle.put(a, local, 0, ctx=5))
wants(ValueError, "options is 0x400", lambda: heddle.Context(0x400))
wants(TypeError, "team is 'x': a heddle.Team", lambda: heddle.Context(0, "x"))
ctx = heddle.Context(heddle.CTX_PRIVATE)
refused = []
thread = threading.Thread(target=lambda: refused.append(wants(
    RuntimeError, "CTX_PRIVATE context of another thread", ctx.quiet)))
thread.start()
thread.join()
assert refused == [None]
ctx.destroy()
wants(ValueError, "ctx was destroyed", lambda: ctx.put(a, local, 0))
wants(ValueError, "ctx was destroyed", ctx.destroy)
wants(ValueError, "CTX_DEFAULT, which cannot be destroyed", heddle.CTX_DEFAULT.destroy)
wants(ValueError, "TEAM_WORLD, which cannot be destroyed", WORLD.destroy)
wants(ValueError, "end at PE 4", lambda: WORLD.split_strided(0, 4, 2))
wants(ValueError, "size is 3: 1 to 2", lambda: WORLD.split_strided(0, 1, 3))
team = WORLD.split_strided(0, 1, 2)
on_team, by_class = team.create_ctx(), heddle.Context(0, team)
wants(ValueError, "pe is 2: the context's team has PEs 0 to 1", lambda: on_team.put(a, local, 2))
team.destroy()
wants(ValueError, "team was destroyed", team.my_pe)
wants(ValueError, "ctx was destroyed", on_team.quiet)
wants(ValueError, "ctx was destroyed", lambda: by_class.put(a, local, 0))
request = heddle.Request()
wants(TypeError, "req is None: a heddle.Request", lambda: heddle.put_nbe(a, local, 0, None))
wants(RuntimeError, "has not begun this request", request.end)
request.begin()
wants(RuntimeError, "may not be nested", heddle.Request().begin)
wants(RuntimeError, "request_free: a thread has begun the request", request.free)
request.end()
with request:
    wants(RuntimeError, "end() comes first", request.free)
heddle.put_nbi(a, local, 0)  # joins nothing
wants(ValueError, "requests has the request itself", lambda: request.merge([request]))
other, shared = heddle.Request(), heddle.Request(shared=True)
heddle.put_nbe(a, local, 0, other)
heddle.put_nbe(a, local, 0, shared)
for several in (request.merge, heddle.request_wait_any, heddle.request_wait_some, heddle.request_test_any):
    wants(ValueError, "requests has one request more than once", lambda call=several: call([other, shared, other]))
wants(ValueError, "requests has a shared request", lambda: request.merge([other, shared]))
request.merge([other])
for one in (request, other, shared):
    one.wait()
shared.free()
request.free()
wants(ValueError, "req was freed", request.wait)
plan = heddle.Plan()
wants(RuntimeError, "no recording that has ended", lambda: plan.start(heddle.Request()))
plan.free()
wants(ValueError, "plan was freed", plan.begin)
recorded, part = heddle.zeros(2, "i8"), WORLD.split_strided(0, 1, 2)
plan, on_part, request = heddle.Plan(), heddle.Plan(), heddle.Request()
with plan:
    WORLD.alltoallv_nbe(a[4:8], [1, 1], [0, 1], recorded, [1, 1], [0, 1], request)
with on_part:
    part.sync_nbe(request)
heddle.free(recorded)
wants(ValueError, "a recorded source was freed by heddle.free()", lambda: plan.start(request))
part.destroy()
wants(ValueError, "team was destroyed", lambda: on_part.start(request))
plan.free()
on_part.free()
wants(ValueError, "policy is 'fast': one of auto", lambda: heddle.progress_policy("fast"))
# Locks.
lock = heddle.Lock()
wants(RuntimeError, "this PE does not have the lock", lambda: heddle.clear_lock(lock))
if me == 0:
    heddle.set_lock(lock)
    wants(RuntimeError, "it would wait for itself", lambda: heddle.set_lock(lock))
    wants(RuntimeError, "this PE has a lock in array; clear_lock comes first", lock.free)
    wants(RuntimeError, "realloc: this PE has a lock in array", lambda: heddle.realloc(lock.array, 100))
    heddle.clear_lock(lock)
heddle.barrier_all()
wants(TypeError, "lock has dtype int32: int64", lambda: heddle.set_lock(small))
# Memory.
wants(MemoryError, "the symmetric heap has no room", lambda: heddle.zeros(2**50, "u1"))
wants(MemoryError, "more than any heap", lambda: heddle.zeros((2**40, 2**40)))
wants(ValueError, "a length in shape is -1", lambda: heddle.zeros(-1))
wants(ValueError, "size is 0", lambda: heddle.malloc(0))
wants(ValueError, "alignment is 24: a power of two", lambda: heddle.align(24, 8))
wants(ValueError, "that heddle has not allocated", lambda: heddle.free(local))
wants(ValueError, "are not all symmetric memory", lambda: heddle.as_array(local.ctypes.data, 10, "i8"))
wants(ValueError, "which frees it", lambda: heddle.free(heddle.as_array(a.ctypes.data, 10, "i8")))
view = a[2:4]
heddle.free(a)
again = heddle.zeros(10, "i8")  # most likely where a was
wants(ValueError, "dest was freed", lambda: heddle.put(a, local, 0))
wants(ValueError, "dest was freed", lambda: heddle.put(view, local[:2], 0))
wants(ValueError, "source was freed", lambda: heddle.put(again, a, 0))
wants(ValueError, "array was freed before", lambda: heddle.free(view))
heddle.put(again, local, 0)

heddle.barrier_all()
if me == 0:
    print(f"errors: pass on {n} PEs")
heddle.finalize()
wants(RuntimeError, "the library is finalized", heddle.barrier_all)
wants(RuntimeError, "the library is finalized", lambda: heddle.put(again, local, 0))
wants(RuntimeError, "the library is finalized", heddle.quiet)
wants(RuntimeError, "the library is finalized", heddle.finalize)
