// Calls whose numbers are known: test_profile.py looks for them. counted THREADS
#include <pthread.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>

enum { kWords = 4096 };
static long words[kWords];
static long counter, lock, word;
static char data[1 << 17], source[1 << 17];
static double result, value;
static uint64_t sig;
static int me, n, right;

static void* send_all(void* unused) {
    shmem_ctx_t ctx;
    (void)unused;
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) != 0)
        abort();
    for (int i = 0; i < 37; ++i) shmem_ctx_long_p(ctx, &words[i * 3], i, right);
    shmem_ctx_quiet(ctx);
    shmem_ctx_destroy(ctx);
    return NULL;
}

int main(int argc, char** argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    int provided;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 || provided != SHMEM_THREAD_MULTIPLE)
        return 1;
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    pthread_t others[64];
    for (int i = 0; i < threads; ++i) pthread_create(&others[i], NULL, send_all, NULL);
    for (int i = 0; i < threads; ++i) pthread_join(others[i], NULL);
    for (int i = 0; i < 11; ++i) shmem_putmem(data, source, 1001, right);
    for (int i = 0; i < 5; ++i) shmem_getmem(source, data, 100001, right);
    for (int i = 0; i < 13; ++i) shmem_long_atomic_inc(&counter, 0);
    long sum = 0;
    for (int i = 0; i < 17; ++i) sum += shmem_long_g(&words[i], right);
    for (int i = 0; i < 19; ++i) {
        shmem_long_put_nbi(&word, &sum, 1, right);
        shmem_fence();
    }
    shmem_quiet();
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (int i = 0; i < 23; ++i) shmemx_putmem_nbe(data, source, 64, right, &request);
    shmemx_request_wait(&request);
    shmem_putmem_signal(data, source, 33, &sig, 1, SHMEM_SIGNAL_ADD, right);
    shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 1);
    for (int i = 0; i < 3; ++i) shmem_barrier_all();
    for (int i = 0; i < 2; ++i) shmem_double_sum_reduce(SHMEM_TEAM_WORLD, &result, &value, 1);
    void* const block = shmem_malloc(1 << 20);
    shmem_free(block);
    shmem_set_lock(&lock);
    shmem_clear_lock(&lock);
    printf("%d %ld\n", me, (long)n);
    shmem_finalize();
    return sum == 1234567;
}
