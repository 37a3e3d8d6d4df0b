/* Memory is freed while a put into it may be under way: free completes what is on the default context alone. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_ctx_t ctx;
    if (shmem_ctx_create(0, &ctx) != 0)
        shmem_global_exit(2);
    const long ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    long* old_block = shmem_malloc(8 * sizeof(long));
    shmem_ctx_long_put(ctx, old_block, ones, 8, (me + 1) % n);
#ifdef CURED
    shmem_ctx_quiet(ctx);
#endif
    shmem_free(old_block);
    long* block = shmem_malloc(8 * sizeof(long)); /* probably at the same place */
    for (int i = 0; i < 8; ++i) block[i] = 5;
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    long sum = 0;
    for (int i = 0; i < 8; ++i) sum += block[i];
    printf("PE %d: the sum is %ld, right would be 40\n", me, sum);
    shmem_free(block);
    shmem_finalize();
    return sum != 40;
}
