/* One buffer is the source of several non-blocking puts, and is filled again before the quiet. */
#include <shmem.h>
#include <stdio.h>

static long received[64];

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    long buffer;
    for (int pe = 0; pe < n; ++pe) {
        buffer = 100 * me + pe;
        shmem_long_put_nbi(&received[me], &buffer, 1, pe);
#ifdef CURED
        shmem_quiet();
#endif
    }
    shmem_barrier_all();
    int wrong = 0;
    for (int pe = 0; pe < n; ++pe) wrong += received[pe] != 100 * pe + me;
    printf("PE %d has %d wrong numbers, right would be 0\n", me, wrong);
    shmem_finalize();
    return wrong != 0;
}
