/* Each PE puts to the PE behind its right neighbour, fences, and tells the neighbour, which passes the news on. */
#include <shmem.h>
#include <stdio.h>

static long data, flag, told;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n;
    shmem_long_p(&data, 42, (me + 2) % n);
#ifdef CURED
    shmem_quiet();
#else
    shmem_fence();
#endif
    shmem_long_atomic_set(&flag, 1, right);

    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    shmem_long_atomic_set(&told, 1, right);

    shmem_long_wait_until(&told, SHMEM_CMP_EQ, 1);
    const long got = data;
    printf("PE %d: the data is %ld, right would be 42\n", me, got);
    shmem_finalize();
    return got != 42;
}
