/* Example of the manual pages (see rma.c): a program of its own, which the test runs by itself. */
/* == shmem_init shmem_finalize == */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    printf("PE %d of %d\n", shmem_my_pe(), shmem_n_pes());
    shmem_finalize();
    return 0;
}
