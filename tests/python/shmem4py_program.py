"""An OpenSHMEM program in Python: each PE checks puts, gets, atomics, signals, collectives, locks, contexts and teams.

Run by oshrun; exit status 0 when all is right.
"""

import numpy as np
from shmem4py import shmem

me, n = shmem.my_pe(), shmem.n_pes()
right, left = (me + 1) % n, (me + n - 1) % n


def rma():
    dest = shmem.zeros(7, dtype="i8")
    shmem.put(dest, np.arange(7, dtype="i8") + 10 * me, right)
    shmem.barrier_all()
    assert list(dest) == [i + 10 * left for i in range(7)], dest
    got = np.zeros(7, dtype="i8")
    shmem.get(got, dest, right)
    assert list(got) == [i + 10 * me for i in range(7)], got
    shmem.barrier_all()
    shmem.free(dest)


def atomics():
    counter = shmem.zeros(1, dtype="i8")
    before = shmem.atomic_fetch_add(counter, 5, 0)
    assert before % 5 == 0 and before < 5 * n
    shmem.barrier_all()
    assert shmem.atomic_fetch(counter, 0) == 5 * n
    shmem.barrier_all()
    shmem.free(counter)


def signals():
    data, signal = shmem.zeros(3, dtype="f8"), shmem.new_signal()
    shmem.put_signal(data, np.full(3, me + 0.5), right, signal, 1, shmem.SIGNAL_SET)
    shmem.signal_wait_until(signal, shmem.CMP.EQ, 1)
    assert list(data) == [left + 0.5] * 3
    shmem.barrier_all()
    shmem.del_signal(signal)
    shmem.free(data)


def collectives():
    source, dest = shmem.array([me + 1, me + 2], dtype="i8"), shmem.zeros(2 * n, dtype="i8")
    shmem.sum_reduce(dest, source, 2)
    assert list(dest[:2]) == [n * (n + 1) // 2, n * (n + 3) // 2], dest
    shmem.barrier_all()
    shmem.fcollect(dest, source, 2)
    assert list(dest) == [pe + 1 + i for pe in range(n) for i in range(2)], dest
    shmem.barrier_all()
    shmem.broadcast(dest, source, n - 1, 2)
    assert list(dest[:2]) == [n, n + 1], dest
    shmem.barrier_all()
    shmem.free(dest)
    shmem.free(source)


def locks():
    lock, counter = shmem.new_lock(), shmem.zeros(1, dtype="i8")
    for _ in range(20):
        shmem.set_lock(lock)
        value = np.zeros(1, dtype="i8")
        shmem.get(value, counter, 0)
        shmem.put(counter, value + 1, 0)
        shmem.clear_lock(lock)
    shmem.barrier_all()
    assert shmem.atomic_fetch(counter, 0) == 20 * n
    shmem.barrier_all()
    shmem.free(counter)
    shmem.del_lock(lock)


def teams_and_contexts():
    team = shmem.TEAM_WORLD.split_strided(0, 2, (n + 1) // 2)
    if me % 2 == 0:
        assert team.my_pe() == me // 2 and team.n_pes() == (n + 1) // 2
        ctx = team.create_ctx()
        cell = 2 * ((me // 2 + 1) % team.n_pes())
        assert shmem.TEAM_WORLD.translate_pe(cell, team) == cell // 2
        ctx.destroy()
        team.sync()
        team.destroy()


for check in (rma, atomics, signals, collectives, locks, teams_and_contexts):
    shmem.barrier_all()
    check()
shmem.barrier_all()
if me == 0:
    print(f"shmem4py: pass on {n} PEs")
