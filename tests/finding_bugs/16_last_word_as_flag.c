/* The receiver waits for the last word of a put, and believes that the others are there, too. */
#include <shmem.h>
#include <stdio.h>

static long data[8];
#ifdef CURED
static uint64_t arrived;
#endif

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    const long values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
#ifdef CURED
    shmem_long_put_signal(data, values, 8, &arrived, 1, SHMEM_SIGNAL_SET, right);
    shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 1);
#else
    shmem_long_put(data, values, 8, right);
    shmem_long_wait_until(&data[7], SHMEM_CMP_EQ, 8);
#endif
    long sum = 0;
    for (int i = 0; i < 8; ++i) sum += data[i];
    printf("PE %d: the sum is %ld, right would be 36\n", me, sum);
    shmem_finalize();
    return sum != 36;
}
