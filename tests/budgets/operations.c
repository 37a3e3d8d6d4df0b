/* The operations whose instructions are counted: each in a function of its own, called kCalls times. Run by measure.py
 * under callgrind, alone and as a job of two PEs; PE 0 works on the last PE. */
#include <shmemx.h>

/* A function whose arguments are in the order of the operation's, so that only the operation costs. */
#define COUNTED __attribute__((__noinline__, __used__))

static long global_cell;
static shmem_ctx_t volatile default_ctx;

/* The cost of being a function: a return, which measure.py subtracts. */
COUNTED void op_nothing(void) {
    __asm__ volatile("");
}

COUNTED void op_long_p(long* dest, long value, int pe) {
    shmem_long_p(dest, value, pe);
}
COUNTED void op_long_p_static(long value, int pe) {
    shmem_long_p(&global_cell, value, pe);
}
COUNTED long op_long_g(const long* source, int pe) {
    return shmem_long_g(source, pe);
}
COUNTED long op_long_g_static(int pe) {
    return shmem_long_g(&global_cell, pe);
}
COUNTED void op_long_put_1(long* dest, const long* source, int pe) {
    shmem_long_put(dest, source, 1, pe);
}
COUNTED void op_long_get_1(long* dest, const long* source, int pe) {
    shmem_long_get(dest, source, 1, pe);
}
COUNTED void op_int_p(int* dest, int value, int pe) {
    shmem_int_p(dest, value, pe);
}
COUNTED void op_ctx_long_p(shmem_ctx_t ctx, long* dest, long value, int pe) {
    shmem_ctx_long_p(ctx, dest, value, pe);
}
COUNTED void op_long_atomic_add(long* dest, long value, int pe) {
    shmem_long_atomic_add(dest, value, pe);
}
COUNTED long op_long_atomic_fetch_add(long* dest, long value, int pe) {
    return shmem_long_atomic_fetch_add(dest, value, pe);
}
COUNTED void op_long_atomic_set(long* dest, long value, int pe) {
    shmem_long_atomic_set(dest, value, pe);
}
COUNTED long op_long_atomic_fetch(const long* source, int pe) {
    return shmem_long_atomic_fetch(source, pe);
}

/* The same under a request. */
COUNTED void op_long_put_nbe_1(long* dest, const long* source, int pe, shmemx_request_t* req) {
    shmemx_long_put_nbe(dest, source, 1, pe, req);
}
COUNTED void op_long_get_nbe_1(long* dest, const long* source, int pe, shmemx_request_t* req) {
    shmemx_long_get_nbe(dest, source, 1, pe, req);
}
COUNTED void op_long_atomic_add_nbe(long* dest, long value, int pe, shmemx_request_t* req) {
    shmemx_long_atomic_add_nbe(dest, value, pe, req);
}
COUNTED void op_long_put_nbe_1_shared(long* dest, const long* source, int pe, shmemx_request_t* req) {
    shmemx_long_put_nbe(dest, source, 1, pe, req);
}

/* Keeps a call from becoming a jump, so that callgrind books what is behind it under the function that calls. */
#define STAY() __asm__ volatile("")

/* Through the exported symbol, as without optimization or with HEDDLE_NO_INLINE. */
static void (*volatile exported_long_p)(long*, long, int) = shmem_long_p;
COUNTED void op_exported_long_p(long* dest, long value, int pe) {
    exported_long_p(dest, value, pe);
}
COUNTED void op_fence(void) {
    shmem_fence();
}
COUNTED void op_quiet(void) {
    shmem_quiet();
}

/* What is called, not inlined; by a job of one PE alone, which does all of an operation but wait for others. */
COUNTED int op_team_my_pe(shmem_team_t team) {
    const int pe = shmem_team_my_pe(team);
    STAY();
    return pe;
}
COUNTED void op_set_and_clear_lock(long* lock) {
    shmem_set_lock(lock);
    shmem_clear_lock(lock);
    STAY();
}
COUNTED void op_sync_all(void) {
    shmem_sync_all();
    STAY();
}
COUNTED void op_long_sum_reduce_1(shmem_team_t team, long* dest, const long* source) {
    shmem_long_sum_reduce(team, dest, source, 1);
    STAY();
}
COUNTED void op_ctx_create_and_destroy(void) {
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    shmem_ctx_destroy(ctx);
    STAY();
}

COUNTED void op_request_wait(shmemx_request_t* req) {
    shmemx_request_wait(req);
    STAY();
}

/* From a loop, where the compiler keeps what does not change: only its share per call is the operation. */
COUNTED void op_long_p_loop(long* dest, int calls, int pe) {
    for (int i = 0; i < calls; ++i) shmem_long_p(dest, i, pe);
}

enum { kCalls = 1000, kCells = 8 };

static void run(long* cell, int pe) {
    long local = 1;
    shmemx_request_t req = SHMEMX_REQUEST_NULL, shared;
    shmemx_request_allocate(&shared, SHMEMX_REQUEST_SHARED);
    shmemx_long_put_nbe(cell, &local, 1, pe, &req); /* the one that makes the request */
    for (int i = 0; i < kCalls; ++i) {
        op_nothing();
        op_long_p(cell, i, pe);
        op_long_p_static(i, pe);
        local += op_long_g(cell, pe) + op_long_g_static(pe);
        op_long_put_1(cell, &local, pe);
        op_long_get_1(&local, cell, pe);
        op_int_p((int*)cell, i, pe);
        op_ctx_long_p(default_ctx, cell, i, pe);
        op_long_atomic_add(cell, i, pe);
        local += op_long_atomic_fetch_add(cell, i, pe);
        op_long_atomic_set(cell, i, pe);
        local += op_long_atomic_fetch(cell, pe);
        op_long_put_nbe_1(cell, &local, pe, &req);
        op_long_get_nbe_1(&local, cell, pe, &req);
        op_long_atomic_add_nbe(cell, i, pe, &req);
        op_long_put_nbe_1_shared(cell, &local, pe, &shared);
        op_exported_long_p(cell, i, pe);
        op_fence();
        op_quiet();
    }
    op_long_p_loop(cell, kCalls, pe);
    shmemx_request_wait(&req);
    shmemx_request_free(&shared);
}

static void run_alone(long* cells) {
    long pes = 0;
    shmemx_request_t req = SHMEMX_REQUEST_NULL;
    for (int i = 0; i < kCalls; ++i) {
        pes += op_team_my_pe(SHMEM_TEAM_WORLD);
        op_set_and_clear_lock(&cells[2]);
        op_sync_all();
        op_long_sum_reduce_1(SHMEM_TEAM_WORLD, &cells[0], &cells[1]);
        op_ctx_create_and_destroy();
        shmemx_long_put_nbe(&cells[0], &pes, 1, 0, &req);
        op_request_wait(&req);
    }
    cells[0] += pes;
}

int main(void) {
    long* cell;
    shmem_init();
    default_ctx = SHMEM_CTX_DEFAULT;
    cell = (long*)shmem_calloc(kCells, sizeof(long));
    if (shmem_my_pe() == 0)
        run(cell, shmem_n_pes() - 1);
    if (shmem_n_pes() == 1)
        run_alone(cell);
    shmem_barrier_all();
    shmem_free(cell);
    shmem_finalize();
    return 0;
}
