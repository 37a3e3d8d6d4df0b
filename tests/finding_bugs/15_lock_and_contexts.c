/* A counter under a lock, put on a context of its own: clear_lock completes what is on the default context alone. */
#include <shmem.h>
#include <stdio.h>

static long lock, counter;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_ctx_t ctx;
    if (shmem_ctx_create(0, &ctx) != 0)
        shmem_global_exit(2);
    shmem_set_lock(&lock);
    shmem_ctx_long_p(ctx, &counter, shmem_long_g(&counter, 0) + 1, 0);
#ifdef CURED
    shmem_ctx_quiet(ctx);
#endif
    shmem_clear_lock(&lock);
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    const long got = counter;
    if (me == 0)
        printf("the counter is %ld, right would be %d\n", got, n);
    shmem_finalize();
    return me == 0 && got != n;
}
