"""What each benchmark does: words, operations, and the steps of a picture of its messages. explain.py shows them."""

from dataclasses import dataclass

from shmem_mt.catalogue import catalogue
from shmem_mt.catalogue.ordering_explanation import ORDERING
from shmem_mt.catalogue.pattern_explanation import PATTERNS


@dataclass(frozen=True)
class Explanation:
    words: str  # what happens, what the clock sees, what the figure says
    ops: dict  # every operation of the benchmark, and what it is
    columns: tuple  # of the picture
    steps: tuple  # as message_picture.draw takes them


_FORMS = {
    "blocking": "sums over all PEs are blocking collectives",
    "overlapped": "blocking sums; the exchange is hidden behind the rows that need no ghosts",
    "manual": "non-blocking sums; the program polls in its matrix product",
    "auto": "non-blocking sums, under the library's own policy of progress",
    "thread:spin": "non-blocking sums; a thread of the library spins for them",
    "thread:monitor": "non-blocking sums; a thread of the library watches a cache line for them",
    "thread:block": "non-blocking sums; a thread of the library sleeps until they need it",
    "pipelined": "both inner products in one non-blocking sum, hidden behind the product (Ghysels and Vanroose)",
}
_COLLECTIVES = {
    "broadcast": "one PE's data to all",
    "collect": "the data of all PEs, one behind the other, to all; sizes may differ",
    "fcollect": "the data of all PEs, one behind the other, to all; sizes are equal",
    "alltoall": "a block from each PE to each",
    "alltoalls": "a block from each PE to each, every second element",
    "sum_reduce": "the sum over all PEs, to all; doubles",
    "max_reduce": "the maximum over all PEs, to all; longs",
    "sum_inscan": "the sum over the PE itself and those before it; doubles",
    "copy": "every PE copies as many bytes at once: the floor of the report",
}
_SUM = ("PE 0", "PE 1", "PE 2")

EXPLANATIONS = {
    "latency": Explanation(
        "Every operation waits for the one before. Round trips go there and back, and the figure is both ways. The "
        "receiver of a round trip either loads every cache line before it answers (touch: read) or looks at the last "
        "one (write-only). What a get or an atomic costs depends on who had the line (owner).",
        {
            "put_round_trip": "put there and back; the message is the flag, or a fence and a flag stand behind it",
            "put_signal_round_trip": "put with signal there and back",
            "p_quiet": "8 bytes by shmem_p, then quiet",
            "put_quiet": "put, then quiet",
            "g": "8 bytes by shmem_g",
            "get": "blocking get",
            "atomic_add_quiet": "atomic add, then quiet",
            "atomic_fetch_add": "atomic fetch-add",
            "atomic_fetch": "atomic fetch",
            "barrier_all": "shmem_barrier_all, until the slowest PE has left it",
            "sync_all": "shmem_sync_all, until the slowest PE has left it",
            "wait_burn": "CPU seconds of a PE that waits for one that sleeps, and how late it wakes",
        },
        ("PE 0", "PE 1"),
        (
            (0, "clock starts"),
            (0, 1, "put, fence, flag"),
            (1, "waits for the flag, reads all"),
            (1, 0, "put, fence, flag"),
            (0, "waits for the flag, reads all"),
            (0, "... as often as the sample asks"),
            (0, "clock stops: time / round trips"),
        ),
    ),
    "bandwidth": Explanation(
        "One direction, by size. Puts that the target reads go through a ring, and the target gives room back when it "
        "has loaded every line; blind puts and gets fill a window of 4 to 64 messages, then quiet. memcpy through the "
        "same windows is measured in turns with blind puts. The clock is the common window of all senders. Over a "
        "network MPI and bare UCX stand beside it.",
        {"put": "blocking puts, read by the target or blind", "get": "blocking gets"},
        ("PE 0", "PE 1"),
        (
            (0, "clock starts"),
            (0, 1, "put, put, put, ..."),
            (0, 1, "fence, flag"),
            (1, "loads every line of each message"),
            (1, 0, "credit: so many are read"),
            (0, "... round the ring"),
            (1, 0, "the last credit"),
            (0, "clock stops: bytes / time"),
        ),
    ),
    "bibandwidth": Explanation(
        "As blind bandwidth, with both PEs of a pair sending at once. The bytes of both directions count.",
        {"put_both_ways": "blocking puts, a quiet behind each window, both ways at once"},
        ("PE 0", "PE 1"),
        (
            "all start; clock starts",
            (0, 1, "puts, quiet; more puts"),
            (1, 0, "puts, quiet; more puts"),
            (0, 1, "the last data is here"),
            (1, 0, "the last data is here"),
            (0, "clock stops: all bytes / time"),
        ),
    ),
    "message-rate": Explanation(
        "Small messages in one direction, as many as can be; every thread has a window of its own at the target. The "
        "blind rate ends with quiet and the target's acknowledgement of the last data. The consumed rate ends when a "
        "core of the target has read every message in order. Plain stores and loads run in the same loop, in turns. "
        "Over a network MPI stands beside it, and bare UCX: one by one, and packed as a library could.",
        {
            "p": "8 bytes by shmem_p",
            "g": "8 bytes by shmem_g",
            "put": "blocking put",
            "get": "blocking get",
            "put_nbi": "non-blocking put",
            "get_nbi": "non-blocking get",
            "atomic_add": "atomic add",
            "atomic_fetch_add": "atomic fetch-add, one behind the other",
            "atomic_fetch_add_nbi": "non-blocking atomic fetch-add",
            "consumed": "8 bytes by shmem_p through a ring that the target reads, a flag a message or a batch",
            "put_quiet": "put, then quiet each time",
            "put_nbe": "put under a request (shmemx.h)",
            "get_nbe": "get under a request (shmemx.h)",
        },
        ("PE 0, thread 0", "PE 0, thread 1", "PE 1"),
        (
            (0, "the first thread: clock starts"),
            (0, 2, "p, p, p, ... to its window"),
            (1, 2, "p, p, p, ... to its own"),
            (0, "quiet"),
            (1, "quiet"),
            (2, 0, "the last data is here"),
            (0, "the last thread: clock stops"),
        ),
    ),
    "requests": Explanation(
        "The same messages completed in several ways, measured in turns: the price of waiting for each, for all by a "
        "quiet, or for those of a request.",
        {
            "requests_put": "puts: quiet each, one quiet, a request each, one request a thread, one for all threads",
            "requests_get": "gets: blocking, one quiet, a request each, one request a thread, one for all threads",
            "requests_fetch_add": "fetch-adds, completed as gets are",
        },
        ("PE 0", "PE 1"),
        (
            "quiet_each",
            (0, 1, "put"),
            (0, "quiet, then the next put"),
            "quiet",
            (0, 1, "put_nbi, put_nbi, ..."),
            (0, "one quiet"),
            "request_merged",
            (0, 1, "put under the request, ..."),
            (0, "shmemx_request_wait, once"),
        ),
    ),
    "completion": Explanation(
        "Thread 0 wants to know that one put of its own has arrived, while the other threads of its PE put blocks "
        "without end. A quiet of the context that all share waits for the blocks, too; a request and a signal do not.",
        {"put": "8 bytes, known to have arrived by quiet, by a request, or by an answer to put with signal"},
        ("PE 0, thread 0", "PE 0, other threads", "PE 1"),
        (
            (1, 2, "block, block, block, ..."),
            (0, "clock starts"),
            (0, 2, "put of 8 bytes"),
            (1, 2, "block, block, block, ..."),
            (0, "quiet, or request, or answer"),
            (0, "clock stops: it knows"),
        ),
    ),
    "overlap": Explanation(
        "A communication is posted, the PE computes for about as long as the communication takes alone, then waits for "
        "the communication. Communication, computation and both together are timed in turns: overlap is the share of "
        "the communication that costs nothing. Each is measured under each policy of progress.",
        {
            "put": "a large non-blocking put; its target waits in a barrier",
            "get": "a large non-blocking get; its target waits in a barrier",
            **{op: f"non-blocking: {_COLLECTIVES[op]}" for op in ("broadcast", "fcollect", "alltoall", "sum_reduce")},
        },
        ("PE 0", "PE 1"),
        (
            "barrier",
            (0, "clock starts"),
            (0, 1, "post: put_nbi of 1 MiB"),
            (0, "computes"),
            (0, "computes; does the put go on?"),
            (0, "quiet, or wait for the request"),
            (0, "clock stops: total"),
            "barrier",
        ),
    ),
    "collectives": Explanation(
        "Blocking collectives by size, PEs and team, called by one thread of each PE. Back to back: many between two "
        "barriers, so the root of a broadcast may run ahead. Window: each from a start that all PEs have agreed on to "
        "the return of the last of them, which is what a PE waits that needs the result. A plain copy of what must be "
        "written and, where there is one, MPI stand beside them.",
        {
            "barrier_all": "shmem_barrier_all",
            "sync_all": "shmem_sync_all",
            **_COLLECTIVES,
        },
        _SUM,
        (
            "barrier; clock starts",
            (0, "fcollect: gives its block"),
            (0, 1, "block of PE 0"),
            (1, 2, "block of PE 1"),
            (2, 0, "block of PE 2"),
            (0, "... until all have all blocks"),
            (0, "... `count` times"),
            "all have finished; clock stops",
        ),
    ),
    "collectives-mt": Explanation(
        "Collectives that all threads of every PE call together (shmemx.h): the threads of a PE share one operation. A "
        "copy by all threads stands beside them.",
        {
            "team_sync": "shmemx_team_sync_mt",
            "team_barrier": "shmemx_team_barrier_mt",
            **{
                op: _COLLECTIVES[op]
                for op in ("broadcast", "collect", "fcollect", "alltoall", "sum_reduce", "max_reduce")
            },
            "copy": "all threads of every PE copy as many bytes at once",
        },
        ("PE 0, thread 0", "PE 0, thread 1", "PE 1, all threads"),
        (
            "all threads of all PEs start; clock starts",
            (0, 2, "its slice of the data"),
            (1, 2, "its slice of the data"),
            (2, 0, "slices for thread 0"),
            (2, 1, "slices for thread 1"),
            "all threads of all PEs have finished; clock stops",
        ),
    ),
    "halo": Explanation(
        "Boxes of a 3-D grid of PEs exchange faces with their six neighbours; the threads of a PE share the faces. The "
        "time has packing and unpacking. The forms of Jacobi's method are whole runs, checked: each thread has a box "
        "and a context of its own.",
        {
            "exchange": "all six faces once; params.sync says what ends it",
            "jacobi7": "Jacobi's method with 7 points",
            "jacobi7-overlapped": "jacobi7; inner cells are computed while faces travel",
            "jacobi27": "Jacobi's method with 27 points",
            "async7": "jacobi7 without waiting for neighbours",
            "async27": "jacobi27 without waiting for neighbours",
        },
        ("neighbour on the left", "PE 0", "neighbour on the right"),
        (
            (1, "clock starts; packs its faces"),
            (1, 0, "left face, signal"),
            (1, 2, "right face, signal"),
            (0, 1, "its right face, signal"),
            (2, 1, "its left face, signal"),
            (1, "the same for the other two axes"),
            (1, "unpacks; clock stops"),
        ),
    ),
    "alltoallv": Explanation(
        "Every PE puts a block of its own size to every PE; blocks have from none to twice `size_bytes`. The threads "
        "of a PE share the peers. The bandwidth is that of all blocks of all PEs together.",
        {
            "put": "blocking puts",
            "put_nbi": "non-blocking puts",
            "alltoallv": "the collective of shmemx.h, by one thread of each PE",
            "alltoallv_nbe": "the same, posted and waited for",
            "plan": "the same, started from a plan that was recorded once",
        },
        ("PE 0, threads 0 and 1", "PE 1", "PE 2"),
        (
            "barrier; clock starts",
            (0, 1, "thread 0: block for PE 1"),
            (0, 2, "thread 1: block for PE 2"),
            (1, 0, "block for PE 0"),
            (2, 1, "block for PE 1"),
            (0, "... each to each"),
            "each thread quiets; barrier; clock stops",
        ),
    ),
    "patterns": Explanation(*PATTERNS),
    "wait": Explanation(
        "All PEs but PE 0 wait in an operation, while PE 0 sleeps outside of the library; then PE 0 does its part. "
        "Figures are how late the last PE goes on, and the CPU time that a PE burned meanwhile.",
        {
            "wait_until": "shmem_long_wait_until for a word that PE 0 puts",
            "barrier_all": "shmem_barrier_all",
            "team_sync": "shmem_team_sync",
            "request_wait": "shmemx_request_wait for a non-blocking sum over all PEs",
            "barrier_cost": "barriers, back to back, beside switches between two processes on one core",
        },
        ("PE 0", "PE 1"),
        (
            (1, "waits: CPU time counts from here"),
            (0, "sleeps 1 ms to 1 s"),
            (0, "clock starts"),
            (0, 1, "the word"),
            (1, "goes on: clock stops"),
        ),
    ),
    "idle-waiters": Explanation(
        "One thread of PE 0 and one of its partner send 8 bytes to and fro, while further threads of both wait for "
        "words that nobody writes. Figures are the time of a round trip and the CPU time that both processes burn "
        "during one, by the number of waiters.",
        {"round_trip": "8 bytes there and back"},
        ("PE 0, thread 0", "PE 1, thread 0", "waiters of both PEs"),
        (
            (2, "sit in shmem_wait_until"),
            (0, "clock starts"),
            (0, 1, "8 bytes"),
            (1, 0, "8 bytes"),
            (0, "... clock stops"),
            (0, 2, "the words, at last"),
            (1, 2, "the words, at last"),
        ),
    ),
    "startup": Explanation(
        "A program start is one sample. Times are those of the slowest PE; memory is what no other process has. The "
        "driver takes the time of the launch, from the launcher's start to its end.",
        {
            catalogue.LAUNCH: "the launcher, from its start to its end",
            "init": "shmem_init",
            "first_barrier": "the first barrier",
            "finalize": "shmem_finalize",
            "before_init": "memory of a PE before shmem_init",
            "after_init": "memory of a PE behind shmem_init",
            "after_barrier": "memory of a PE behind the first barrier",
        },
        ("launcher", "PE 0", "PE 1"),
        (
            (0, "clock of the launch starts"),
            (0, 1, "starts it"),
            (0, 2, "starts it"),
            (1, "shmem_init"),
            (2, "shmem_init"),
            (1, 2, "the first barrier"),
            (2, 1, "the first barrier"),
            (1, "shmem_finalize"),
            (2, "shmem_finalize"),
            (1, 0, "ends"),
            (0, "clock of the launch stops"),
        ),
    ),
    "cg": Explanation(
        "NPB CG: a sparse matrix, its rows divided among the PEs. Each product needs the whole vector: a PE sends its "
        "part to all. Inner products are sums over all PEs. Thread 0 alone communicates. Verified by the published "
        "zeta.",
        {name: text for name, text in _FORMS.items() if name != "overlapped"},
        _SUM,
        (
            (0, "its rows of q = A p"),
            (0, 1, "its part of q"),
            (0, 2, "its part of q"),
            (1, 0, "its part of q"),
            (2, 0, "its part of q"),
            "sum over all PEs: p q",
            (0, "updates its vectors"),
            "sum over all PEs: r r",
        ),
    ),
    "hpccg": Explanation(
        "Conjugate gradients on a 27-point grid, after HPCCG. PEs have neighbouring planes: before each product the "
        "planes above and below travel, packed and put with signal by all threads, or as --sync says. Two sums an "
        "iteration. The residual of each of 50 iterations is compared with that of a serial run.",
        _FORMS,
        ("PE above", "PE 0", "PE below"),
        (
            (1, "threads pack rows of its planes"),
            (1, 0, "first plane, signals"),
            (1, 2, "last plane, signals"),
            (0, 1, "its last plane, signals"),
            (2, 1, "its first plane, signals"),
            (1, "product"),
            "two sums an iteration",
        ),
    ),
    "is": Explanation(
        "NPB IS: keys are ranked by buckets. One sum over all PEs tells how many keys each bucket has, and every PE "
        "deals the buckets out alike; then each thread puts its keys for each PE with a signal. Verified by published "
        "ranks and by the order of all keys.",
        {
            "default": "all threads through the default context",
            "private": "each thread through a context of its own",
            "pieces": "private, in pieces: one is packed while the one before travels",
            "requests": "pieces under one request (shmemx.h)",
        },
        _SUM,
        (
            (0, "threads count keys into buckets"),
            "sum over all PEs: sizes of buckets",
            (0, "threads pack keys by bucket"),
            (0, 1, "keys for PE 1, signal"),
            (0, 2, "keys for PE 2, signal"),
            (1, 0, "keys for PE 0, signal"),
            (2, 0, "keys for PE 0, signal"),
            (0, "threads rank what has come"),
        ),
    ),
    "gups": Explanation(
        "Random words of a table over all PEs: atomic updates after RandomAccess, none of which may be lost, and a "
        "hash table in the same memory, whose every probe is an atomic. Verified word by word.",
        {
            "atomic": "XOR after XOR through the default context, one quiet in the end",
            "private": "the same through a context of each thread",
            "windowed": "private, with a quiet after 1,024",
            "batched": "XORs under one request, waited for after 1,024 (shmemx.h)",
            "hash": "insertions and look-ups, each probe waited for",
            "hash_nbi": "1,024 searches at a time, one quiet for all their probes",
            "hash_batched": "hash_nbi under a request (shmemx.h)",
        },
        _SUM,
        (
            (0, 2, "XOR of a random word"),
            (0, 1, "XOR of a random word"),
            (1, 0, "XOR of a random word"),
            (2, 1, "XOR of a random word"),
            (0, "... 4 times the table's words"),
            "each thread quiets; barrier",
            (0, "compares the table"),
        ),
    ),
    "minimd": Explanation(
        "Lennard-Jones molecular dynamics after MiniMD. Each step the positions of atoms near a border go straight to "
        "the PEs that need them as ghosts, by put with signal or as --sync says; every 20 steps atoms that have moved "
        "into another part go there. Every bit is compared with a serial run.",
        {
            "default": "all threads on the default context",
            "private": "each thread on a context of its own",
            "auto": "ghosts are sent while the forces on other atoms are computed",
        },
        ("PE 0", "PE 1"),
        (
            (0, "forces, motion into step k + 1"),
            (0, 1, "ghosts, signal"),
            (1, 0, "ghosts, signal"),
            (0, "every 20 steps:"),
            (0, 1, "moved atoms, new ghosts"),
            (1, 0, "moved atoms, new ghosts"),
            "every 100 steps: five sums",
        ),
    ),
    "mandelbrot": Explanation(
        "The Mandelbrot set by work stealing. A thread takes a piece by a fetch-add on its PE's counter and, when that "
        "has none left, on the next PE's; it puts each piece into a picture that lies over all PEs. Verified by the "
        "picture's hash, and each piece once.",
        {
            "default": "one buffer a thread, all on the default context",
            "private": "one buffer a thread, on a context of its own",
            "default-pipelined": "two buffers in turns, all on the default context",
            "pipelined": "four private contexts a thread, with a buffer each",
        },
        ("PE 0, thread 0", "PE 1", "PE 2"),
        (
            (0, "fetch-add on its own counter"),
            (0, "computes the piece"),
            (0, 2, "put of the piece's pixels"),
            (0, "... its own counter is empty"),
            (0, 1, "fetch-add on its counter"),
            (1, 0, "the number of a piece"),
            (0, "computes the piece"),
            (0, 1, "put of the piece's pixels"),
        ),
    ),
    "minife": Explanation(
        "Finite elements on a cube after MiniFE: mesh, assembly, given temperatures, then the solver and exchange of "
        "hpccg with up to 26 neighbours. What elements of several PEs add to a row goes to the row's owner. Verified "
        "by the known temperatures.",
        _FORMS,
        ("PE 0", "PE 1"),
        (
            (0, "assembles its elements"),
            (0, 1, "sums for rows of PE 1"),
            (1, 0, "sums for rows of PE 0"),
            (0, 1, "given temperatures, signal"),
            (0, "the solver:"),
            (0, 1, "entries for PE 1, signal"),
            (1, 0, "entries for PE 0, signal"),
            "two sums an iteration",
        ),
    ),
    "ordering": Explanation(*ORDERING),
}
