/* The put is on a context of its own, the quiet on the default context. */
#include <shmem.h>
#include <stdio.h>

static long data, flag;

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    shmem_ctx_t ctx;
    if (shmem_ctx_create(0, &ctx) != 0)
        shmem_global_exit(2);
    shmem_ctx_long_p(ctx, &data, 42, right);
#ifdef CURED
    shmem_ctx_quiet(ctx);
#else
    shmem_quiet();
#endif
    shmem_long_atomic_set(&flag, 1, right);

    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    const long got = data;
    printf("PE %d: the data is %ld, right would be 42\n", me, got);
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return got != 42;
}
