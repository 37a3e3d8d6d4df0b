/* Data with a signal, which the receiver does not wait for: it believes that a sync will do. */
#include <shmem.h>
#include <stdio.h>

static long data[8];
static uint64_t signal_of_data;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    const long values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    shmem_long_put_signal(data, values, 8, &signal_of_data, 1, SHMEM_SIGNAL_SET, (me + 1) % n);
    shmem_sync_all();
#ifdef CURED
    shmem_signal_wait_until(&signal_of_data, SHMEM_CMP_EQ, 1);
#endif
    long sum = 0;
    for (int i = 0; i < 8; ++i) sum += data[i];
    printf("PE %d: the sum is %ld, right would be 36\n", me, sum);
    shmem_finalize();
    return sum != 36;
}
