/* PEs that send to each other on ordered and on relaxed contexts for as many seconds as the first argument says, and
 * check what comes: words that count up, atomics of which none may be lost or done twice, gets, and large data; for
 * tests that take a rail from them meanwhile. */
#include <shmem.h>
#include <shmemx.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kWords = 30000, kLarge = 300000 };
static uint64_t words[kWords], added, flag, stopped;
static char large[kLarge];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void fail(const char* what, uint64_t got, uint64_t right) {
    fprintf(stderr, "PE %d: %s is %llu, right would be %llu\n", shmem_my_pe(), what, (unsigned long long)got,
            (unsigned long long)right);
    shmem_global_exit(3);
}

int main(int argc, char** argv) {
    shmem_init();
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    const int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, last = (me + n - 1) % n;
    shmem_ctx_t ordered, relaxed;
    if (shmem_ctx_create(SHMEMX_CTX_ORDERED, &ordered) != 0 || shmem_ctx_create(SHMEMX_CTX_RELAXED, &relaxed) != 0)
        fail("a context", 0, 1);
    char* const mine = malloc(kLarge);
    char* const got = malloc(kLarge);
    uint64_t* const values = malloc(sizeof words);
    shmem_barrier_all();
    printf("pid %d\n", getpid());
    fflush(stdout);
    const double begin = now();
    uint64_t round = 0;
    for (int goes_on = 1; goes_on;) {
        ++round;
        for (int i = 0; i < kWords; ++i) values[i] = round;
        memset(mine, (int)(round % 251), kLarge);
        for (int i = 0; i < kWords; i += 100) shmem_ctx_uint64_put_nbi(ordered, &words[i], &values[i], 100, next);
        for (int i = 0; i < 1000; ++i) shmem_ctx_uint64_atomic_inc(relaxed, &added, next);
        shmem_ctx_putmem_nbi(relaxed, large, mine, kLarge, next);
        shmem_ctx_fence(relaxed);
        shmem_ctx_uint64_p(relaxed, &flag, round, next);
        shmem_uint64_wait_until(&flag, SHMEM_CMP_EQ, round);
        for (int i = 0; i < kLarge; ++i)
            if (large[i] != mine[i])
                fail("a byte behind the fence", (unsigned char)large[i], (unsigned char)mine[i]);
        shmem_uint64_wait_until(&words[kWords - 1], SHMEM_CMP_EQ, round);
        for (int i = 0; i < kWords; ++i)
            if (words[i] != round)
                fail("a word ahead of the last", words[i], round);
        shmem_ctx_quiet(relaxed);
        shmem_ctx_quiet(ordered);
        shmem_barrier_all();
        if (added != 1000 * round)
            fail("the count", added, 1000 * round);
        shmem_ctx_getmem(relaxed, got, large, kLarge, last);
        if (memcmp(got, mine, kLarge) != 0)
            fail("what was got", (unsigned char)got[0], (unsigned char)mine[0]);
        const uint64_t old = shmem_ctx_uint64_atomic_fetch_add(relaxed, &stopped, now() - begin > seconds, 0);
        shmem_barrier_all();
        goes_on = (shmem_uint64_g(&stopped, 0) == 0);
        (void)old;
        shmem_barrier_all();
    }
    if (me == 0)
        printf("%llu rounds\n", (unsigned long long)round);
    shmem_ctx_destroy(ordered);
    shmem_ctx_destroy(relaxed);
    shmem_finalize();
    return 0;
}
