// One worker's cells: the field, the result of a sweep, and the right side, each with ghost cells; and the worker's
// faces, cell by cell in one order on both sides. With 27 points edges and corners are needed, too. Faces are then sent
// axis by axis and carry them: y faces have the ghost cells of x, z faces those of x and y.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "apps/common/range.hpp"
#include "apps/halo/jacobi_kernels.hpp"

namespace shmem_mt {

class JacobiBox {
  public:
    JacobiBox(Stencil stencil, long edge, const std::array<Range, 3>& cells)
        : stencil_(stencil),
          limit_(jacobi_limit(stencil, edge)),
          cells_(cells),
          shape_{cells[0].length(), cells[1].length(), cells[2].length()},
          field_(static_cast<size_t>(shape_.all())),
          next_(field_.size()),
          right_(field_.size()) {
        for_cells([&](long i, long x, long y, long z) {
            right_[static_cast<size_t>(i)] = right_side(stencil, edge, x, y, z);
        });
    }

    const BoxShape& shape() const { return shape_; }

    // f(index, x, y, z) for each cell, with its place in the whole grid.
    template <class F>
    void for_cells(F&& f) const {
        for (long k = 1; k <= shape_.z; ++k) {
            for (long j = 1; j <= shape_.y; ++j) {
                for (long i = 1; i <= shape_.x; ++i)
                    f(shape_.index(i, j, k), cells_[0].begin + i - 1, cells_[1].begin + j - 1, cells_[2].begin + k - 1);
            }
        }
    }

    double value(long index) const { return field_[static_cast<size_t>(index)]; }

    void clear() {
        std::fill(field_.begin(), field_.end(), 0.0);
        std::fill(next_.begin(), next_.end(), 0.0);  // ghost cells at the boundary are zero in both
    }

    // The number of cells that moved by more than `share` of the limit, when it is asked for.
    long sweep(bool checked, double share = 1) {
        const long moving = sweep_cells({Range{1, shape_.x + 1}, {1, shape_.y + 1}, {1, shape_.z + 1}}, checked, share);
        field_.swap(next_);
        return moving;
    }

    // A sweep in two parts, with 7 points: the cells that no awaited face touches, before these faces have come; and,
    // behind them, the others. is_awaited(face).
    template <class Awaited>
    long sweep_inner(bool checked, Awaited&& is_awaited) {
        return sweep_cells(inner(is_awaited), checked, 1);
    }
    template <class Awaited>
    long sweep_outer(bool checked, Awaited&& is_awaited) {
        const BoxCells within = inner(is_awaited);
        BoxCells left{Range{1, shape_.x + 1}, {1, shape_.y + 1}, {1, shape_.z + 1}};
        long moving = 0;
        for (size_t axis = 3; axis-- > 0;) {  // layers below and above the inner cells, of what is left
            BoxCells below = left, above = left;
            below[axis].end = left[axis].begin = within[axis].begin;
            above[axis].begin = left[axis].end = within[axis].end;
            moving += sweep_cells(below, checked, 1) + sweep_cells(above, checked, 1);
        }
        field_.swap(next_);
        return moving;
    }

    // How many cells.
    long pack(int face, double* out) const {
        double* const begin = out;
        for_face(face, face % 2 ? extent(face / 2) : 1, [&](long from, long cells, long stride) {
            for (long i = 0; i < cells; ++i) *out++ = field_[at(from + i * stride)];
        });
        return out - begin;
    }

    // Ghost cells that a face has behind its last cell of the box.
    long ghosts_behind(int face) const {
        const long g = stencil_ == Stencil::k27;
        return face / 2 == 0 ? 0 : face / 2 == 1 ? g : g * (shape_.row() + 1);
    }

    // Ghost cells stay until others come, through sweeps.
    void unpack(int face, const double* in) {
        for_face(face, ghost_depth(face), [&](long to, long cells, long stride) {
            for (long i = 0; i < cells; ++i) field_[at(to + i * stride)] = next_[at(to + i * stride)] = *in++;
        });
    }

  private:
    static size_t at(long index) { return static_cast<size_t>(index); }

    long sweep_cells(const BoxCells& cells, bool checked, double share) {
        return shmem_mt::sweep(stencil_, checked,
                               {next_.data(), field_.data(), right_.data(), shape_, cells, share * limit_});
    }

    // Empty along an axis where one layer of cells has awaited faces on both sides, or there are two such layers.
    template <class Awaited>
    BoxCells inner(Awaited&& is_awaited) const {
        BoxCells cells{};
        for (size_t axis = 0; axis < 3; ++axis) {
            const int face = 2 * static_cast<int>(axis);
            const long end = extent(face / 2) + 1;
            cells[axis].begin = is_awaited(face) ? 2 : 1;
            cells[axis].end = std::max(cells[axis].begin, is_awaited(face + 1) ? end - 1 : end);
        }
        return cells;
    }
    long extent(int axis) const { return axis == 0 ? shape_.x : axis == 1 ? shape_.y : shape_.z; }
    long ghost_depth(int face) const { return face % 2 ? extent(face / 2) + 1 : 0; }

    // f(first index, cells, stride) for the stretches of the layer at `depth` along the axis of `face`.
    template <class F>
    void for_face(int face, long depth, F&& f) const {
        const long g = stencil_ == Stencil::k27;
        if (face / 2 == 0) {
            for (long k = 1; k <= shape_.z; ++k) f(shape_.index(depth, 1, k), shape_.y, shape_.row());
        } else if (face / 2 == 1) {
            for (long k = 1; k <= shape_.z; ++k) f(shape_.index(1 - g, depth, k), shape_.x + 2 * g, 1);
        } else {
            for (long j = 1 - g; j <= shape_.y + g; ++j) f(shape_.index(1 - g, j, depth), shape_.x + 2 * g, 1);
        }
    }

    const Stencil stencil_;
    const double limit_;
    const std::array<Range, 3> cells_;
    const BoxShape shape_;
    std::vector<double> field_, next_, right_;
};

}  // namespace shmem_mt
