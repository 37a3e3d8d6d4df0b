/* A header by a put, the body by a put with a signal: the signal speaks of the body alone. */
#include <shmem.h>
#include <stdio.h>

static long header, body[8];
static uint64_t arrived;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    const long values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    shmem_long_p(&header, 8, right);
#ifdef CURED
    shmem_fence();
#endif
    shmem_long_put_signal(body, values, 8, &arrived, 1, SHMEM_SIGNAL_SET, right);

    shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 1);
    long sum = 0;
    for (long i = 0; i < header; ++i) sum += body[i];
    printf("PE %d: the sum is %ld, right would be 36\n", me, sum);
    shmem_finalize();
    return sum != 36;
}
