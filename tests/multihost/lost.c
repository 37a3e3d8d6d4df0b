/* PEs that go on for ever in the way that the argument names, for tests that take a PE or a host from them. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long words[64], sum;

int main(int argc, char** argv) {
    shmem_init();
    const char* way = argc > 1 ? argv[1] : "barrier";
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_barrier_all();
    shmem_long_p(&words[me], 1, (me + 1) % n);
    shmem_quiet();
    printf("pid %d\n", getpid());
    fflush(stdout);
    if (strcmp(way, "exchange") == 0)
        for (long i = 0;; ++i) {
            for (int pe = 0; pe < n; ++pe) shmem_long_atomic_add(&words[i % 64], i, pe);
            shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &words[0], 1);
        }
    if (strcmp(way, "compute") == 0)
        for (volatile long i = 0;; i = i + 1) continue;
    if (strcmp(way, "barrier") == 0 && me == 0)
        for (;;) pause();
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
