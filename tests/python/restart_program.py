"""A second start of the library: what was made before the first end is no more, though its addresses and handles are
used again. Run by oshrun; exit status 0 when all is right.
"""

import gc
import weakref

import heddle
import numpy as np


def refuses(name, call):
    try:
        call()
    except ValueError as error:
        assert f"{name} is from before heddle.finalize()" in str(error), error
        return
    raise AssertionError(f"{name} of the first life is taken")


heddle.init()
me, n = heddle.my_pe(), heddle.n_pes()
old, team, lock = heddle.zeros(8, "i8"), heddle.TEAM_WORLD.split_strided(0, 1, n), heddle.Lock()
context, request, plan = heddle.Context(), heddle.Request(True), heddle.Plan()
with plan:
    heddle.TEAM_WORLD.sum_reduce_nbe(old[:4], old[4:], request)
if me == 0:
    heddle.set_lock(lock)
    heddle.clear_lock(lock)
heddle.finalize()

heddle.init()
new, again = heddle.zeros(8, "i8"), heddle.Lock()
ctx, req = heddle.Context(), heddle.Request()
refuses("dest", lambda: heddle.put(old, np.arange(8), me))
refuses("source", lambda: heddle.put(new, old, me))
refuses("array", lambda: heddle.free(old))
refuses("lock", lambda: heddle.set_lock(lock))
refuses("ctx", lambda: context.put(new, np.arange(8), me))
refuses("ctx", context.destroy)
refuses("team", team.sync)
refuses("team", team.destroy)
refuses("req", lambda: heddle.put_nbe(new, np.arange(8), me, request))
refuses("req", request.wait)
refuses("plan", lambda: plan.start(req))
assert "destroyed" in repr(context) and "destroyed" in repr(team) and "freed" in repr(request)
with team, context:  # their blocks end without them
    pass
source = np.arange(8)
watched = weakref.ref(source)
heddle.put_nbi(new, source, (me + 1) % n)
del source
context = request = plan = None
gc.collect()
assert watched() is not None
with again:
    heddle.TEAM_WORLD.my_pe()
heddle.barrier_all()
assert watched() is None and new.tolist() == list(range(8))
if me == 0:
    print(f"restart: pass on {n} PEs")
heddle.finalize()
