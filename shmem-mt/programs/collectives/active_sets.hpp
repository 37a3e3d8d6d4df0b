// The collectives through the active sets of OpenSHMEM 1.4 and before, for libraries without teams.
//
// A pSync array may be used again only when every PE has left the call that used it before. After most collectives one
// other call proves that, since no PE returns from it before all have entered it. The root of a broadcast waits for no
// PE, so broadcasts go through a ring of arrays, with a barrier after each turn. Calls of a team are counted from run to
// run, for nothing stands between the calls of two windows.
#pragma once

#include <shmem.h>

#include <algorithm>
#include <string>

#include "programs/collectives/collectives.hpp"
#include "programs/common/barriers.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class ShmemCollectives final : public CollectiveLibrary {
  public:
    // Collective.
    explicit ShmemCollectives(Job& job) {
        const long largest = *std::max_element(job.options().sizes.begin(), job.options().sizes.end()) / 8;
        for (void*& work : work_)
            work = symmetric_alloc(8 *
                                   static_cast<size_t>(std::max<long>(largest / 2 + 1, SHMEM_REDUCE_MIN_WRKDATA_SIZE)));
        syncs_ = static_cast<long*>(symmetric_alloc(sizeof(long) * kSyncWords * (kRing + 1)));
        std::fill(syncs_, syncs_ + kSyncWords * (kRing + 1), static_cast<long>(SHMEM_SYNC_VALUE));
        shmem_barrier_all();
    }

    std::string why_not(Collective op) const override {
        return op == Collective::kSumInscan ? "the library has no shmem_double_sum_inscan (OpenSHMEM 1.6)" : "";
    }

    bool broadcast_fills_root() const override { return false; }

    void tell_right(Collective op, long token) override { shmem_mt::tell_right(op == Collective::kSyncAll, token); }
    bool is_told(long token) const override { return shmem_mt::is_told(token); }

    bool run(const Call& call, long count, int) override {
        const int log_stride = call.team.name == "world" ? 0 : 1;
        const int size = call.team.size;
        const size_t n = call.nelems;
        const int n_int = static_cast<int>(n);
        const long turn = turns_[log_stride];
        turns_[log_stride] += count;
        void* const dest = call.dest;
        void* const source = call.source;
        switch (call.op) {
            case Collective::kBarrierAll:
                return repeat(count, [](long) { return shmem_barrier_all(), 0; });
            case Collective::kSyncAll:
                return repeat(count, [](long) { return shmem_sync_all(), 0; });
            case Collective::kBroadcast:
                return repeat(count, [=](long i) {
                    if (turn + i > 0 && (turn + i) % kRing == 0)
                        shmem_barrier(0, log_stride, size, sync(kRing));
                    return shmem_broadcast64(dest, source, n, 0, 0, log_stride, size, sync((turn + i) % kRing)), 0;
                });
            case Collective::kCollect:
                return repeat(count, [=](long i) {
                    return shmem_collect64(dest, source, n, 0, log_stride, size, sync((turn + i) % 2)), 0;
                });
            case Collective::kFcollect:
                return repeat(count, [=](long i) {
                    return shmem_fcollect64(dest, source, n, 0, log_stride, size, sync((turn + i) % 2)), 0;
                });
            case Collective::kAlltoall:
                return repeat(count, [=](long i) {
                    return shmem_alltoall64(dest, source, n, 0, log_stride, size, sync((turn + i) % 2)), 0;
                });
            case Collective::kAlltoalls:
                return repeat(count, [=](long i) {
                    return shmem_alltoalls64(dest, source, 2, 2, n, 0, log_stride, size, sync((turn + i) % 2)), 0;
                });
            case Collective::kSumReduce:
                return repeat(count, [=](long i) {
                    shmem_double_sum_to_all(static_cast<double*>(dest), static_cast<double*>(source), n_int, 0,
                                            log_stride, size, static_cast<double*>(work_[(turn + i) % 2]),
                                            sync((turn + i) % 2));
                    return 0;
                });
            case Collective::kMaxReduce:
                return repeat(count, [=](long i) {
                    shmem_long_max_to_all(static_cast<long*>(dest), static_cast<long*>(source), n_int, 0, log_stride,
                                          size, static_cast<long*>(work_[(turn + i) % 2]), sync((turn + i) % 2));
                    return 0;
                });
            default:
                return false;
        }
    }

  private:
    static constexpr long kRing = 64;
    static constexpr long kSyncWords =
        std::max({static_cast<long>(SHMEM_BCAST_SYNC_SIZE), static_cast<long>(SHMEM_COLLECT_SYNC_SIZE),
                  static_cast<long>(SHMEM_REDUCE_SYNC_SIZE), static_cast<long>(SHMEM_ALLTOALL_SYNC_SIZE),
                  static_cast<long>(SHMEM_ALLTOALLS_SYNC_SIZE), static_cast<long>(SHMEM_BARRIER_SYNC_SIZE)});

    // Array `index` of the ring; kRing: the barrier's.
    long* sync(long index) const { return syncs_ + index * kSyncWords; }

    long* syncs_ = nullptr;
    void* work_[2] = {};
    long turns_[2] = {};  // of the world and of every second PE: calls so far
};

}  // namespace shmem_mt
