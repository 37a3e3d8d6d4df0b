// Programs that are slow for one reason each, and without it: sick DISEASE sick|cured. The line of the disease bears its
// name in a comment, so that test_profile.py finds it.
#include <pthread.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kCalls = 3000, kBig = 1 << 18 };
static long words[kCalls], counters[64], lock;
static double results[2], values[2];
static char big[kBig], there[kBig];
static uint64_t sig;
static int me, n, right, sick;

static void single_quiets(void) {
    for (int i = 0; i < kCalls; ++i) {
        shmem_long_p(&words[i], i, right);
        if (sick)
            shmem_quiet();  // single-quiets
    }
    shmem_quiet();
}

static void late_pe(void) {
    for (int i = 0; i < 30; ++i) {
        const int late_us = me == n - 1 ? 20000 : 1000, even_us = (20000 + (n - 1) * 1000) / n;  // as much work
        usleep((useconds_t)(sick ? late_us : even_us));
        shmem_barrier_all();  // late-pe
    }
}

static void small_gets(void) {
    long sum = 0;
    if (sick)
        for (int round = 0; round < 5; ++round)
            for (int i = 0; i < kCalls; ++i) sum += shmem_long_g(&words[i], right);  // small-gets
    else
        shmem_long_get(&words[1], &words[0], kCalls - 1, right);
    words[0] = sum;
}

static void small_puts(void) {
    static long own[kCalls];
    if (sick)
        for (int round = 0; round < 2000; ++round)
            for (int i = 0; i < kCalls; ++i) shmem_long_p(&words[i], own[i], right);  // small-puts
    else
        shmem_long_put(words, own, kCalls, right);
}

static void fetches(void) {
    long sum = 0;
    if (sick)
        for (int i = 0; i < kCalls; ++i) sum += shmem_long_atomic_fetch_inc(&counters[me], right);  // fetches
    else
        for (int i = 0; i < kCalls; ++i) shmem_long_atomic_inc(&counters[me], right);
    shmem_quiet();
    words[0] = sum;
}

static void* get_some(void* unused) {
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    long word;
    (void)unused;
    if (!sick)
        shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx);
    for (int i = 0; i < kCalls; ++i) shmem_ctx_getmem(ctx, &word, &words[i], sizeof word, right);  // shared-context
    if (!sick)
        shmem_ctx_destroy(ctx);
    return NULL;
}

static void shared_context(void) {
    pthread_t other;
    pthread_create(&other, NULL, get_some, NULL);
    get_some(NULL);
    pthread_join(other, NULL);
}

static void blocking_transfers(void) {
    for (int i = 0; i < 50; ++i) {
        if (sick)
            shmem_getmem(big, there, kBig, right);  // blocking-transfers
        else
            shmem_getmem_nbi(big, there, kBig, right);
        usleep(2000);
        shmem_quiet();
    }
}

static void no_overlap(void) {
    for (int i = 0; i < 50; ++i) {
        if (sick)
            usleep(5000);
        shmem_getmem_nbi(big, there, kBig / 2, right);
        shmem_getmem_nbi(big + kBig / 2, there, kBig / 2, right);
        if (!sick)
            usleep(5000);
        shmem_quiet();  // no-overlap
    }
}

static void locks(void) {
    for (int i = 0; i < 20; ++i) {
        if (sick)
            shmem_set_lock(&lock);  // locks
        usleep(1000);
        if (sick)
            shmem_clear_lock(&lock);
    }
}

static void small_collectives(void) {
    for (int i = 0; i < 1000; ++i) {
        if (sick) {
            shmem_double_sum_reduce(SHMEM_TEAM_WORLD, results, values, 1);
            shmem_double_sum_reduce(SHMEM_TEAM_WORLD, results + 1, values + 1, 1);  // small-collectives
        } else {
            shmem_double_sum_reduce(SHMEM_TEAM_WORLD, results, values, 2);
        }
    }
}

static void barriers_of_neighbors(void) {
    for (int i = 0; i < 300; ++i) {
        if (sick) {
            shmem_long_p(&words[i], i, right);
            shmem_barrier_all();  // barriers-of-neighbors
        } else {
            shmem_long_put_signal(&words[i], &words[kCalls - 1], 1, &sig, 1, SHMEM_SIGNAL_ADD, right);
            shmem_signal_wait_until(&sig, SHMEM_CMP_GT, (uint64_t)i);
        }
    }
}

static void hot_target(void) {
    long sum = 0;
    for (int i = 0; i < 30000; ++i) sum += shmem_long_atomic_fetch_inc(&counters[0], sick ? 0 : me);  // hot-target
    words[0] = sum;
}

static const struct {
    const char* name;
    void (*run)(void);
} diseases[] = {
    {"single-quiets", single_quiets},
    {"late-pe", late_pe},
    {"small-gets", small_gets},
    {"small-puts", small_puts},
    {"fetches", fetches},
    {"shared-context", shared_context},
    {"blocking-transfers", blocking_transfers},
    {"no-overlap", no_overlap},
    {"locks", locks},
    {"small-collectives", small_collectives},
    {"barriers-of-neighbors", barriers_of_neighbors},
    {"hot-target", hot_target},
};

int main(int argc, char** argv) {
    int provided;
    if (argc != 3 || shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
        return 1;
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    sick = strcmp(argv[2], "sick") == 0;
    shmem_barrier_all();
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (size_t i = 0; i < sizeof diseases / sizeof diseases[0]; ++i)
        if (strcmp(argv[1], diseases[i].name) == 0)
            diseases[i].run();
    shmem_barrier_all();
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (me == 0)
        printf("%.9f\n", (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
    shmem_finalize();
    return 0;
}
