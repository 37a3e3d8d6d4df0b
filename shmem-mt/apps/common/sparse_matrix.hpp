// A sparse matrix, and its product with a vector. The product is not inlined, for the reason that vector_kernels.hpp
// gives.
#pragma once

#include <cstdint>

#include "apps/common/range.hpp"
#include "apps/common/untouched.hpp"

namespace shmem_mt {

// Rows one after the other, the columns of each in rising order.
struct SparseMatrix {
    Untouched<long> starts;  // of row i: [starts[i], starts[i + 1])
    Untouched<double> values;
    Untouched<int32_t> columns;
};

// q = A x for these rows; x is whole, `columns` say where in it, q has the PE's own rows.
[[gnu::noinline]] inline void product(const SparseMatrix& matrix, const int32_t* columns, const Range& rows,
                                      const double* x, double* q) {
    const double* const values = matrix.values.data();
    const long* const starts = matrix.starts.data();
    for (long row = rows.begin; row < rows.end; ++row) {
        double a = 0, b = 0, c = 0, d = 0;  // four sums, for one addition waits for the other
        long i = starts[row];
        const long end = starts[row + 1];
        for (; i + 4 <= end; i += 4) {
            a += values[i] * x[columns[i]];
            b += values[i + 1] * x[columns[i + 1]];
            c += values[i + 2] * x[columns[i + 2]];
            d += values[i + 3] * x[columns[i + 3]];
        }
        for (; i < end; ++i) a += values[i] * x[columns[i]];
        q[row] = (a + b) + (c + d);
    }
}

}  // namespace shmem_mt
