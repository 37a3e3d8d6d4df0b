/* Sends megabytes from the first PE to the last, as many as the argument says, and checks the last of them. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMiB = 1 << 20 };

int main(int argc, char** argv) {
    shmem_init();
    const int megabytes = argc > 1 ? atoi(argv[1]) : 1, last = shmem_n_pes() - 1;
    unsigned char* to = shmem_malloc(kMiB);
    unsigned char* from = malloc(kMiB);
    for (int i = 1; i <= megabytes && shmem_my_pe() == 0; ++i) {
        memset(from, i, kMiB);
        shmem_putmem(to, from, kMiB, last);
        shmem_quiet();
    }
    shmem_barrier_all();
    if (shmem_my_pe() == last)
        for (int i = 0; i < kMiB; ++i)
            if (to[i] != (unsigned char)megabytes)
                shmem_global_exit(9);
    free(from);
    shmem_finalize();
    return 0;
}
