/* A put gives a counter its first value, and an atomic operation adds to it: nothing orders the two, and they may not
 * meet at one place. */
#include <shmem.h>
#include <stdio.h>

static long counter;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe();
    if (me == 0) {
#ifdef CURED
        shmem_long_atomic_set(&counter, 100, 1);
        shmem_fence();
#else
        shmem_long_p(&counter, 100, 1);
#endif
        shmem_long_atomic_add(&counter, 5, 1);
    }
    shmem_barrier_all();
    const long got = counter;
    if (me == 1)
        printf("the counter is %ld, right would be 105\n", got);
    shmem_finalize();
    return me == 1 && got != 105;
}
