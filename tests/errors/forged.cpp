// forged SEED: PE 1 sends control messages of any length and content (forge.h) while the others are in a collective,
// one of several. Neither may end but by a message, or as if all had been right. Prints "survived".
#include "forge.h"

#include <shmem.h>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr size_t kMost = 64 * 1024;  // elements

size_t nelems_of(unsigned seed) {
    constexpr size_t kCounts[] = {1, 2, 40, 3000};
    return kCounts[seed / 8 % 4];
}

// As if PE 1 were in the collective of the others: broadcast, collect, and so on (StepKind).
void forge(unsigned seed) {
    constexpr unsigned kKinds[] = {1, 2, 2, 3, 4, 4, 5, 6};
    const unsigned kind = kKinds[seed % 8];
    forge_step(seed, kind, kind == 2 ? 0 : nelems_of(seed) * sizeof(long));
}

void collective(unsigned seed, long* dest, const long* source) {
    const size_t nelems = nelems_of(seed);
    switch (seed % 8) {
        case 0:
            return (void)shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, nelems, 1);
        case 1:
        case 2:
            return (void)shmem_long_collect(SHMEM_TEAM_WORLD, dest, source, nelems);
        case 3:
            return (void)shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, source, nelems);
        case 4:
            return (void)shmem_long_alltoall(SHMEM_TEAM_WORLD, dest, source, nelems);
        case 5:
            return (void)shmem_long_alltoalls(SHMEM_TEAM_WORLD, dest, source, 2, 2, nelems);
        case 6:
            return (void)shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, nelems);
        default:
            return (void)shmem_long_sum_inscan(SHMEM_TEAM_WORLD, dest, source, nelems);
    }
}

}  // namespace

int main(int argc, char** argv) {
    shmem_init();
    const unsigned seed = argc > 1 ? static_cast<unsigned>(strtoul(argv[1], nullptr, 0)) : 0;
    auto* const dest = static_cast<long*>(shmem_calloc(2 * kMost, sizeof(long)));
    if (shmem_my_pe() == 1)
        forge(seed);
    else
        collective(seed, dest, dest + kMost);
    shmem_finalize();
    printf("survived\n");
    return 0;
}
