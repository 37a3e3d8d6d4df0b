// Matrix products during which thread 0 polls the library every so many rows, so that what the PE has posted makes
// progress. The threads of a PE share the object; each multiplies rows of its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "apps/common/sparse_matrix.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class PollingProduct {
  public:
    PollingProduct(const Job& job, const SparseMatrix& matrix)
        : matrix_(matrix), is_skipped_(job.options().fault == Fault::kSkippedComputation) {}

    // Thread 0 polls after so many rows, counted over all calls; 0: never. No thread may be multiplying.
    void set_poll_rows(long rows) {
        poll_rows_ = rows;
        rows_since_poll_ = 0;
    }

    // q = A v for these rows. `columns` say where in v the matrix's columns are; poll() is called by thread 0 alone.
    template <class Poll>
    void multiply(int thread, const Range& rows, const int32_t* columns, const double* v, double* q, Poll&& poll) {
        if (is_skipped_)
            return;
        if (thread != 0 || poll_rows_ == 0)
            return product(matrix_, columns, rows, v, q);
        for (long begin = rows.begin; begin < rows.end;) {
            const long end = std::min(begin + poll_rows_ - rows_since_poll_, rows.end);
            product(matrix_, columns, {begin, end}, v, q);
            rows_since_poll_ += end - begin;
            begin = end;
            if (rows_since_poll_ < poll_rows_)
                continue;
            poll();
            rows_since_poll_ = 0;
        }
    }

  private:
    const SparseMatrix& matrix_;
    const bool is_skipped_;  // a planted fault
    long poll_rows_ = 0;
    long rows_since_poll_ = 0;  // thread 0's
};

}  // namespace shmem_mt
