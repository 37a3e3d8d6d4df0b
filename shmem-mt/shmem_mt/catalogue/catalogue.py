"""What can be measured: benchmarks, their operations, and the synchronizations they use."""

from dataclasses import dataclass

from shmem_mt.errors import UserError

# Which numbers of PEs a benchmark can have. EVEN: the lower half sends to the upper half.
EVEN, EVEN_OR_ONE, ANY = "even", "even, or 1", "any"


@dataclass(frozen=True)
class Benchmark:
    name: str
    program: str
    what: str
    ops: tuple
    pes: str = EVEN
    is_study: bool = False  # measured only where --only names it, and then over a network unless --fabric is given


# Rules of order (params.rule of the benchmark ordering): of puts, and of messages and puts of MPI.
PUT_RULES = ("relaxed", "ordered", "reorder-buffer", "fence", "quiet")
MPI_RULES = ("two-sided", "two-sided-any", "mpi-put", "mpi-put-flush")

# Where the PEs of a pair are, on one host or on two (params.partner), and the programs whose PEs talk in pairs.
PARTNERS = ("near", "far")
PAIRED = ("latency", "bandwidth", "message_rate", "completion", "overlap", "idle_waiters", "ordering")

LAUNCH = "launch"  # an operation of startup that the driver times, not the program

# Of mini-apps with sums over all PEs; and of those whose products need ghosts, too.
_FORMS = ("blocking", "manual", "auto", "thread:spin", "thread:monitor", "thread:block", "pipelined")
_FORMS_WITH_GHOSTS = ("blocking", "overlapped", *_FORMS[1:])

BENCHMARKS = (
    Benchmark(
        "latency",
        "latency",
        "seconds an operation that the next one waits for",
        (
            "put_round_trip",
            "put_signal_round_trip",
            "p_quiet",
            "put_quiet",
            "g",
            "get",
            "atomic_add_quiet",
            "atomic_fetch_add",
            "atomic_fetch",
            "barrier_all",
            "sync_all",
            "wait_burn",
        ),
    ),
    Benchmark("bandwidth", "bandwidth", "bytes a second by size, beside memcpy", ("put", "get")),
    Benchmark("bibandwidth", "bandwidth", "bytes a second, both directions at once", ("put_both_ways",)),
    Benchmark(
        "message-rate",
        "message_rate",
        "messages a second, blind and consumed, beside plain stores and loads",
        (
            "p",
            "g",
            "put",
            "get",
            "put_nbi",
            "get_nbi",
            "atomic_add",
            "atomic_fetch_add",
            "atomic_fetch_add_nbi",
            "consumed",
            "put_quiet",
            "put_nbe",
            "get_nbe",
        ),
    ),
    Benchmark(
        "requests",
        "message_rate",
        "operations a second by what completes them: quiet, one request each, merged, shared",
        ("requests_put", "requests_get", "requests_fetch_add"),
    ),
    Benchmark(
        "completion",
        "completion",
        "seconds until a thread knows that its own put has arrived, by how it knows, while other threads put blocks",
        ("put",),
    ),
    Benchmark(
        "overlap",
        "overlap",
        "how much of a non-blocking put, get or collective disappears behind a computation, by who makes progress",
        ("put", "get", "broadcast", "fcollect", "alltoall", "sum_reduce"),
        EVEN_OR_ONE,
    ),
    Benchmark(
        "collectives",
        "collectives",
        "seconds a blocking collective by size, PEs and team, beside a plain copy and MPI",
        (
            "barrier_all",
            "sync_all",
            "broadcast",
            "collect",
            "fcollect",
            "alltoall",
            "alltoalls",
            "sum_reduce",
            "max_reduce",
            "sum_inscan",
            "copy",
        ),
    ),
    Benchmark(
        "collectives-mt",
        "collectives_mt",
        "seconds a collective that all threads of every PE call together, by size, PEs and threads, beside a copy",
        (
            "team_sync",
            "team_barrier",
            "broadcast",
            "collect",
            "fcollect",
            "alltoall",
            "sum_reduce",
            "max_reduce",
            "copy",
        ),
        ANY,
    ),
    Benchmark(
        "halo",
        "halo",
        "seconds an exchange of the six faces of a box in a 3-D grid of PEs, threads sharing the faces; and cell "
        "updates a second of Jacobi's method with 7 and 27 points, in step and asynchronous, a box and a context a "
        "thread",
        ("exchange", "jacobi7", "jacobi7-overlapped", "jacobi27", "async7", "async27"),
        ANY,
    ),
    Benchmark(
        "alltoallv",
        "alltoallv",
        "bytes a second of an exchange of uneven blocks among all PEs, threads sharing the peers",
        ("put", "put_nbi", "alltoallv", "alltoallv_nbe", "plan"),
        ANY,
    ),
    Benchmark(
        "patterns",
        "patterns",
        "what the whole job gets of the same cores, by how they are divided into PEs and threads, by context and by "
        "synchronization: bytes or operations a second, or seconds of a round trip or a sum",
        (
            "latency",
            "stream",
            "bidirectional",
            "incast",
            "fan-out",
            "halo2d",
            "halo3d",
            "alltoall",
            "random",
            "collective",
        ),
        ANY,
    ),
    Benchmark(
        "wait",
        "wait",
        "what waiting costs, by how a PE waits: how late it goes on, its CPU time, barriers beside context switches",
        ("wait_until", "barrier_all", "team_sync", "request_wait", "barrier_cost"),
        ANY,
    ),
    Benchmark(
        "idle-waiters",
        "idle_waiters",
        "seconds and CPU time of a round trip of one thread while further threads of its PE wait, by their number",
        ("round_trip",),
    ),
    Benchmark(
        "startup",
        "startup",
        "seconds of a launch, of shmem_init, the first barrier and shmem_finalize (slowest PE), and a PE's private "
        "memory, by PEs",
        (LAUNCH, "init", "first_barrier", "finalize", "before_init", "after_init", "after_barrier"),
        ANY,
    ),
    Benchmark(
        "cg",
        "cg",
        "iterations a second of NPB CG, verified, with blocking and with non-blocking collectives under each policy of "
        "progress",
        _FORMS,
        ANY,
    ),
    Benchmark(
        "hpccg",
        "hpccg",
        "iterations a second of conjugate gradients on a 27-point grid, verified, with blocking and with non-blocking "
        "sums under each policy of progress",
        _FORMS_WITH_GHOSTS,
        ANY,
    ),
    Benchmark(
        "is",
        "is",
        "keys a second of NPB IS (integer sort), verified, threads counting, sending and ranking",
        ("default", "private", "pieces", "requests"),
        ANY,
    ),
    Benchmark(
        "gups",
        "gups",
        "random updates a second of a table over all PEs, atomic and verified, and operations a second of a hash table "
        "in it, one by one and in batches, by a quiet and under a request",
        ("atomic", "private", "windowed", "batched", "hash", "hash_nbi", "hash_batched"),
        ANY,
    ),
    Benchmark(
        "minimd",
        "minimd",
        "atom-steps a second of Lennard-Jones molecular dynamics, threads on the default context, on their own, and "
        "with ghosts sent while forces are computed",
        ("default", "private", "auto"),
        ANY,
    ),
    Benchmark(
        "mandelbrot",
        "mandelbrot",
        "pixels a second of the Mandelbrot set with work stealing, threads on the default context and on their own",
        ("default", "private", "default-pipelined", "pipelined"),
        ANY,
    ),
    Benchmark(
        "minife",
        "minife",
        "seconds of the steps of a finite-element computation, verified, and iterations a second of its solver, with "
        "blocking and with non-blocking sums under each policy of progress",
        _FORMS_WITH_GHOSTS,
        ANY,
    ),
    Benchmark(
        "ordering",
        "ordering",
        "messages a second by rule of order, size, messages outstanding and mechanism, beside MPI's; a study, measured "
        "only where --only names it",
        (*PUT_RULES, *MPI_RULES),
        is_study=True,
    ),
)

# A thread beside each PE that never sleeps: where cores are few, a program waits for its turn on one most of the time.
SPINNING_OPS = ("thread:spin",)

# Where a peer is in reach of an instruction these are what the blocking forms are.
NETWORK_OPS = ("atomic_fetch_add_nbi", "requests_fetch_add")

# How large a mini-app's problem is: a fraction of a second, about a second, ten, minutes. A number is what it counts.
SIZES = ("tiny", "small", "medium", "large")
SCALES = ("strong", "weak")

SYNCS = {
    "quiet": "quiet after the messages (bandwidth: after each window)",
    "quiet_each": "quiet after every operation",
    "thread_quiet": "the threads of a PE meet, then one quiet by one of them for all",
    "pe_quiet": "shmem_pe_quiet of the PEs that a thread sends to (OpenSHMEM 1.6)",
    "blocking": "the operation itself returns when it is done",
    "last_word": "the receiver waits for the 8-byte message itself",
    "fence_flag": "put, fence, flag; the receiver waits for the flag",
    "self_flag": "every message is its own flag",
    "request_each": "a request for every operation, waited for at once (shmemx.h)",
    "request_merged": "all operations of a thread under one request, one wait",
    "request_shared": "all operations of all threads under one SHARED request, one wait",
    "put_signal": "put with signal (OpenSHMEM 1.5)",
    "quiet_barrier": "quiet by each thread, then a barrier of all threads of all PEs",
    "neighbor_alltoallv": "shmemx_neighbor_alltoallv_nbe of one thread, and its request (shmemx.h)",
    "plan": "as neighbor_alltoallv, recorded once and started with shmemx_request_start (shmemx.h)",
    "wait_until": "a PE, or each of its threads, waits in shmem_long_wait_until",
    "barrier_all": "shmem_barrier_all",
    "sync_all": "shmem_sync_all",
    "team_sync": "shmem_team_sync; of collectives-mt shmemx_team_sync_mt by all threads (shmemx.h)",
    "team_barrier": "shmemx_team_barrier_mt by all threads (shmemx.h)",
    "all_threads": "all threads of a PE call the collective together (shmemx.h)",
    "request_wait": "shmemx_request_wait for a non-blocking collective (shmemx.h)",
    "flush": "MPI: lock_all once, MPI_Win_flush behind each epoch; bare UCX: a flush behind one-sided operations",
    "lock": "MPI: MPI_Win_lock and MPI_Win_unlock around each epoch",
    "fence": "MPI: MPI_Win_fence of the pair behind each epoch",
    "pscw": "MPI: post, start, complete and wait around each epoch",
    "waitall": "MPI: messages, MPI_Waitall on both sides, an answer to each epoch",
    "answer": "bare UCX: the target's answer behind the last active message",
}

# Which thread level a program asks for (params.level of the benchmark patterns).
LEVELS = ("single", "funneled", "serialized", "multiple")

# Mini-apps that have several of them; without --sync each is measured with the first.
_EXCHANGES = ("put_signal", "quiet_barrier", "request_merged", "neighbor_alltoallv", "plan")
APP_SYNCS = {"hpccg": _EXCHANGES, "minife": _EXCHANGES, "minimd": _EXCHANGES[:3]}

# What the target of a put does with its payload (params.touch), and who had the line of a get or an atomic operation
# (params.owner).
TOUCHES = ("read", "write-only")
OWNERS = ("handed-over", "warm", "contended", "false-sharing")

# Who makes progress while a PE computes (params.policy of the benchmark overlap). "auto" is what a library does by
# itself; the others are Heddle's (shmemx_progress_policy), and "polled" is "manual" with polls in the computation.
POLICIES = ("manual", "polled", "auto", "thread", "thread:spin", "thread:monitor", "thread:block")

# What a PE computes meanwhile (params.computation of the benchmark overlap).
COMPUTATIONS = ("registers", "fma", "branches", "l1", "memory")


def names():
    return [benchmark.name for benchmark in BENCHMARKS]


def select(only):
    """The benchmarks named in `only` (a list; None: all but studies). Raises UserError for a name that is none."""
    if only is None:
        return [benchmark for benchmark in BENCHMARKS if not benchmark.is_study]
    for name in only:
        if name not in names():
            raise UserError(f"no benchmark is called {name}; there are {', '.join(names())}")
    if not only:
        raise UserError("--only names no benchmark")
    return [benchmark for benchmark in BENCHMARKS if benchmark.name in only]


def check_pes(benchmarks, counts):
    """Raises UserError for a number of PEs that one of the benchmarks cannot have."""
    for count in counts or ():
        for benchmark in benchmarks:
            if count % 2 and benchmark.pes != ANY and not (count == 1 and benchmark.pes == EVEN_OR_ONE):
                raise UserError(f"--pes {count}: for {benchmark.name} the number of PEs must be {benchmark.pes}")


def check_policies(policies):
    for policy in policies or []:
        if policy not in POLICIES:
            raise UserError(f"no progress policy is called {policy}; there are {', '.join(POLICIES)}")


def check_computations(kinds):
    for kind in kinds or []:
        if kind not in COMPUTATIONS:
            raise UserError(f"no computation is called {kind}; there are {', '.join(COMPUTATIONS)}")


def check_partners(partners):
    for partner in partners or []:
        if partner not in PARTNERS:
            raise UserError(f"--partners {partner}: there are {', '.join(PARTNERS)}")


def check_syncs(syncs):
    for sync in syncs or []:
        if sync not in SYNCS:
            raise UserError(f"no synchronization is called {sync}; there are {', '.join(SYNCS)}")
