/* A token goes from PE to PE. Its holder alone changes the counter on PE 0, and passes the token on at once. */
#include <shmem.h>
#include <stdio.h>

static long counter, token;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    if (me != 0)
        shmem_long_wait_until(&token, SHMEM_CMP_EQ, 1);
    shmem_long_p(&counter, shmem_long_g(&counter, 0) + 1, 0);
#ifdef CURED
    shmem_quiet();
#endif
    if (me + 1 < n)
        shmem_long_atomic_set(&token, 1, me + 1);
    shmem_barrier_all();
    const long got = counter;
    if (me == 0)
        printf("the counter is %ld, right would be %d\n", got, n);
    shmem_finalize();
    return me == 0 && got != n;
}
