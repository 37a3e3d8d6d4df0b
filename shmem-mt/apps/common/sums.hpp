// Sums of arrays of doubles or longs over all PEs, element by element: through teams where the library has them, else
// through active sets. One thread of a PE calls them. A PE that has a sum knows that every PE has called for it.
#pragma once

#include <shmem.h>

#include <algorithm>

#include "programs/common/job.hpp"

namespace shmem_mt {

#if SHMEM_MT_HAVE_TEAM_COLLECTIVES
inline int sum_reduce(double* dest, const double* source, size_t nelems) {
    return shmem_double_sum_reduce(SHMEM_TEAM_WORLD, dest, source, nelems);
}
inline int sum_reduce(long* dest, const long* source, size_t nelems) {
    return shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, nelems);
}
#else
inline void sum_to_all(double* dest, const double* source, int nelems, double* work, long* sync) {
    shmem_double_sum_to_all(dest, source, nelems, 0, 0, shmem_n_pes(), work, sync);
}
inline void sum_to_all(long* dest, const long* source, int nelems, long* work, long* sync) {
    shmem_long_sum_to_all(dest, source, nelems, 0, 0, shmem_n_pes(), work, sync);
}
#endif

template <class T>
class Sums {
  public:
    // Collective.
    explicit Sums(size_t nelems) : nelems_(nelems) {
        memory_ = static_cast<T*>(symmetric_alloc(2 * kTurns * nelems * sizeof(T)));
#if !SHMEM_MT_HAVE_TEAM_COLLECTIVES
        work_nelems_ = std::max<size_t>(nelems / 2 + 1, SHMEM_REDUCE_MIN_WRKDATA_SIZE);
        work_ = static_cast<T*>(symmetric_alloc(kTurns * work_nelems_ * sizeof(T)));
        syncs_ = static_cast<long*>(symmetric_alloc(kTurns * kSyncWords * sizeof(long)));
        std::fill(syncs_, syncs_ + kTurns * kSyncWords, static_cast<long>(SHMEM_SYNC_VALUE));
        shmem_barrier_all();
#endif
    }

    Sums(const Sums&) = delete;
    Sums& operator=(const Sums&) = delete;

    // What this PE gives to the next sum.
    T* source() { return dest() + nelems_; }

    // Good until the next but one.
    const T* sum() {
        T* const result = dest();
#if SHMEM_MT_HAVE_TEAM_COLLECTIVES
        if (sum_reduce(result, source(), nelems_) != 0)
            fail("a sum over all PEs failed");
#else
        sum_to_all(result, source(), static_cast<int>(nelems_), work_ + turn_ * work_nelems_,
                   syncs_ + turn_ * kSyncWords);
#endif
        turn_ = (turn_ + 1) % kTurns;
        return result;
    }

  private:
    // Sums use the arrays in turns: while a PE is in the next sum, others may read this one, but none the one before.
    static constexpr size_t kTurns = 2;
    T* dest() { return memory_ + turn_ * 2 * nelems_; }

    const size_t nelems_;
    T* memory_ = nullptr;
    size_t turn_ = 0;
#if !SHMEM_MT_HAVE_TEAM_COLLECTIVES
    static constexpr size_t kSyncWords = SHMEM_REDUCE_SYNC_SIZE;
    size_t work_nelems_ = 0;
    T* work_ = nullptr;
    long* syncs_ = nullptr;
#endif
};

}  // namespace shmem_mt
