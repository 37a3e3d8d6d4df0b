// Non-blocking fetching atomics of OpenSHMEM 1.5.
#include <shmem.h>

int main() {
    long value = 0;
    shmem_long_atomic_fetch_add_nbi(&value, &value, 1, 0);
    shmem_ctx_long_atomic_fetch_add_nbi(SHMEM_CTX_DEFAULT, &value, &value, 1, 0);
    return 0;
}
