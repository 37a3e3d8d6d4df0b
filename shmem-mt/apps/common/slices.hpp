// What a PE has, in slices that its threads divide. An inner product is the sum of the slices' sums in the order of the
// slices, so its bits depend on neither the number of threads nor which thread has which slice.
#pragma once

#include <vector>

#include "apps/common/range.hpp"

namespace shmem_mt {

// f(index) for the thread's share of all slices in `all`.
template <class F>
void for_share(const Range& all, int thread, int threads, F&& f) {
    const Range own = all.share(thread, threads);
    for (long index = own.begin; index < own.end; ++index) f(index);
}

// The sum of `count` slices' sums, added one by one in their order.
inline double sum_in_order(const double* sums, long count) {
    double sum = 0;
    for (long i = 0; i < count; ++i) sum += sums[i];
    return sum;
}

inline double sum_in_order(const std::vector<double>& sums) {
    return sum_in_order(sums.data(), static_cast<long>(sums.size()));
}

}  // namespace shmem_mt
