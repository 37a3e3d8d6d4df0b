/* Programs with one race each, and their cured twins. Arguments: the case, and "cured" or "racy".
 *
 * The two calls of a race are in lines with "first: CASE" and "second: CASE", which test_races.py looks for in the
 * report. No case depends on time: what orders the calls of the PEs in a run orders nothing for the detector. */
#include <shmem.h>
#include <shmemx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWords = 32 };

static long data_of_program[kWords];
static long flag, turn;
static uint64_t signal_word;
static long lock;
static long* data;
static int me, n, cured;

static void put_data(int pe) {
    long source[kWords];
    for (int i = 0; i < kWords; ++i) source[i] = i;
    shmem_long_put(data, source, kWords, pe); /* first: no_wait no_fence sync_for_quiet fence_for_quiet */
}

static void no_wait(void) {
    if (me == 0)
        put_data(1);
    if (cured)
        shmem_barrier_all();
    if (me == 1)
        shmem_long_g(data + 3, 1); /* second: no_wait */
}

static void posted_barrier(void) {
    if (me == 0)
        shmem_long_p(data, 1, 1); /* first: posted_barrier */
    if (cured) {
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        shmemx_team_barrier_nbe(SHMEM_TEAM_WORLD, &request);
        shmemx_request_wait(&request);
    }
    if (me == 1)
        shmem_long_g(data, 1); /* second: posted_barrier */
}

static void no_fence(void) {
    if (me == 0) {
        put_data(1);
        if (cured)
            shmem_fence();
        shmem_long_p(&flag, 1, 1);
    }
    if (me == 1) {
        long copy[kWords];
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        shmem_long_get(copy, data, kWords, 1); /* second: no_fence */
    }
}

static void sync_for_quiet(void) {
    if (me == 0) {
        put_data(1);
        if (cured)
            shmem_quiet();
    }
    shmem_sync_all();
    if (me == n - 1)
        shmem_long_g(data + kWords - 1, 1); /* second: sync_for_quiet */
}

/* A fence orders what goes to one PE. */
static void fence_for_quiet(void) {
    if (me == 0) {
        put_data(n - 1);
        cured ? shmem_quiet() : shmem_fence();
        shmem_long_p(&flag, 1, 1);
    }
    if (me == 1) {
        long copy[kWords];
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        shmem_long_get(copy, data, kWords, n - 1); /* second: fence_for_quiet */
    }
}

static void two_puts(void) {
    const long value = me;
    if (me == 0)
        shmem_long_put(data_of_program + 1, &value, 1, 1); /* first: two_puts */
    if (cured)
        shmem_barrier_all();
    if (me == n - 1)
        shmem_long_put(data_of_program + 1, &value, 1, 1); /* second: two_puts */
}

static void own_puts(void) {
    const long one = 1, two = 2;
    if (me == 0) {
        shmem_long_put(data, &one, 1, 1); /* first: own_puts */
        if (cured)
            shmem_fence();
        shmem_long_put(data, &two, 1, 1); /* second: own_puts */
    }
}

static void own_put_and_get(void) {
    const long one = 1;
    if (me == 0) {
        shmem_long_put(data, &one, 1, 1); /* first: own_put_and_get */
        cured ? shmem_quiet() : shmem_fence();
        shmem_long_g(data, 1); /* second: own_put_and_get */
    }
}

static void source_of_nbi(void) {
    long buffer[kWords] = {0};
    if (me == 0) {
        shmem_long_put_nbi(data, buffer, kWords, 1); /* first: source_of_nbi */
        if (cured)
            shmem_quiet();
        shmem_long_get(buffer, data_of_program, 1, 1); /* second: source_of_nbi */
    }
}

static void value_of_nbi(void) {
    long buffer[kWords];
    if (me == 0) {
        shmem_long_get_nbi(buffer, data, kWords, 1); /* first: value_of_nbi */
        if (cured)
            shmem_quiet();
        shmem_long_put(data_of_program, buffer, kWords, 1); /* second: value_of_nbi */
    }
}

/* A posted exchange with the neighbors of a ring, of which each sends the other's number. */
static void exchange(shmemx_request_t* request) {
    const shmem_team_t all = SHMEM_TEAM_WORLD;
    const int list[2] = {(me + 1) % n, (me + n - 1) % n};
    shmemx_neighbor_alltoall_nbe(all, list, 2, data, data + 2, 8, request); /* first: exchange_source exchange_value */
}

static void exchange_source(void) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    exchange(&request);
    if (cured)
        shmemx_request_wait(&request);
    if (me == 0)
        shmem_long_get(data + 3, data_of_program, 1, 1); /* second: exchange_source */
    shmemx_request_wait(&request);
}

static void exchange_value(void) {
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    exchange(&request);
    if (cured)
        shmemx_request_wait(&request);
    if (me == 0)
        shmem_long_put(data_of_program, data, 1, 1); /* second: exchange_value */
    shmemx_request_wait(&request);
}

static void wait_on_data(void) {
    if (me == 0) {
        long source[kWords];
        for (int i = 0; i < kWords; ++i) source[i] = i + 1;
        shmem_long_put_signal(data, source, kWords, &signal_word, 1, SHMEM_SIGNAL_SET, 1); /* first: wait_on_data */
    }
    if (me == 1) {
        long copy[kWords];
        if (cured)
            shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 1);
        else
            shmem_long_wait_until(data + kWords - 1, SHMEM_CMP_EQ, kWords);
        shmem_long_get(copy, data, kWords, 1); /* second: wait_on_data */
    }
}

/* A signal says that its own data is there. */
static void put_before_signal(void) {
    const long one = 1;
    if (me == 0) {
        shmem_long_put(data_of_program, &one, 1, 1); /* first: put_before_signal */
        if (cured)
            shmem_fence();
        shmem_long_put_signal(data, &one, 1, &signal_word, 1, SHMEM_SIGNAL_SET, 1);
    }
    if (me == 1) {
        shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 1);
        shmem_long_g(data_of_program, 1); /* second: put_before_signal */
    }
}

static void atomic_and_plain(void) {
    if (me == 0)
        shmem_long_atomic_add(data, 1, 1); /* first: atomic_and_plain */
    if (me == 1) {
        if (cured)
            shmem_long_atomic_set(data, 1, 1);
        else
            shmem_long_p(data, 1, 1); /* second: atomic_and_plain */
    }
}

static void wrong_context(void) {
    const long one = 1;
    shmem_ctx_t ctx;
    if (shmem_ctx_create(0, &ctx) != 0)
        abort();
    if (me == 0) {
        shmem_ctx_long_put(ctx, data, &one, 1, 1); /* first: wrong_context */
        cured ? shmem_ctx_quiet(ctx) : shmem_quiet();
    }
    shmem_barrier_all();
    if (me == 1)
        shmem_long_g(data, 1); /* second: wrong_context */
    shmem_ctx_destroy(ctx);
}

/* The next value is put before the last one has been read. */
static void put_over_read(void) {
    const long one = 1;
    if (me == 1)
        shmem_long_g(data, 0); /* first: put_over_read */
    if (cured)
        shmem_sync_all();
    if (me == 0)
        shmem_long_put(data, &one, 1, 0); /* second: put_over_read */
}

static void lock_for_one(void) {
    const long value = me;
    if (me == 0) {
        shmem_set_lock(&lock);
        shmem_long_put(data, &value, 1, 1); /* first: lock_for_one */
        shmem_clear_lock(&lock);
    }
    if (me == 1) {
        if (cured)
            shmem_set_lock(&lock);
        shmem_long_put(data, &value, 1, 1); /* second: lock_for_one */
        if (cured)
            shmem_clear_lock(&lock);
    }
}

static void broadcast_for_barrier(void) {
    const long one = 1;
    if (me == 1)
        shmem_long_put(data, &one, 1, 0); /* first: broadcast_for_barrier */
    if (cured)
        shmem_barrier_all();
    else
        shmem_long_broadcast(SHMEM_TEAM_WORLD, data_of_program, data_of_program, 1, 0);
    if (me == 0)
        shmem_long_g(data, 0); /* second: broadcast_for_barrier */
}

static void counter_without_fence(void) {
    const long one = 1;
    if (me != 0) {
        shmem_long_put(data + me, &one, 1, 0); /* first: counter_without_fence */
        if (cured)
            shmem_fence();
        shmem_long_atomic_inc(&turn, 0);
    } else {
        long copy[kWords];
        shmem_long_wait_until(&turn, SHMEM_CMP_EQ, n - 1);
        shmem_long_get(copy, data, (size_t)n, 0); /* second: counter_without_fence */
    }
}

static void strided(void) {
    long source[kWords] = {0};
    if (me == 0)
        shmem_long_iput(data, source, 2, 1, kWords / 2, 1); /* first: strided */
    if (me == 1)
        shmem_long_p(data + (cured ? 3 : 4), 1, 1); /* second: strided */
}

/* The additions may be under way when the root reads the sum. */
static void sum_then_broadcast(void) {
    shmem_long_atomic_add(&turn, 1, 0); /* first: sum_then_broadcast */
    cured ? shmem_barrier_all() : shmem_sync_all();
    shmem_long_broadcast(SHMEM_TEAM_WORLD, data, &turn, 1, 0); /* second: sum_then_broadcast */
}

static void result_of_reduction(void) {
    const long one = 1;
    if (me == 1)
        shmem_long_put(data, &one, 1, 0); /* first: result_of_reduction */
    if (cured)
        shmem_barrier_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, data, data_of_program, 4); /* second: result_of_reduction */
}

/* Who has the result does not know that others have it. */
static void result_elsewhere(void) {
    shmem_long_fcollect(SHMEM_TEAM_WORLD, data, data_of_program, 1); /* first: result_elsewhere */
    if (cured)
        shmem_sync_all();
    if (me == 0)
        shmem_long_g(data, 1); /* second: result_elsewhere */
}

/* PE 1 says that it has read an item. PE 0 looks for the item before, unless cured. */
static void credits(void) {
    for (long item = 1; item <= 4; ++item) {
        if (me == 0) {
            shmem_long_wait_until(&turn, SHMEM_CMP_GE, cured ? item - 1 : item - 2);
            shmem_long_put(data, &item, 1, 1); /* first: credits */
            shmem_fence();
            shmem_long_p(&flag, item, 1);
        } else if (me == 1) {
            shmem_long_wait_until(&flag, SHMEM_CMP_GE, item);
            shmem_long_g(data, 1); /* second: credits */
            shmem_long_atomic_inc(&turn, 0);
        }
    }
}

/* A barrier completes what is on the default context. */
static void freed_block(void) {
    const long one = 1;
    long* const block = shmem_malloc(sizeof *block);
    shmem_ctx_t ctx;
    if (shmem_ctx_create(0, &ctx) != 0)
        abort();
    if (me == 0)
        shmem_ctx_long_put(ctx, block, &one, 1, 1); /* first: freed_block */
    if (cured)
        shmem_ctx_quiet(ctx);
    shmem_free(block); /* second: freed_block */
    shmem_ctx_destroy(ctx);
}

static const struct {
    const char* name;
    void (*run)(void);
} kCases[] = {{"no_wait", no_wait},
              {"posted_barrier", posted_barrier},
              {"no_fence", no_fence},
              {"sync_for_quiet", sync_for_quiet},
              {"fence_for_quiet", fence_for_quiet},
              {"two_puts", two_puts},
              {"own_puts", own_puts},
              {"own_put_and_get", own_put_and_get},
              {"source_of_nbi", source_of_nbi},
              {"value_of_nbi", value_of_nbi},
              {"exchange_source", exchange_source},
              {"exchange_value", exchange_value},
              {"wait_on_data", wait_on_data},
              {"put_before_signal", put_before_signal},
              {"atomic_and_plain", atomic_and_plain},
              {"wrong_context", wrong_context},
              {"put_over_read", put_over_read},
              {"lock_for_one", lock_for_one},
              {"broadcast_for_barrier", broadcast_for_barrier},
              {"counter_without_fence", counter_without_fence},
              {"strided", strided},
              {"sum_then_broadcast", sum_then_broadcast},
              {"result_of_reduction", result_of_reduction},
              {"result_elsewhere", result_elsewhere},
              {"credits", credits},
              {"freed_block", freed_block}};

/* Where the thread's variables of C++ have ended. */
static void at_exit(void) {
    shmem_long_put_signal(data_of_program, data, kWords, &signal_word, 1, SHMEM_SIGNAL_ADD, (me + 1) % n);
    shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 2);
    shmem_finalize();
    printf("goes on\n");
}

int main(int argc, char** argv) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    cured = argc > 2 && strcmp(argv[2], "cured") == 0;
    data = shmem_malloc(kWords * sizeof *data); /* the block */
    memset(data, 0, kWords * sizeof *data);
    shmem_barrier_all();
    for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; ++i)
        if (argc > 1 && strcmp(argv[1], kCases[i].name) == 0)
            kCases[i].run();
    shmem_barrier_all();
    if (argc > 1 && strcmp(argv[1], "at_exit") == 0) {
        shmem_long_put_signal(data_of_program, data, kWords, &signal_word, 1, SHMEM_SIGNAL_ADD, (me + 1) % n);
        shmem_barrier_all();
        return atexit(at_exit);
    }
    shmem_free(data);
    shmem_finalize();
    printf("goes on\n");
    return 0;
}
