/* Each PE draws a ticket by a non-blocking fetch, and uses the number before the quiet. */
#include <shmem.h>
#include <stdio.h>

static long next_ticket, owners[64];

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    long ticket = 0;
    shmem_long_atomic_fetch_add_nbi(&ticket, &next_ticket, 1, 0);
#ifdef CURED
    shmem_quiet();
#endif
    shmem_long_atomic_add(&owners[ticket], 1, 0);
    shmem_barrier_all();
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += me == 0 && owners[i] != 1;
    if (me == 0)
        printf("%d tickets do not have one owner, right would be 0\n", wrong);
    shmem_finalize();
    return wrong != 0;
}
