/* An account on another PE: what was put is read back, and no quiet is between. */
#include <shmem.h>
#include <stdio.h>

static long balance;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe();
    if (me == 0) {
        shmem_long_p(&balance, 100, 1);
#ifdef CURED
        shmem_quiet();
#endif
        const long before = shmem_long_g(&balance, 1);
        shmem_fence();
        shmem_long_p(&balance, before + 50, 1);
    }
    shmem_barrier_all();
    const long got = balance;
    if (me == 1)
        printf("the balance is %ld, right would be 150\n", got);
    shmem_finalize();
    return me == 1 && got != 150;
}
