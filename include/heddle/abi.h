/* The structures that inlined code reads: all that a program compiled against Heddle knows of the library's inside.
 *
 * Contract. The layout is pinned by tests/abi and versioned by the symbol names heddle_abi_1 and heddle_streams_2. A
 * library that changes the layout exports the next number; a program compiled for another layout fails to link or load
 * instead of misreading memory (docs/decisions/0006).
 *
 * Invariants, at any time:
 *   heap_base, data_base   where this PE's symmetric heap and its executable's static data begin. Before init: a value
 *                          that is further from every address of a program than a region is long.
 *   ctx->peers[pe]         readable for EVERY int pe, negative ones too: the table lies in the middle of a reservation
 *                          that reads as zero where there is no PE. A bad PE number, and a PE that loads and stores do
 *                          not reach, therefore cost no branch: its sizes are 0, every offset is beyond them, and the
 *                          operation takes the slow path, which carries it out or names the mistake. All sizes are 0
 *                          before init, after finalize, in checked runs and for destroyed contexts. (Before init only
 *                          the 2^24 numbers on either side of 0 are readable; others are a segmentation fault.)
 *   peers[pe]              the address, in this PE's address space, and the size of pe's heap and static data. An
 *                          object lies at the same offset in the regions of all PEs. At least HEDDLE_GAP_BYTES that
 *                          belong to no region lie behind each region, so one value of up to 16 bytes that starts
 *                          inside a region and crosses its end overwrites nothing.
 *
 * Threads: init and finalize write, any thread reads. */
#ifndef HEDDLE_ABI_H
#define HEDDLE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#define HEDDLE_NORETURN __attribute__((__noreturn__))
#ifndef HEDDLE_COLD
#define HEDDLE_COLD __attribute__((__cold__))
#endif
#else
#error "Heddle's headers need gcc, clang or a compiler that speaks their attributes"
#endif

/* Defined in code that is compiled with -fsanitize=thread. */
#if defined(__SANITIZE_THREAD__)
#define HEDDLE_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEDDLE_UNDER_TSAN 1
#endif
#endif

/* The attribute of every deprecated function of OpenSHMEM. A program that defines HEDDLE_SILENCE_DEPRECATED before it
 * includes a header has no warnings. */
#ifdef HEDDLE_SILENCE_DEPRECATED
#define HEDDLE_DEPRECATED(instead)
#else
#define HEDDLE_DEPRECATED(instead) __attribute__((__deprecated__(instead)))
#endif

/* The complex types of reductions. <complex.h> is not included, because it defines I. */
__extension__ typedef double _Complex heddle_complexd;
__extension__ typedef float _Complex heddle_complexf;

/* Storage of a PE's state: one object for the process, or one for each thread in test builds that run PEs as threads
 * of one process (docs/decisions/0004). */
#ifdef HEDDLE_PES_AS_THREADS
#define HEDDLE_PE_LOCAL __thread
#else
#define HEDDLE_PE_LOCAL
#endif

/* The least number of bytes between two regions of symmetric memory. They belong to no region. */
#define HEDDLE_GAP_BYTES 4096
/* The most bytes that inlined code accesses at an address of which only the first byte is known to be in a region. */
#define HEDDLE_SHORT_BYTES 16

/* Where the symmetric memory of one PE lies in this PE's address space. 32 bytes, so that indexing is one shift. */
struct heddle_peer {
    char* heap;
    size_t heap_size; /* bytes; 0: loads and stores do not reach this PE */
    char* data;
    size_t data_size;
};

/* The part of a context that inlined code reads. The fields of the library follow it in memory. */
struct heddle_ctx {
    const struct heddle_peer* peers;
};

struct heddle_abi_1 {
    uintptr_t heap_base;
    uintptr_t data_base;
    struct heddle_ctx default_ctx;
};

/* What a thread has put to one PE of another node, as far as inlined code reads and writes it: the head of a stream in
 * the library. Positions are bytes since the stream began. The thread alone writes the first three. */
struct heddle_stream {
    uintptr_t base;      /* the address of a position, less that position */
    uint64_t published;  /* where the next record goes; stored with release behind the record, and read by the sender */
    uint64_t simple_end; /* a record that ends before it needs no room to be made, and fills no message */
    uint8_t idle;        /* not 0: nobody looks for the record, and heddle_slow_published tells of it; the sender's */
    /* The request that a put needs no library to join: it stores `published` in *claimed. HEDDLE_NO_REQUEST: none. The
     * thread sets it, any thread that ends the request resets it. */
    struct heddle_request* request;
    uint64_t* claimed;
};
/* A value that no request has. */
#define HEDDLE_NO_REQUEST ((struct heddle_request*)2)

/* The streams of the calling thread for the context that it used last. No PE is below n_pes where inlined code must not
 * put by itself: before the first put, in checked runs, and where the context numbers PEs in another way than the world.
 * A thread is one of the kernel's: it keeps its streams when user-level threads change places. */
struct heddle_streams {
    const struct heddle_ctx* ctx;    /* NULL: none */
    uint64_t epoch;                  /* the rest holds while this equals heddle_streams_epoch_1 */
    unsigned n_pes;                  /* of the context */
    struct heddle_stream* const* to; /* by PE; NULL: nothing was put there yet. Other threads read it, too */
    uintptr_t heap_base;             /* as in heddle_abi_1 */
    size_t heap_words;               /* offsets in the heap at which 8 bytes may begin */
    /* `to` for non-blocking puts. Between shmemx_request_begin and _end a stream is NULL here until the library knows
     * that a non-blocking put to its PE joins the request. */
    struct heddle_stream* const* nbi_to;
};

/* The operation of an atomic on its element. */
enum heddle_amo_op {
    HEDDLE_AMO_FETCH,
    HEDDLE_AMO_SET,
    HEDDLE_AMO_SWAP,
    HEDDLE_AMO_COMPARE_SWAP,
    HEDDLE_AMO_ADD,
    HEDDLE_AMO_AND,
    HEDDLE_AMO_OR,
    HEDDLE_AMO_XOR,
    HEDDLE_AMO_UNFETCHED = 8 /* a bit added to the operation: the old value is not needed */
};

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

typedef const struct heddle_ctx* shmem_ctx_t;

/* The address of a heddle_team is the handle of a team. The handles of the predefined teams are constants that can be
 * used in initializers. */
struct heddle_team {
    int unused;
};
typedef const struct heddle_team* shmem_team_t;
extern const struct heddle_team heddle_team_world, heddle_team_shared;

typedef struct {
    int num_contexts; /* default 0; a team gets as many contexts as it creates, whatever the number here */
} shmem_team_config_t;

typedef struct {
    size_t total_ops; /* default SIZE_MAX */
} shmem_ctx_session_config_t;

/* Constant to all code but src/runtime/init.cpp, so that compilers keep its words in registers across stores and calls.
 * A copy of any word from before init can only make every offset too large; the operation then takes the slow path,
 * which is always right. After finalize the entries of the table are zero (docs/decisions/0006). */
#if !defined(HEDDLE_ABI_WRITER) && !defined(HEDDLE_PES_AS_THREADS)
extern const struct heddle_abi_1 heddle_abi_1;
#else
extern HEDDLE_PE_LOCAL struct heddle_abi_1 heddle_abi_1;
#endif

/* Written by the library alone. Initial-exec: no call finds it, in a program's own shared libraries either. */
extern __thread struct heddle_streams heddle_streams_2 __attribute__((__tls_model__("initial-exec")));
extern HEDDLE_PE_LOCAL uint64_t heddle_streams_epoch_1;

#define SHMEM_CTX_DEFAULT (&heddle_abi_1.default_ctx)
#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_TEAM_WORLD (&heddle_team_world)
#define SHMEM_TEAM_SHARED (&heddle_team_shared)
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)

/* The slow path: operations that are more than a load or store of on-node memory, and all error messages. Each begins
 * with the arguments of its OpenSHMEM function in their order, so that the hot path keeps them in their registers.
 * function: the name that the program called, for messages. Any thread. A wrong argument ends the job. */
HEDDLE_COLD void heddle_slow_put(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                 const char* function, shmem_ctx_t ctx);
HEDDLE_COLD void heddle_slow_get(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                 const char* function, shmem_ctx_t ctx);
/* heddle_slow_put and heddle_slow_get that may return before the transfer is complete: complete after a quiet. */
HEDDLE_COLD void heddle_slow_put_nbi(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                     const char* function, shmem_ctx_t ctx);
HEDDLE_COLD void heddle_slow_get_nbi(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                     const char* function, shmem_ctx_t ctx);
/* A put and a get of one value of at most 8 bytes, in the low bytes of `bits` and of the result. */
HEDDLE_COLD void heddle_slow_p(void* dest, uint64_t bits, int pe, size_t bytes, const char* function, shmem_ctx_t ctx);
HEDDLE_COLD uint64_t heddle_slow_g(const void* source, int pe, size_t bytes, const char* function, shmem_ctx_t ctx);
/* An atomic on an element of `bytes`: 4 or 8. Returns the old value, for operations that have
 * one. */
HEDDLE_COLD uint64_t heddle_slow_amo(const void* dest, uint64_t operand, int pe, uint64_t compare, size_t bytes,
                                     enum heddle_amo_op op, const char* function, shmem_ctx_t ctx);
/* heddle_slow_amo that may return before the old value is in *fetch: it is there after a quiet. */
HEDDLE_COLD void heddle_slow_amo_nbi(void* fetch, const void* dest, uint64_t operand, int pe, uint64_t compare,
                                     size_t bytes, enum heddle_amo_op op, const char* function, shmem_ctx_t ctx);

/* Inlined code has put a record into the stream, which is idle. The thread that has put it. */
HEDDLE_COLD void heddle_slow_published(struct heddle_stream* stream);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
