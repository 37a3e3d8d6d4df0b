/* What the programs of this folder share: the verdict. Each checks its own answer; PE 0 prints one line. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

/* A size from the command line, or its default; at least 1. */
static inline size_t example_size(int argc, char** argv, int place, size_t otherwise) {
    const size_t given = argc > place ? (size_t)strtoul(argv[place], NULL, 10) : otherwise;
    return given < 1 ? 1 : given;
}

/* Ends the job with a message when a condition does not hold. */
#define REQUIRE(condition, ...)                                   \
    do {                                                          \
        if (!(condition)) {                                       \
            fprintf(stderr, "PE %d: ", shmem_my_pe());            \
            fprintf(stderr, __VA_ARGS__);                         \
            fprintf(stderr, " (%s does not hold)\n", #condition); \
            shmem_global_exit(1);                                 \
        }                                                         \
    } while (0)

/* All PEs have passed their checks when all are here. */
static inline int example_pass(const char* name) {
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        printf("%s: pass on %d PEs\n", name, shmem_n_pes());
    shmem_finalize();
    return 0;
}

#endif
