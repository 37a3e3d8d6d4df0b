// The blocking collectives of the mini-apps, of doubles over all PEs: through teams where the library has them, else
// through active sets. One thread of a PE calls them.
#pragma once

#include <shmem.h>

#include <algorithm>

#include "apps/common/sums.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class BlockingCollectives {
  public:
    // Collective.
    BlockingCollectives() : sums_(1) {
#if !SHMEM_MT_HAVE_TEAM_COLLECTIVES
        syncs_ = static_cast<long*>(symmetric_alloc(sizeof(long) * kTurns * SHMEM_COLLECT_SYNC_SIZE));
        std::fill(syncs_, syncs_ + kTurns * SHMEM_COLLECT_SYNC_SIZE, static_cast<long>(SHMEM_SYNC_VALUE));
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
        // The arrays take turns: a PE that has left one collect knows that all have left the one before.
        shmem_fcollect64(dest, source, nelems, 0, 0, shmem_n_pes(),
                         syncs_ + SHMEM_COLLECT_SYNC_SIZE * (turn_++ % kTurns));
#endif
    }

    double sum(double value) {
        *sums_.source() = value;
        return *sums_.sum();
    }

  private:
    Sums<double> sums_;
#if !SHMEM_MT_HAVE_TEAM_COLLECTIVES
    static constexpr long kTurns = 2;
    long* syncs_ = nullptr;
    long turn_ = 0;
#endif
};

}  // namespace shmem_mt
