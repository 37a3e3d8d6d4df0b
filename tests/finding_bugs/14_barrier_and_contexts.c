/* Puts on a context of its own, and a barrier, which completes those of the default context alone. */
#include <shmem.h>
#include <stdio.h>

static long from_left = -1;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes(), left = (me + n - 1) % n;
    shmem_ctx_t ctx;
    if (shmem_ctx_create(0, &ctx) != 0)
        shmem_global_exit(2);
    shmem_ctx_long_p(ctx, &from_left, me, (me + 1) % n);
#ifdef CURED
    shmem_ctx_quiet(ctx);
#endif
    shmem_barrier_all();
    const long got = from_left;
    printf("PE %d has %ld, right would be %d\n", me, got, left);
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return got != left;
}
