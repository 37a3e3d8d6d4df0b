/* Data and a flag behind it, without a fence between them. */
#include <shmem.h>
#include <stdio.h>

static long data[8], flag;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    const long values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    shmem_long_put(data, values, 8, right);
#ifdef CURED
    shmem_fence();
#endif
    shmem_long_atomic_set(&flag, 1, right);

    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    long sum = 0;
    for (int i = 0; i < 8; ++i) sum += data[i];
    printf("PE %d: the sum is %ld, right would be 36\n", me, sum);
    shmem_finalize();
    return sum != 36;
}
