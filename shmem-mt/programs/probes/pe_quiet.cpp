// Quiet of given PEs, of OpenSHMEM 1.6.
#include <shmem.h>

int main() {
    const int pe = 0;
    shmem_pe_quiet(&pe, 1);
    shmem_ctx_pe_quiet(SHMEM_CTX_DEFAULT, &pe, 1);
    return 0;
}
