/* A PE puts to all, itself among them, and reads its own part at once. */
#include <shmem.h>
#include <stdio.h>

static long table[64];

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    for (int pe = 0; pe < n; ++pe) shmem_long_p(&table[me], 5, pe);
#ifdef CURED
    shmem_quiet();
#endif
    const long mine = table[me];
    shmem_barrier_all();
    printf("PE %d has put %ld to itself, right would be 5\n", me, mine);
    shmem_finalize();
    return mine != 5;
}
