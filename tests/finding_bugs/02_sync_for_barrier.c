/* A sync where a barrier is needed: a sync does not complete puts. */
#include <shmem.h>
#include <stdio.h>

static long from_left = -1;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes(), left = (me + n - 1) % n;
    shmem_long_p(&from_left, me, (me + 1) % n);
#ifdef CURED
    shmem_barrier_all();
#else
    shmem_sync_all();
#endif
    const long got = from_left;
    printf("PE %d has %ld, right would be %d\n", me, got, left);
    shmem_finalize();
    return got != left;
}
