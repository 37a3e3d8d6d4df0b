"""Lines to paste: the command, the variables and the calls that a setup stands for."""

from shmem_mt.targets.libraries import CHANNELS, ORDERS, SETTINGS

_CONTEXTS = {
    "default": "// no context of its own: shmem_put, shmem_get, ... use SHMEM_CTX_DEFAULT",
    "shared": "shmem_ctx_create(0, &ctx);  // once in each PE, used by all of its threads",
    "private": "shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx);  // in each thread",
    "serialized": "shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx);  // once in each PE, used under a lock",
}
_POOL = "for (int i = 0; i < {0}; ++i) shmem_ctx_create(0, &ctx[i]);  // once in each PE; thread t uses ctx[t % {0}]"
_PUT = "shmemx_ctx_double_put_nbe(ctx, dest, source, count, pe, &request);"
SYNCS = {
    "quiet": "shmem_ctx_quiet(ctx);  // each thread, behind its operations",
    "quiet_each": "shmem_ctx_quiet(ctx);  // behind each operation",
    "thread_quiet": "// a barrier of the threads, then in one of them:\nshmem_ctx_quiet(ctx);",
    "quiet_barrier": "shmem_ctx_quiet(ctx);  // each thread; then one of each PE:\nshmem_barrier_all();",
    "barrier_all": "shmem_barrier_all();  // one thread of each PE, behind a barrier of its threads",
    "pe_quiet": "shmem_ctx_pe_quiet(ctx, &pe, 1);  // of the PEs that were written to",
    "blocking": "shmem_double_sum_reduce(team, dest, source, count);  // one thread of each PE",
    "fence_flag": "shmem_ctx_fence(ctx);\nshmem_ctx_long_p(ctx, &flag, 1, pe);  // the receiver: shmem_long_wait_until",
    "last_word": "shmem_long_wait_until(&word, SHMEM_CMP_EQ, value);  // the receiver, for the last word",
    "self_flag": "shmem_long_wait_until(&word, SHMEM_CMP_EQ, value);  // the receiver, for each message",
    "put_signal": "shmem_ctx_putmem_signal(ctx, dest, source, bytes, &signal, 1, SHMEM_SIGNAL_ADD, pe);",
    "request_each": f"{_PUT}\nshmemx_request_wait(&request);",
    "request_merged": f"{_PUT}  // one request for a thread's operations\nshmemx_request_wait(&request);",
    "request_shared": "shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED);  // once, for all threads\n"
    f"{_PUT}  // each thread\nshmemx_request_wait(&request);  // one thread, behind a barrier of the threads",
    "request_wait": "shmemx_double_sum_reduce_nbe(team, dest, source, count, &request);  // one thread of each PE\n"
    "shmemx_request_wait(&request);",
    "all_threads": "shmemx_double_sum_reduce_mt(team, dest, source, count, thread, threads);  // by all threads",
    "team_sync": "shmem_team_sync(SHMEM_TEAM_WORLD);",
    "locked": "// a lock of the program around the operations and:\nshmem_quiet();",
}


def command(setup):
    """How the program is started: each PE bound to its cores, as it was when it was measured (libraries.Heddle)."""
    cores = f"-c {setup.threads}" if setup.threads > 1 else "--bind core"
    return f"oshrun -n {setup.pes} {cores} ./program"


def environment(setup):
    """The variables of that command, as NAME=VALUE."""
    told = [f"OMP_NUM_THREADS={setup.threads}"] if setup.threads > 1 else []
    variables = {**SETTINGS, **ORDERS, **CHANNELS}.get(setup.setting, {})
    return told + [f"{name}={value}" for name, value in variables.items()]


def calls(setup):
    """What the program calls, as lines."""
    levels = {"single": "SHMEM_THREAD_SINGLE", "funneled": "SHMEM_THREAD_FUNNELED"}
    level = levels.get(setup.level or ("single" if setup.threads == 1 else ""), "SHMEM_THREAD_MULTIPLE")
    level = "SHMEM_THREAD_SERIALIZED" if setup.level == "serialized" else level
    kind, _, count = setup.context.partition(":")
    context = _POOL.format(count) if kind == "pool" else _CONTEXTS.get(kind, f"// context {setup.context}")
    first = [f"shmem_init_thread({level}, &provided);", *context.split("\n")]
    sync = SYNCS.get(setup.sync, f"// synchronization {setup.sync} (shmem-mt list)")
    return [*first, *_through(kind, count, setup.sync, sync).split("\n")]


def _through(kind, count, name, sync):
    """The calls of a synchronization through that kind of context, of which a pool has `count`."""
    if kind == "default":
        return sync.replace("_ctx_", "_").replace("(ctx);", "();").replace("(ctx, ", "(")
    if kind != "pool":
        return sync
    if name == "thread_quiet":  # one thread completes what all have sent, through all contexts
        every = f"for (int i = 0; i < {count}; ++i) shmem_ctx_quiet(ctx[i]);"
        return sync.replace("shmem_ctx_quiet(ctx);", every)
    return sync.replace("(ctx)", f"(ctx[t % {count}])").replace("(ctx, ", f"(ctx[t % {count}], ")
