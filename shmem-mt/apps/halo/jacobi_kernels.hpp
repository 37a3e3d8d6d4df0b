// A sweep of Jacobi's method over cells of a box: each becomes (the sum of its neighbours + the right side) / the
// diagonal.
// The order of operations does not depend on the place of a cell in its box, so the fields of boxes have the bits of
// one whole field. A sweep that checks also counts the cells that changed by more than `limit`, or to no number.
#pragma once

#include <array>

#include "apps/common/range.hpp"
#include "apps/common/vector_units.hpp"
#include "apps/halo/jacobi_problem.hpp"

namespace shmem_mt {

// By axis, in the box with its ghost cells: a box's own cells begin at 1.
using BoxCells = std::array<Range, 3>;

struct SweepArrays {
    double* out;
    const double* in;
    const double* right;
    BoxShape shape;
    BoxCells cells;
    double limit;
};

template <bool kChecks>
[[gnu::always_inline]] inline long settle(double* __restrict__ out, const double* __restrict__ in, long i, double next,
                                          double limit) {
    out[i] = next;
    if (!kChecks)
        return 0;
    const double change = next - in[i];
    return !(change <= limit) | !(change >= -limit);
}

template <bool kChecks>
[[gnu::always_inline]] inline long sweep_7_points(const SweepArrays& a) {
    const long row = a.shape.row(), plane = a.shape.plane(), length = a.cells[0].length();
    const double limit = a.limit;
    long moving = 0;
    for (long z = a.cells[2].begin; z < a.cells[2].end; ++z) {
        for (long y = a.cells[1].begin; y < a.cells[1].end; ++y) {
            const long first = a.shape.index(a.cells[0].begin, y, z);
            double* __restrict__ const out = a.out + first;
            const double* __restrict__ const in = a.in + first;
            const double* __restrict__ const right = a.right + first;
            for (long i = 0; i < length; ++i) {
                const double sum =
                    (in[i - 1] + in[i + 1]) + (in[i - row] + in[i + row]) + (in[i - plane] + in[i + plane]);
                moving += settle<kChecks>(out, in, i, (sum + right[i]) * (1.0 / 6), limit);
            }
        }
    }
    return moving;
}

template <bool kChecks>
[[gnu::always_inline]] inline long sweep_27_points(const SweepArrays& a) {
    const long row = a.shape.row(), plane = a.shape.plane(), length = a.cells[0].length();
    const double limit = a.limit;
    double columns[kLargestJacobiEdge + 2];  // of the nine rows around a row: the sum at each x
    long moving = 0;
    for (long z = a.cells[2].begin; z < a.cells[2].end; ++z) {
        for (long y = a.cells[1].begin; y < a.cells[1].end; ++y) {
            const long first = a.shape.index(a.cells[0].begin - 1, y, z);
            const double* __restrict__ const middle = a.in + first;
            const double* __restrict__ const below = middle - plane;
            const double* __restrict__ const above = middle + plane;
            for (long i = 0; i < length + 2; ++i) {
                columns[i] = ((below[i - row] + below[i]) + below[i + row]) +
                             ((middle[i - row] + middle[i]) + middle[i + row]) +
                             ((above[i - row] + above[i]) + above[i + row]);
            }
            double* __restrict__ const out = a.out + first + 1;
            const double* __restrict__ const in = middle + 1;
            const double* __restrict__ const right = a.right + first + 1;
            for (long i = 0; i < length; ++i) {
                const double sum = (columns[i] + columns[i + 2]) + (columns[i + 1] - in[i]);
                moving += settle<kChecks>(out, in, i, (sum + right[i]) * (1.0 / 26), limit);
            }
        }
    }
    return moving;
}

SHMEM_MT_LONG_LOOPS inline long sweep_7(const SweepArrays& a) {
    return sweep_7_points<false>(a);
}
SHMEM_MT_LONG_LOOPS inline long sweep_7_checked(const SweepArrays& a) {
    return sweep_7_points<true>(a);
}
SHMEM_MT_LONG_LOOPS inline long sweep_27(const SweepArrays& a) {
    return sweep_27_points<false>(a);
}
SHMEM_MT_LONG_LOOPS inline long sweep_27_checked(const SweepArrays& a) {
    return sweep_27_points<true>(a);
}

inline long sweep(Stencil stencil, bool checked, const SweepArrays& a) {
    if (stencil == Stencil::k7)
        return checked ? sweep_7_checked(a) : sweep_7(a);
    return checked ? sweep_27_checked(a) : sweep_27(a);
}

}  // namespace shmem_mt
