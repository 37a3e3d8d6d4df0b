/* The rows through which a test calls every function of a family: types erased, so that the test bodies are written and
 * compiled once. make_tables.py writes them as C, and CMake compiles them in each way that a program may call a
 * function: inlined, through a call, without optimization, by the C11 generic and by the C++ overload.
 *
 * A row's `name` is the C function that must be reached, for a generic too. */
#ifndef CONFORMANCE_TABLES_H
#define CONFORMANCE_TABLES_H

#include <shmemx.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the rows of shmem_ctx_ functions pass: the default context, or one that check.cpp creates (HEDDLE_TEST_CTX=1).
 */
extern shmem_ctx_t conformance_ctx;

/* What the rows of functions under a request pass (completion.h). */
extern shmemx_request_t* conformance_request;

/* A collective by many threads: a row's function has the thread group (thread_group.cpp) call `function` in 1 to 4
 * threads of this PE. Returns what they did, when that is the same. */
struct thread_group_call {
    shmem_team_t team;
    void* dest;
    const void* source;
    size_t nelems;
    int root;
    ptrdiff_t dst, sst;
};
int conformance_thread_group(int (*function)(const struct thread_group_call* call, int thread, int nthreads),
                             const struct thread_group_call* call);
/* The same where the function posts to *conformance_group_request, a SHARED request, for which some of the threads then
 * wait, perhaps before others have posted. Returns when what they have posted is complete. */
extern shmemx_request_t* conformance_group_request;
int conformance_posting_group(int (*function)(const struct thread_group_call* call, int thread, int nthreads),
                              const struct thread_group_call* call);

enum when_complete { COMPLETE_AT_RETURN, COMPLETE_AFTER_QUIET, COMPLETE_AFTER_REQUEST };

struct function_info {
    const char* name;
    size_t bytes; /* of one element */
    char kind;    /* 'i' signed, 'u' unsigned, 'f' floating point, 'c' complex, 'b' bytes of no type */
    enum when_complete completion;
};

struct copy_row {
    struct function_info info;
    void (*call)(void* dest, const void* source, size_t nelems, int pe);
};

struct value_row { /* p: to is dest, from the value; g: to is the value, from source */
    struct function_info info;
    void (*call)(void* to, const void* from, int pe);
};

struct strided_row {
    struct function_info info;
    int blocked; /* otherwise bsize is 1 */
    void (*call)(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
};

enum amo_kind { AMO_FETCH, AMO_SET, AMO_COMPARE_SWAP, AMO_SWAP, AMO_INC, AMO_ADD, AMO_AND, AMO_OR, AMO_XOR };
struct amo_row {
    struct function_info info;
    enum amo_kind op;
    int fetches;
    void (*call)(void* fetch, void* dest, const void* value, const void* cond, int pe);
};

struct put_signal_row {
    struct function_info info;
    void (*call)(void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op,
                 int pe);
};

struct signal_row {
    struct function_info info;
    int adds;
    void (*call)(uint64_t* sig_addr, uint64_t signal, int pe);
};

enum wait_set { WAIT_ONE, WAIT_ALL, WAIT_ANY, WAIT_SOME };
struct wait_row {
    struct function_info info;
    int tests; /* otherwise it waits */
    enum wait_set set;
    int vector; /* cmp_values is one for each element */
    int is_ne;  /* it has no cmp: SHMEM_CMP_NE is meant */
    size_t (*call)(void* ivars, size_t nelems, size_t* indices, const int* status, int cmp, const void* cmp_values);
};

struct sync_row {
    struct function_info info;
    int (*call)(shmem_team_t team);
};

enum move_op { MOVE_BROADCAST, MOVE_COLLECT, MOVE_FCOLLECT, MOVE_ALLTOALL, MOVE_ALLTOALLS };
struct move_row { /* dst, sst and root where the operation has them */
    struct function_info info;
    enum move_op op;
    int (*call)(shmem_team_t team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                int root);
};
struct old_move_row { /* on an active set */
    struct function_info info;
    enum move_op op;
    void (*call)(void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int root, int start,
                 int log_stride, int size, long* psync);
};

enum reduce_op {
    REDUCE_AND,
    REDUCE_OR,
    REDUCE_XOR,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_SUM,
    REDUCE_PROD,
    REDUCE_INSCAN,
    REDUCE_EXSCAN
};
struct reduce_row {
    struct function_info info;
    enum reduce_op op;
    int (*call)(shmem_team_t team, void* dest, const void* source, size_t nelems);
};
struct old_reduce_row {
    struct function_info info;
    enum reduce_op op;
    void (*call)(void* dest, const void* source, int nelems, int start, int log_stride, int size, void* pwrk,
                 long* psync);
};

#define CONFORMANCE_TABLE(row, name) \
    extern const struct row name[];  \
    extern const size_t name##_count
CONFORMANCE_TABLE(copy_row, put_rows);
CONFORMANCE_TABLE(copy_row, get_rows);
CONFORMANCE_TABLE(value_row, p_rows);
CONFORMANCE_TABLE(value_row, g_rows);
CONFORMANCE_TABLE(strided_row, iput_rows);
CONFORMANCE_TABLE(strided_row, iget_rows);
CONFORMANCE_TABLE(strided_row, ibput_rows);
CONFORMANCE_TABLE(strided_row, ibget_rows);
CONFORMANCE_TABLE(amo_row, amo_rows);
CONFORMANCE_TABLE(put_signal_row, put_signal_rows);
CONFORMANCE_TABLE(signal_row, signal_rows);
CONFORMANCE_TABLE(wait_row, wait_rows);
CONFORMANCE_TABLE(sync_row, sync_rows);
CONFORMANCE_TABLE(move_row, move_rows);
CONFORMANCE_TABLE(old_move_row, old_move_rows);
CONFORMANCE_TABLE(reduce_row, reduce_rows);
CONFORMANCE_TABLE(old_reduce_row, old_reduce_rows);

/* What a table without rows holds. */
#ifdef __cplusplus
#define CONFORMANCE_NO_ROWS \
    {                       \
    }
}
#else
#define CONFORMANCE_NO_ROWS {0}
#endif

#endif
