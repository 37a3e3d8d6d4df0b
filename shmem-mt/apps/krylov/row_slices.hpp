// How the rows of a PE are cut into slices, and how threads share them. The cut does not depend on the number of
// threads, so a sum over the slices in their order does not, either.
#pragma once

#include <algorithm>

#include "apps/common/range.hpp"

namespace shmem_mt {

class RowSlices {
  public:
    explicit RowSlices(long rows) : rows_(rows), count_(count_for(rows)) {}

    long rows() const { return rows_; }
    long count() const { return count_; }
    Range all() const { return {0, count_}; }
    Range rows_of(long slice) const { return Range{0, rows_}.share(static_cast<int>(slice), static_cast<int>(count_)); }

    // The rows of a thread's slices, one stretch. Whatever has a row of its own for each row of the PE (the matrix,
    // vectors) is first written to by that thread.
    Range of_thread(int thread, int threads) const {
        const Range slices = all().share(thread, threads);
        return {rows_of(slices.begin).begin, rows_of(slices.end).begin};
    }

  private:
    // As many as threads can share evenly, none of less than 64 rows; but none of more than 2048, whose products added
    // up one by one would round in the last digits but three.
    static long count_for(long rows) { return std::max(std::min(kMost, rows / 64 + 1), rows / 2048); }

    static constexpr long kMost = 240;  // 4 or more for each of up to 60 threads

    long rows_, count_;
};

}  // namespace shmem_mt
