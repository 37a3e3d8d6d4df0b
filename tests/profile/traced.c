// What a trace shows: traced rounds|many|paused. The last PE is late for each barrier.
#include <pthread.h>
#include <shmem.h>
#include <string.h>
#include <unistd.h>

enum { kRounds = 10, kMany = 20000 };
static long word, flag, lock, data[1000];
static uint64_t sig;
static double results[4], values[4];
static int me, n, right;

static void* add(void* unused) {
    shmem_ctx_t ctx;
    (void)unused;
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) != 0)
        return NULL;
    for (int i = 0; i < kRounds; ++i) shmem_ctx_long_atomic_inc(ctx, &word, right);  // add
    shmem_ctx_destroy(ctx);
    return NULL;
}

static void rounds(void) {
    pthread_t other;
    pthread_create(&other, NULL, add, NULL);
    for (int i = 1; i <= kRounds; ++i) {
        if (me == n - 1)
            usleep(1000);
        shmem_barrier_all();                                                            // late
        shmem_long_put_signal(data, data + 500, 99, &sig, 1, SHMEM_SIGNAL_ADD, right);  // signal
        shmem_signal_wait_until(&sig, SHMEM_CMP_GE, (uint64_t)i);
        if (me == 0) {
            usleep(1000);
            for (int pe = 0; pe < n; ++pe) shmem_long_p(&flag, i, pe);  // flag
            shmem_quiet();
        }
        shmem_long_wait_until(&flag, SHMEM_CMP_GE, i);
        shmem_set_lock(&lock);
        usleep(100);
        shmem_clear_lock(&lock);
        shmem_double_sum_reduce(SHMEM_TEAM_WORLD, results, values, 4);
    }
    pthread_join(other, NULL);
}

static void many(void) {
    for (int i = 0; i < kMany; ++i) {
        shmem_long_p(&word, i, right);  // many
        shmem_fence();
        shmem_quiet();
    }
}

static void blind(void) {
    for (int i = 0; i < kMany; ++i) shmem_long_p(&word, i, right);  // blind
    shmem_quiet();
}

static void paused(void) {
    shmem_pcontrol(0);
    for (int i = 0; i < 5; ++i) shmem_long_atomic_inc(&word, right);  // paused
    shmem_pcontrol(1);
    for (int i = 0; i < 3; ++i) shmem_long_atomic_add(&word, 2, right);
    shmem_quiet();
}

int main(int argc, char** argv) {
    int provided;
    shmem_pcontrol(0);
    shmem_pcontrol(1);
    if (argc != 2 || shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
        return 1;
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    if (strcmp(argv[1], "rounds") == 0)
        rounds();
    else if (strcmp(argv[1], "many") == 0)
        many();
    else if (strcmp(argv[1], "blind") == 0)
        blind();
    else
        paused();
    shmem_finalize();
    return 0;
}
