"""Lines to paste: the command, the variables and the calls that a setup stands for."""

from shmem_mt.targets.libraries import CHANNELS, ORDERS, SETTINGS

_CONTEXTS = {
    "default": "no context of its own: shmem_put, shmem_get, ... use SHMEM_CTX_DEFAULT",
    "shared": "shmem_ctx_create(0, &ctx);  // once in each PE, used by all of its threads",
    "private": "shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx);  // in each thread",
    "serialized": "shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx);  // once in each PE, used under a lock",
}
_SYNCS = {
    "quiet": "shmem_ctx_quiet(ctx);  // each thread, behind its operations",
    "quiet_each": "shmem_ctx_quiet(ctx);  // behind each operation",
    "thread_quiet": "// a barrier of the threads, then in one of them:\nshmem_ctx_quiet(ctx);",
    "quiet_barrier": "shmem_ctx_quiet(ctx);  // each thread; then one of each PE:\nshmem_barrier_all();",
    "barrier_all": "shmem_barrier_all();  // one thread of each PE, behind a barrier of its threads",
    "pe_quiet": "shmem_ctx_pe_quiet(ctx, &pe, 1);  // of the PEs that were written to",
    "blocking": "the operation itself: it returns when it is done",
    "fence_flag": "shmem_ctx_fence(ctx);\nshmem_ctx_long_p(ctx, &flag, 1, pe);  // the receiver: shmem_long_wait_until",
    "last_word": "the receiver waits for the last word: shmem_long_wait_until(&word, SHMEM_CMP_EQ, value);",
    "self_flag": "the receiver waits for each message itself: shmem_long_wait_until(&word, SHMEM_CMP_EQ, value);",
    "put_signal": "shmem_ctx_putmem_signal(ctx, dest, source, bytes, &signal, 1, SHMEM_SIGNAL_ADD, pe);",
    "request_each": "shmemx_double_put_nbe(dest, source, count, pe, &request);\nshmemx_request_wait(&request);",
    "request_merged": "shmemx_double_put_nbe(dest, source, count, pe, &request);  // one request for a thread's "
    "operations\nshmemx_request_wait(&request);",
    "request_shared": "shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED);  // once, for all threads\n"
    "shmemx_request_wait(&request);",
    "request_wait": "shmemx_double_sum_reduce_nbe(team, dest, source, count, &request);  // one thread of each PE\n"
    "shmemx_request_wait(&request);",
    "all_threads": "shmemx_double_sum_reduce_mt(team, dest, source, count, thread, threads);  // by all threads",
    "team_sync": "shmem_team_sync(SHMEM_TEAM_WORLD);",
    "locked": "// a lock of the program around the operations and:\nshmem_quiet();",
}


def command(setup):
    """How the program is started."""
    cores = f" -c {setup.threads}" if setup.threads > 1 else ""
    return f"oshrun -n {setup.pes}{cores} ./program"


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
    pool = f"shmem_ctx_create(0, &ctx[i]);  // {count} of them in each PE; thread t uses ctx[t % {count}]"
    context = pool if kind == "pool" else _CONTEXTS.get(kind, f"context {setup.context}")
    first = [f"shmem_init_thread({level}, &provided);", *context.split("\n")]
    sync = _SYNCS.get(setup.sync, f"synchronization {setup.sync} (shmem-mt list)")
    if kind == "default":
        sync = sync.replace("shmem_ctx_", "shmem_").replace("(ctx);", "();").replace("(ctx, ", "(")
    return [*first, *sync.split("\n")]
