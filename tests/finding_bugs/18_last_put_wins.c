/* A state is put twice to one place, and the second put is taken for the last. */
#include <shmem.h>
#include <stdio.h>

enum { kIdle, kRunning, kDone };
static long state = kIdle;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe();
    if (me == 0) {
        shmem_long_p(&state, kRunning, 1);
#ifdef CURED
        shmem_fence();
#endif
        shmem_long_p(&state, kDone, 1);
    }
    shmem_barrier_all();
    const long got = state;
    if (me == 1)
        printf("the state is %ld, right would be %d\n", got, kDone);
    shmem_finalize();
    return me == 1 && got != kDone;
}
