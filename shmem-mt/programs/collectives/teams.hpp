// The collectives through the teams of OpenSHMEM 1.5 and later.
#pragma once

#include <shmem.h>

#include <string>

#include "programs/collectives/collectives.hpp"
#include "programs/collectives/strided_team.hpp"
#include "programs/common/barriers.hpp"

#ifndef SHMEM_MT_HAVE_INSCAN
#if SHMEM_MAJOR_VERSION > 1 || (SHMEM_MAJOR_VERSION == 1 && SHMEM_MINOR_VERSION >= 6)
#define SHMEM_MT_HAVE_INSCAN 1
#else
#define SHMEM_MT_HAVE_INSCAN 0
#endif
#endif

namespace shmem_mt {

class ShmemCollectives final : public CollectiveLibrary {
  public:
    // Collective.
    explicit ShmemCollectives(Job& job) : teams_(job) {}

    std::string why_not(Collective op) const override {
        if (op == Collective::kSumInscan && !SHMEM_MT_HAVE_INSCAN)
            return "the library has no shmem_double_sum_inscan (OpenSHMEM 1.6)";
        return "";
    }

    bool broadcast_fills_root() const override { return true; }

    void tell_right(Collective op, long token) override { shmem_mt::tell_right(op == Collective::kSyncAll, token); }
    bool is_told(long token) const override { return shmem_mt::is_told(token); }

    bool run(const Call& call, long count, int) override {
        const shmem_team_t team = teams_.named(call.team.name);
        const size_t n = call.nelems;
        auto* dest = static_cast<long*>(call.dest);
        const auto* source = static_cast<const long*>(call.source);
        auto* sums = static_cast<double*>(call.dest);
        const auto* values = static_cast<const double*>(call.source);
        switch (call.op) {
            case Collective::kBarrierAll:
                return repeat(count, [](long) { return shmem_barrier_all(), 0; });
            case Collective::kSyncAll:
                return repeat(count, [](long) { return shmem_sync_all(), 0; });
            case Collective::kBroadcast:
                return repeat(count, [=](long) { return shmem_long_broadcast(team, dest, source, n, 0); });
            case Collective::kCollect:
                return repeat(count, [=](long) { return shmem_long_collect(team, dest, source, n); });
            case Collective::kFcollect:
                return repeat(count, [=](long) { return shmem_long_fcollect(team, dest, source, n); });
            case Collective::kAlltoall:
                return repeat(count, [=](long) { return shmem_long_alltoall(team, dest, source, n); });
            case Collective::kAlltoalls:
                return repeat(count, [=](long) { return shmem_long_alltoalls(team, dest, source, 2, 2, n); });
            case Collective::kSumReduce:
                return repeat(count, [=](long) { return shmem_double_sum_reduce(team, sums, values, n); });
            case Collective::kMaxReduce:
                return repeat(count, [=](long) { return shmem_long_max_reduce(team, dest, source, n); });
#if SHMEM_MT_HAVE_INSCAN
            case Collective::kSumInscan:
                return repeat(count, [=](long) { return shmem_double_sum_inscan(team, sums, values, n); });
#endif
            default:
                return false;
        }
    }

  private:
    const Teams teams_;
};

}  // namespace shmem_mt
