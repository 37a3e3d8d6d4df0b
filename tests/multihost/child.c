/* A PE that starts a program which calls OpenSHMEM: itself, with an argument. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    shmem_init();
    printf("%s: PE %d of %d\n", argc > 1 ? "child" : "parent", shmem_my_pe(), shmem_n_pes());
    fflush(stdout);
    if (argc == 1) {
        char command[4096];
        snprintf(command, sizeof command, "%s child", argv[0]);
        if (system(command) != 0)
            shmem_global_exit(1);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
