/* Every PE adds to a total on PE 0, which then broadcasts it. Additions may be under way when their calls return. */
#include <shmem.h>
#include <stdio.h>

static long total, result;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes(), right = n * (n + 1) / 2;
    shmem_long_atomic_add(&total, me + 1, 0);
#ifdef CURED
    shmem_barrier_all();
#else
    shmem_sync_all();
#endif
    shmem_long_broadcast(SHMEM_TEAM_WORLD, &result, &total, 1, 0);
    const long got = result;
    printf("PE %d has the total %ld, right would be %d\n", me, got, right);
    shmem_finalize();
    return got != right;
}
