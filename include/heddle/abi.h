/* The structures that inlined code reads: the whole of what a program compiled against Heddle knows of its inside.
 *
 * Contract. The layout is pinned by tests/abi and versioned by the symbol name heddle_abi_1: a library that changes it
 * exports heddle_abi_2, and a program compiled for another layout fails to link or load instead of misreading memory.
 *
 * Invariants, at any time:
 *   heap_base, data_base   where this PE's symmetric heap and its executable's static data begin; before init a value
 *                          that is further from every address of a program than a region is long.
 *   ctx->peers[pe]         readable for EVERY int pe, negative ones too: the table lies in the middle of a reservation
 *                          that reads as zero where there is no PE. So neither a bad PE number nor a PE that loads and
 *                          stores do not reach costs a branch: its sizes are 0, every offset is beyond them, and the
 *                          operation takes the slow path, which does it or names what is wrong. Before init, after
 *                          finalize, in checked runs and for destroyed contexts, all of its sizes are 0. (Before init
 *                          only the 2^24 numbers either way are readable, and the others a segmentation fault.)
 *   peers[pe]              the address, in this PE's address space, and the size of pe's heap and static data. An
 * object lies at the same offset in all of them. Behind each region lie at least HEDDLE_GAP_BYTES that belong to
 * nobody, so that one value of up to 16 bytes that starts inside a region and crosses its end harms nothing.
 *
 * Threads: written by init and finalize only, read by all. */
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

/* In code that ThreadSanitizer looks at. */
#if defined(__SANITIZE_THREAD__)
#define HEDDLE_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEDDLE_UNDER_TSAN 1
#endif
#endif

/* On every deprecated function of OpenSHMEM; programs that keep to them define HEDDLE_SILENCE_DEPRECATED. */
#ifdef HEDDLE_SILENCE_DEPRECATED
#define HEDDLE_DEPRECATED(instead)
#else
#define HEDDLE_DEPRECATED(instead) __attribute__((__deprecated__(instead)))
#endif

/* The complex types of reductions, without <complex.h>, which would define I. */
__extension__ typedef double _Complex heddle_complexd;
__extension__ typedef float _Complex heddle_complexf;

/* Test builds that run PEs as threads of one process keep one of these per thread (docs/decisions/0004). */
#ifdef HEDDLE_PES_AS_THREADS
#define HEDDLE_PE_LOCAL __thread
#else
#define HEDDLE_PE_LOCAL
#endif

#define HEDDLE_GAP_BYTES 4096
/* The most that inlined code touches at an address whose whole extent it has not compared with the size. */
#define HEDDLE_SHORT_BYTES 16

/* Where one PE's symmetric memory lies in the address space of this PE; 32 bytes, so that indexing is one shift. */
struct heddle_peer {
    char* heap;
    size_t heap_size; /* bytes; 0: not reached by load and store */
    char* data;
    size_t data_size;
};

/* A context as inlined code sees it; the library's own fields lie behind. */
struct heddle_ctx {
    const struct heddle_peer* peers;
};

struct heddle_abi_1 {
    uintptr_t heap_base;
    uintptr_t data_base;
    struct heddle_ctx default_ctx;
};

/* What an atomic of the slow path does to its datum. */
enum heddle_amo_op {
    HEDDLE_AMO_FETCH,
    HEDDLE_AMO_SET,
    HEDDLE_AMO_SWAP,
    HEDDLE_AMO_COMPARE_SWAP,
    HEDDLE_AMO_ADD,
    HEDDLE_AMO_AND,
    HEDDLE_AMO_OR,
    HEDDLE_AMO_XOR,
    HEDDLE_AMO_UNFETCHED = 8 /* a bit beside the operation: nobody wants the old value */
};

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

typedef const struct heddle_ctx* shmem_ctx_t;

/* A team is known by the address of one of these. The predefined ones are constants, usable in initializers. */
struct heddle_team {
    int unused;
};
typedef const struct heddle_team* shmem_team_t;
extern const struct heddle_team heddle_team_world, heddle_team_shared;

typedef struct {
    int num_contexts; /* default 0; contexts are pooled and grow as needed, so any number is met */
} shmem_team_config_t;

typedef struct {
    size_t total_ops; /* default SIZE_MAX */
} shmem_ctx_session_config_t;

/* Constant to all but src/runtime/init.cpp, so that compilers keep it in registers across stores and calls. A copy kept
 * from before init, of any of the words, can only find that no offset fits, and the slow path is always right; after
 * finalize it is the entries of the table that say no (docs/decisions/0006). */
#if !defined(HEDDLE_ABI_WRITER) && !defined(HEDDLE_PES_AS_THREADS)
extern const struct heddle_abi_1 heddle_abi_1;
#else
extern HEDDLE_PE_LOCAL struct heddle_abi_1 heddle_abi_1;
#endif

#define SHMEM_CTX_DEFAULT (&heddle_abi_1.default_ctx)
#define SHMEM_CTX_INVALID ((shmem_ctx_t)0)
#define SHMEM_TEAM_WORLD (&heddle_team_world)
#define SHMEM_TEAM_SHARED (&heddle_team_shared)
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)

/* The slow path: everything that is not a load or store of a neighbour's memory, and every complaint. The arguments
 * begin as those of the OpenSHMEM function do, so that the hot path has nothing to move out of the way for the call
 * that it does not make. `function` is the name that the program called, for messages. Any thread. They end the program
 * when an argument is wrong. */
HEDDLE_COLD void heddle_slow_put(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                 const char* function, shmem_ctx_t ctx);
HEDDLE_COLD void heddle_slow_get(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                 const char* function, shmem_ctx_t ctx);
/* The nbi forms. */
HEDDLE_COLD void heddle_slow_put_nbi(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                     const char* function, shmem_ctx_t ctx);
HEDDLE_COLD void heddle_slow_get_nbi(void* dest, const void* source, size_t nelems, int pe, size_t element_bytes,
                                     const char* function, shmem_ctx_t ctx);
/* One value of at most 8 bytes, in the low bytes of `bits`. */
HEDDLE_COLD void heddle_slow_p(void* dest, uint64_t bits, int pe, size_t bytes, const char* function, shmem_ctx_t ctx);
HEDDLE_COLD uint64_t heddle_slow_g(const void* source, int pe, size_t bytes, const char* function, shmem_ctx_t ctx);
/* bytes: 4 or 8. Returns the old value of the operations that have one. */
HEDDLE_COLD uint64_t heddle_slow_amo(const void* dest, uint64_t operand, int pe, uint64_t compare, size_t bytes,
                                     enum heddle_amo_op op, const char* function, shmem_ctx_t ctx);
/* The nbi forms that fetch. */
HEDDLE_COLD void heddle_slow_amo_nbi(void* fetch, const void* dest, uint64_t operand, int pe, uint64_t compare,
                                     size_t bytes, enum heddle_amo_op op, const char* function, shmem_ctx_t ctx);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
