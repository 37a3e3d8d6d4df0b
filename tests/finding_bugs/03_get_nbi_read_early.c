/* The dest of a non-blocking get is read before the quiet. */
#include <shmem.h>
#include <stdio.h>

static long value;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    value = 10 + me;
    shmem_barrier_all();
    long theirs = 0;
    shmem_long_get_nbi(&theirs, &value, 1, right);
#ifdef CURED
    shmem_quiet();
#endif
    const long seen = theirs;
    shmem_quiet();
    printf("PE %d has read %ld, right would be %d\n", me, seen, 10 + right);
    shmem_finalize();
    return seen != 10 + right;
}
