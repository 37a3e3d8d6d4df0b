// The blocking collectives of the mini-apps, of doubles over all PEs: through teams where the library has them, else
// through active sets. One thread of a PE calls them.
#pragma once

#include <shmem.h>

#include <algorithm>

#include "job.hpp"

namespace shmem_mt {

class BlockingCollectives {
  public:
    // Collective.
    BlockingCollectives() {
        sums_ = static_cast<double*>(symmetric_alloc(2 * kTurns * sizeof(double)));
#if !SHMEM_MT_HAVE_TEAM_COLLECTIVES
        work_ = static_cast<double*>(symmetric_alloc(sizeof(double) * kTurns * kWork));
        syncs_ = static_cast<long*>(symmetric_alloc(sizeof(long) * kTurns * kSyncWords));
        std::fill(syncs_, syncs_ + kTurns * kSyncWords, static_cast<long>(SHMEM_SYNC_VALUE));
        shmem_barrier_all();
#endif
    }

    BlockingCollectives(const BlockingCollectives&) = delete;
    BlockingCollectives& operator=(const BlockingCollectives&) = delete;

    // Both are symmetric. Every PE must be done with `dest` before any calls it.
    void fcollect(double* dest, const double* source, size_t nelems) {
#if SHMEM_MT_HAVE_TEAM_COLLECTIVES
        if (shmem_double_fcollect(SHMEM_TEAM_WORLD, dest, source, nelems) != 0)
            fail("shmem_double_fcollect failed");
#else
        shmem_fcollect64(dest, source, nelems, 0, 0, shmem_n_pes(), sync());
#endif
    }

    double sum(double value) {
        // Whoever is in the next sum may still read this one's; nobody reads the one before.
        double* const dest = sums_ + 2 * (turn_ % kTurns);
        double* const source = dest + 1;
        *source = value;
#if SHMEM_MT_HAVE_TEAM_COLLECTIVES
        ++turn_;
        if (shmem_double_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 1) != 0)
            fail("shmem_double_sum_reduce failed");
#else
        double* const work = work_ + kWork * (turn_ % kTurns);
        shmem_double_sum_to_all(dest, source, 1, 0, 0, shmem_n_pes(), work, sync());
#endif
        return *dest;
    }

  private:
    static constexpr long kTurns = 2;
#if !SHMEM_MT_HAVE_TEAM_COLLECTIVES
    static constexpr long kWork = std::max<long>(1, SHMEM_REDUCE_MIN_WRKDATA_SIZE);
    static constexpr long kSyncWords =
        std::max(static_cast<long>(SHMEM_COLLECT_SYNC_SIZE), static_cast<long>(SHMEM_REDUCE_SYNC_SIZE));

    // The arrays take turns: a PE that has left one collective knows that all have left the one before.
    long* sync() { return syncs_ + kSyncWords * (turn_++ % kTurns); }

    double* work_ = nullptr;
    long* syncs_ = nullptr;
#endif
    double* sums_ = nullptr;
    long turn_ = 0;
};

}  // namespace shmem_mt
