"""Objects of the Python bindings: memory, teams, contexts, requests, plans, locks, threads, lifetimes of buffers.

Run by oshrun; exit status 0 when all is right.
"""

import array
import gc
import threading
import weakref

import heddle
import numpy as np

heddle.init()
me, n = heddle.my_pe(), heddle.n_pes()
right, left = (me + 1) % n, (me + n - 1) % n


def check_setup():
    assert heddle.query_initialized() and heddle.query_thread() == heddle.THREAD_MULTIPLE
    assert heddle.init_thread(heddle.THREAD_SINGLE) == heddle.THREAD_MULTIPLE
    heddle.finalize()
    assert heddle.query_initialized()
    assert heddle.info_get_version() == (1, 6) and heddle.info_get_name().startswith("Heddle")
    assert heddle.pe_accessible(n - 1) and not heddle.pe_accessible(n) and not heddle.pe_accessible(-1)
    heddle.pcontrol(1)
    heddle.progress()
    heddle.progress_policy("auto")
    assert heddle.progress_network() in ("none", "epoll", "umwait", "mwaitx", "wfe", "spin")
    names = [heddle.pcntr_name(i) for i in range(heddle.pcntr_num())]
    sent = names.index("messages_sent")
    assert heddle.pcntr_description(sent).startswith("messages: ") and heddle.pcntr_get(sent) >= 0


def check_memory():
    made = heddle.zeros((3, 4), "f4")
    assert made.shape == (3, 4) and made.dtype == np.float32 and not made.any()
    whole = heddle.full(5, me, "i2")
    assert whole.tolist() == [me] * 5 and heddle.full(2, 1.5).dtype == np.float64
    copied = heddle.array([[1, 2], [3, me]])
    assert copied.tolist() == [[1, 2], [3, me]]
    assert heddle.empty(0).size == 0 and heddle.zeros((), "i4").shape == ()
    heddle.sync_all()
    assert heddle.addr_accessible(made, 0) and not heddle.addr_accessible(np.zeros(1), 0)
    raw, zero = heddle.malloc(100), heddle.calloc(10, 8)
    aligned, hinted = heddle.align(4096, 10), heddle.malloc_with_hints(10, heddle.MALLOC_ATOMICS_REMOTE)
    assert raw.nbytes == 100 and not zero.any() and aligned.ctypes.data % 4096 == 0 and hinted.nbytes == 10
    raw[:3] = [7, 8, 9]
    larger = heddle.realloc(raw, 200)
    assert larger.nbytes == 200 and larger[:3].tolist() == [7, 8, 9]
    known = heddle.as_array(larger.ctypes.data, (10, 5), "i4")
    known[0, 0] = 12
    assert larger.view("i4")[0] == 12
    heddle.p(known[0, :1], 5, me)
    assert known[0, 0] == 5
    for one in (made, whole, copied, larger, zero, aligned, hinted):
        heddle.free(one)


def check_buffers():
    dest = heddle.zeros(4, "i4")
    for source in (array.array("i", [1, 2, 3, me]), memoryview(np.array([1, 2, 3, me], "i4")),
                   np.array([[1, 2], [3, me]], "i4")):
        heddle.put(dest, source, right)
        heddle.barrier_all()
        assert dest.tolist() == [1, 2, 3, left]
        heddle.barrier_all()
    heddle.putmem(dest, b"abcd", right)
    heddle.barrier_all()
    got = bytearray(4)
    heddle.getmem(got, dest, me)
    assert got == b"abcd"
    heddle.put(dest.reshape(2, 2)[1], np.array([8, 9], "i4"), right)  # a view of a view
    heddle.barrier_all()
    assert dest[2:].tolist() == [8, 9]
    heddle.free(dest.reshape(2, 2))
    far, mine = heddle.zeros(20, "i8"), np.zeros(7, "i8")
    heddle.iput(far, np.arange(7), 5, 3, right)  # by default as many as the caller's own buffer has: 0, 3, 6
    heddle.barrier_all()
    assert far[:11:5].tolist() == [0, 3, 6] and far.sum() == 9
    heddle.iget(mine, far, 3, 5, right)
    assert mine.tolist() == [0, 0, 0, 3, 0, 0, 6]
    heddle.barrier_all()
    heddle.ibput(far, np.arange(7), 5, 4, 2, right)  # blocks 0 1 and 4 5
    heddle.barrier_all()
    assert far[[0, 1, 5, 6]].tolist() == [0, 1, 4, 5]
    heddle.free(far)


def check_elements():
    """p and g of elements without a C number: they lie where arrays of them have them."""
    for dtype, value in (("i4,i4,i4", (1, me, 3)), ("f8,i1", (me, 2)), ("S3", b"ab"), ("U2", "xy"), ("f2", me),
                         ("?", True), ("M8[s]", np.datetime64(me, "s")), (">i4", me), ("c16", 1j), ("g", me)):
        dest = heddle.zeros(4, dtype)
        for place in range(3):
            heddle.p(dest[place:place + 1], value, right)
        heddle.barrier_all()
        wanted, rest = np.zeros(4, dtype), heddle.g(dest[2:3], right)
        wanted[:3] = value
        assert rest == wanted[0] and (dest[3:] == wanted[3:]).all()
        heddle.barrier_all()
        heddle.get(wanted, dest, right)
        assert (wanted[:3] == rest).all()
        heddle.barrier_all()
        heddle.free(dest)
    values = heddle.zeros(1, "f4")
    for value in (3.4028235e38, -np.inf, np.float32(7), np.array(1.5), True):
        heddle.p(values, value, me)
        assert values[0] == np.float32(value)
    heddle.free(values)


def check_pointers():
    dest = heddle.full(3, me, "i8")
    world = heddle.TEAM_WORLD
    if heddle.TEAM_SHARED.n_pes() < n:
        far = world.translate_pe((me + n // 2) % n, heddle.TEAM_SHARED)
        assert far is not None or heddle.ptr(dest, (me + n // 2) % n) is None
        heddle.barrier_all()
        heddle.free(dest)
        return
    for peer in (heddle.ptr(dest, right), world.ptr(dest, right), heddle.team_ptr(world, dest, right)):
        assert peer is not None and peer.tolist() == [right] * 3 and peer.dtype == dest.dtype
    heddle.barrier_all()
    peer[0] = 100 + me
    heddle.barrier_all()
    assert dest[0] == 100 + left
    heddle.free(dest)


def check_teams():
    evens = heddle.TEAM_WORLD.split_strided(0, 2, (n + 1) // 2, num_contexts=1)
    assert (evens is None) == (me % 2 == 1)
    cell = heddle.zeros(1, "i8")
    if evens is not None:
        with evens:
            assert evens.my_pe() == me // 2 and evens.n_pes() == (n + 1) // 2 and evens.get_config() == 1
            assert heddle.team_my_pe(evens) == me // 2 and heddle.team_n_pes(evens) == evens.n_pes()
            assert evens.translate_pe(evens.my_pe(), heddle.TEAM_WORLD) == me
            assert heddle.TEAM_WORLD.translate_pe(1, evens) is None if n > 1 else True
            with evens.create_ctx() as ctx:
                assert ctx.get_team() is evens and ctx.n_pes == evens.n_pes()
                ctx.p(cell, 5, (evens.my_pe() + 1) % evens.n_pes())
                ctx.quiet()
            evens.sync()
            assert cell[0] == 5
            heddle.team_create_ctx(evens)  # goes with the team
    row, column = heddle.team_split_2d(heddle.TEAM_WORLD, 2)
    assert row.n_pes() == min(2, n - me // 2 * 2) and column.my_pe() == me // 2
    total = heddle.array([me], "i8")
    column.sum_reduce(total, total)
    assert total[0] == sum(range(me % 2, n, 2))
    column.destroy()
    row.destroy()
    assert heddle.TEAM_SHARED.n_pes() >= 1 and heddle.ctx_get_team(heddle.CTX_DEFAULT) is heddle.TEAM_WORLD
    heddle.free(total)
    heddle.free(cell)


def check_contexts():
    dest = heddle.zeros(4, "i8")
    with heddle.ctx_create(heddle.CTX_PRIVATE) as ctx:
        with ctx.session(heddle.CTX_SESSION_BATCH, total_ops=4):
            for place in range(4):
                ctx.put_nbi(dest[place:place + 1], np.array([me * 10 + place]), right)
        ctx.fence()
        ctx.pe_quiet([right])
        ctx.quiet_local()
        while not ctx.quiet_test():
            pass
        assert ctx.info().options == heddle.CTX_PRIVATE and ctx.info().bytes > 0
    heddle.pe_quiet([])
    heddle.fence()
    heddle.barrier_all()
    assert dest.tolist() == [left * 10 + place for place in range(4)]
    heddle.free(dest)


def check_requests():
    dest = heddle.zeros(6, "i8")
    first, second, shared = heddle.Request(), heddle.request_allocate(), heddle.Request(shared=True)
    heddle.put_nbe(dest[:2], np.full(2, me), right, first)
    with second:
        heddle.put_nbi(dest[2:4], np.full(2, me), right)
    heddle.put_nbe(dest[4:], np.full(2, me), right, shared)
    shared.fence()
    shared.wait_local()
    left_over = {0, 1}
    while left_over:
        found = heddle.request_wait_any([first, second])
        if found is None:
            break
        left_over.discard(found)
    heddle.request_wait_some([first, second, shared])
    heddle.request_test_any([first, second])
    first.merge([second])
    heddle.request_wait(first)
    while not shared.test():
        pass
    heddle.barrier_all()
    assert dest.tolist() == [left] * 6
    for one in (first, second, shared):
        one.free()
    heddle.free(dest)


def check_plans():
    source, total = heddle.zeros(1, "i8"), heddle.zeros(1, "i8")
    plan, request = heddle.Plan(), heddle.Request()
    with plan:
        heddle.TEAM_WORLD.sum_reduce_nbe(total, source, request)
    for step in range(3):
        source[0] = me + step
        plan.start(request)
        request.wait()
        assert total[0] == n * (n - 1) // 2 + step * n
    plan.free()
    heddle.barrier_all()
    heddle.free(source)
    heddle.free(total)


def check_locks():
    lock, count = heddle.Lock(), heddle.zeros(1, "i8")
    for _ in range(20):
        with lock:
            heddle.p(count, heddle.g(count, 0) + 1, 0)
    heddle.barrier_all()
    assert heddle.g(count, 0) == 20 * n
    heddle.barrier_all()
    if me == 0:
        assert heddle.test_lock(lock)
        heddle.clear_lock(lock)
    heddle.barrier_all()
    lock.free()
    heddle.free(count)


def check_threads():
    """A thread that waits in the library lets others run: it is they who end its wait."""
    flags, dest = heddle.zeros(2, "i8"), heddle.zeros(8, "i8")
    seen = []

    def wait():
        heddle.wait_until(flags[:1], heddle.CMP_EQ, 1)
        seen.append("woken")

    waiter = threading.Thread(target=wait)
    waiter.start()
    for _ in range(10000):
        seen.append(0)
    heddle.atomic_set(flags[:1], 1, me)
    waiter.join()
    assert seen[-1] == "woken"

    def put(thread):
        with heddle.Context(heddle.CTX_PRIVATE) as own:
            for _ in range(50):
                own.atomic_add(dest[thread:thread + 1], 1, right)

    threads = [threading.Thread(target=put, args=(thread,)) for thread in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    heddle.barrier_all()
    assert dest.tolist() == [50] * 4 + [0] * 4
    heddle.free(flags)
    heddle.free(dest)


def check_lifetimes():
    """A temporary source stays until the operation is complete, and no longer."""

    class Kept(np.ndarray):
        pass

    dest, ends = heddle.zeros(1000, "i8"), []
    for finish, post in ((heddle.quiet, {}), (heddle.barrier_all, {}), (None, {"req": heddle.Request()})):
        source = np.arange(1000, dtype="i8").view(Kept)
        ends.append(weakref.ref(source))
        (heddle.put_nbe if post else heddle.put_nbi)(dest, source, right, **post)
        del source
        gc.collect()
        assert ends[-1]() is not None
        (finish or post["req"].wait)()
        gc.collect()
        assert ends[-1]() is None
    heddle.barrier_all()
    assert dest.tolist() == list(range(1000))
    heddle.barrier_all()
    sources = [np.full(10, pe, "i8").view(Kept) for pe in range(n)]
    ends = [weakref.ref(source) for source in sources]
    for pe, source in enumerate(sources):
        heddle.put_nbi(dest[:10], source, pe)
    del sources, source
    heddle.pe_quiet([right])
    assert [one() is None for one in ends] == [pe == right for pe in range(n)]
    heddle.pe_quiet([pe for pe in range(n) if pe != right])
    assert [one() is None for one in ends] == [True] * n
    heddle.barrier_all()
    heddle.free(dest)


def check_begun_request():
    """A request that has begun stays until it ends, though the program has lost it."""
    heddle.Request().begin()
    gc.collect()
    found = [one for one in gc.get_objects() if isinstance(one, heddle.Request)]
    dest = heddle.zeros(4, "i8")
    heddle.put_nbi(dest, np.full(4, me), right)
    begun = [one for one in found if one._thread]
    assert len(begun) == 1
    begun[0].end()
    begun[0].wait()
    heddle.barrier_all()
    assert dest.tolist() == [left] * 4
    heddle.free(dest)


def check_ended_contexts():
    """Contexts that have ended leave nothing in their team, and all end with it."""
    team = heddle.TEAM_WORLD.split_strided(0, 1, n)
    ends = []
    for parent in (heddle.TEAM_WORLD, team):
        with parent.create_ctx() as context:
            ends.append(weakref.ref(context))
    del context
    gc.collect()
    assert [one() is None for one in ends] == [True, True]
    made, by_name = team.create_ctx(), heddle.Context(0, team)
    team.destroy()
    assert "destroyed" in repr(made) and "destroyed" in repr(by_name)


def check_lost_contexts():
    """A context that the program loses, or whose team ends, keeps the sources of its operations until finalize."""

    class Kept(np.ndarray):
        pass

    dest = heddle.zeros(1000, "i8")
    world = heddle.TEAM_WORLD.split_strided(0, 1, n)
    for context in (heddle.Context(), world.create_ctx()):
        source = np.arange(1000, dtype="i8").view(Kept)
        lost.append(weakref.ref(source))
        context.put_nbi(dest, source, right)
        del source, context
    world.destroy()
    gc.collect()
    assert [one() is None for one in lost] == [False, False]


lost = []
for check in [value for name, value in globals().items() if name.startswith("check_")]:
    heddle.barrier_all()
    check()
heddle.barrier_all()
if me == 0:
    print(f"objects: pass on {n} PEs")
kept = heddle.full(2, 3, "i4")
heddle.finalize()
gc.collect()
assert [one() is None for one in lost] == [True, True]
assert len(kept.tolist()) == 2  # an array that outlives the library can be read, though its elements are lost
