// What the programs share: the verdict.
#pragma once

#include <shmem.hpp>

#include <cstdio>

#define EXPECT(condition)                                                                               \
    do {                                                                                                \
        if (!(condition)) {                                                                             \
            std::fprintf(stderr, "PE %d: %s:%d: %s\n", shmem::my_pe(), __FILE__, __LINE__, #condition); \
            ::shmem_global_exit(1);                                                                     \
        }                                                                                               \
    } while (0)

inline void pass(const char* name) {
    ::shmem_barrier_all();
    if (shmem::my_pe() == 0)
        std::printf("%s: pass on %d PEs\n", name, shmem::n_pes());
}
