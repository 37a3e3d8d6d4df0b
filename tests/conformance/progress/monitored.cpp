// Non-blocking reductions with pauses of random length between posting and waiting, in which one PE or another is late:
// what the background thread, threads that wait, and the PE's wake-up have to hand to each other while they watch lines.
#include "check.h"

#include <shmemx.h>
#include <unistd.h>

using namespace conformance;

namespace {

constexpr size_t kMostElements = 3000, kRounds = 150;
long source[kMostElements], dest[kMostElements];

void pause_at_random(Random& random) {
    if (random.below(2))
        usleep(static_cast<useconds_t>(random.below(400)));
}

void reduce(size_t round) {
    Random ours = random_for(1, round, 0), mine = random_for(2, round, static_cast<uint64_t>(pe));
    const size_t nelems = 1 + ours.below(kMostElements);
    for (size_t i = 0; i < nelems; ++i) source[i] = pe + static_cast<long>(round * i);
    pause_at_random(mine);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    CHECK(shmemx_long_sum_reduce_nbe(SHMEM_TEAM_WORLD, dest, source, nelems, &request) == 0);
    pause_at_random(mine);
    shmemx_request_wait(&request);
    for (size_t i = 0; i < nelems; ++i)
        CHECK_EQ(dest[i], static_cast<long>(round * i) * n_pes + static_cast<long>(n_pes) * (n_pes - 1) / 2);
}

}  // namespace

int main() {
    start("monitored");
    for (size_t round = 0; round < kRounds; ++round) {
        reduce(round);
        barrier();
    }
    return finish();
}
