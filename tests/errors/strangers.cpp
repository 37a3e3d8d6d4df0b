// strangers FILE: PEs that exchange words until there is a file of that name, while strangers send to their ports
// (test_strangers.py). Prints `pid N` first, and at the end "right" when every word is.
// strangers forge: PE 1 sends as a process of another job.
#include "forge.h"

#include <shmem.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

long words[64], sum, one = 1, seen_file, ends;

bool exchange(const char* file) {
    const int n_pes = shmem_n_pes();
    long rounds = 0;
    bool right = true;
    do {
        for (int pe = 0; pe < n_pes; ++pe) shmem_long_atomic_add(&words[rounds % 64], 1, pe);
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &one, 1);
        right = right && sum == n_pes;
        ++rounds;
        seen_file = access(file, F_OK) == 0;
        shmem_long_max_reduce(SHMEM_TEAM_WORLD, &ends, &seen_file, 1);
    } while (ends == 0);
    shmem_barrier_all();
    long all = 0;
    for (const long word : words) all += word;
    return right && all == n_pes * rounds;
}

bool forge() {
    const bool sends = shmem_my_pe() == 1;
    const bool sent = !sends || send_as_stranger(0) > 0;
    shmem_barrier_all();
    long all = 0;
    for (const long word : words) all += word;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &one, 1);
    return sent && all == 0 && sum == shmem_n_pes();
}

}  // namespace

int main(int argc, char** argv) {
    shmem_init();
    shmem_barrier_all();
    printf("pid %d\n", getpid());
    if (argc < 2)
        return 2;
    const bool right = strcmp(argv[1], "forge") == 0 ? forge() : exchange(argv[1]);
    printf("%s\n", right ? "right" : "wrong");
    shmem_finalize();
    return 0;
}
