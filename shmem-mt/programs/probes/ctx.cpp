// Contexts of OpenSHMEM 1.4: made, used by puts and atomics, completed, destroyed.
#include <shmem.h>

int main() {
    shmem_ctx_t ctx;
    long value = 0;
    const int status = shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx);
    shmem_ctx_long_p(ctx, &value, 1, 0);
    shmem_ctx_putmem_nbi(ctx, &value, &value, 8, 0);
    value = shmem_ctx_long_atomic_fetch_add(ctx, &value, 1, 0);
    shmem_ctx_quiet(ctx);
    shmem_ctx_destroy(ctx);
    return status;
}
