// The problem of HPCCG (M. Heroux and others: Improving performance via mini-applications, Sandia report
// SAND2009-5574): a grid of points, each with an equation of its own and its up to 26 neighbours: 27 on the diagonal,
// -1 for each neighbour. The right side is the sum of each row, so that the solution is 1 everywhere. The domain is a
// chimney: its planes lie one on another, and each PE has a stretch of them. How high it is does not depend on the
// number of PEs, but where it is to grow with that (--scale weak), by an edge for each thread of each PE.
//
// The sum of a row's entries beside the diagonal is 26 at most, so no eigenvalue is less than 1: an error is never
// longer than its residual.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "apps/common/range.hpp"
#include "apps/common/sparse_matrix.hpp"
#include "apps/common/vector_kernels.hpp"
#include "apps/krylov/row_slices.hpp"
#include "apps/krylov/settled.hpp"
#include "programs/common/thread_team.hpp"

namespace shmem_mt {

struct HpccgProblem {
    static constexpr long kHeight = 4;
    static constexpr long kLargestEdge = 800;  // 4 * 800^3 rows can be counted by an int32_t
    static constexpr double kDiagonal = 27;

    const long edge;              // points along x and y
    const long height = kHeight;  // edges along z

    long plane() const { return edge * edge; }
    long planes() const { return height * edge; }
    long rows() const { return plane() * planes(); }

    // Of the whole matrix.
    double entries() const {
        const auto along = [](long points) { return static_cast<double>(3 * points - 2); };
        return along(edge) * along(edge) * along(planes());
    }

    // The first row of each PE, and the end.
    std::vector<long> firsts(int pes) const {
        std::vector<long> rows;
        for (int pe = 0; pe <= pes; ++pe) rows.push_back(plane() * Range{0, planes()}.share(pe, pes).begin);
        return rows;
    }

    // Those rows, which are whole planes; columns are numbers of rows. Each thread of the team writes its own.
    SparseMatrix matrix(ThreadTeam& team, const Range& rows) const {
        const RowSlices slices(rows.length());
        SparseMatrix matrix;
        matrix.starts.resize(static_cast<size_t>(rows.length()) + 1);
        team.run([&](int thread) {
            const Range own = slices.of_thread(thread, team.size());
            for (long i = own.begin; i < own.end; ++i)
                matrix.starts[static_cast<size_t>(i) + 1] = neighbours_of(rows.begin + i).count();
        });
        for (size_t i = 1; i < matrix.starts.size(); ++i) matrix.starts[i] += matrix.starts[i - 1];
        matrix.values.resize(static_cast<size_t>(matrix.starts.back()));
        matrix.columns.resize(matrix.values.size());
        team.run([&](int thread) {
            const Range own = slices.of_thread(thread, team.size());
            for (long i = own.begin; i < own.end; ++i)
                write_row(rows.begin + i, static_cast<size_t>(matrix.starts[static_cast<size_t>(i)]), &matrix);
        });
        return matrix;
    }

    // The sum of each row.
    static Untouched<double> right_side(ThreadTeam& team, const SparseMatrix& matrix) {
        const RowSlices slices(static_cast<long>(matrix.starts.size()) - 1);
        Untouched<double> sums(static_cast<size_t>(slices.rows()));
        team.run([&](int thread) {
            const Range own = slices.of_thread(thread, team.size());
            for (size_t row = static_cast<size_t>(own.begin); row < static_cast<size_t>(own.end); ++row)
                sums[row] = kDiagonal + 1 - static_cast<double>(matrix.starts[row + 1] - matrix.starts[row]);
        });
        return sums;
    }

  private:
    // The points around one, and itself.
    struct Neighbours {
        Range x, y, z;
        long count() const { return x.length() * y.length() * z.length(); }
    };

    static Range around(long at, long end) { return {std::max(at - 1, 0L), std::min(at + 2, end)}; }

    Neighbours neighbours_of(long row) const {
        return {around(row % edge, edge), around(row / edge % edge, edge), around(row / plane(), planes())};
    }

    void write_row(long row, size_t at, SparseMatrix* matrix) const {
        const Neighbours near = neighbours_of(row);
        for (long k = near.z.begin; k < near.z.end; ++k) {
            for (long j = near.y.begin; j < near.y.end; ++j) {
                for (long i = near.x.begin; i < near.x.end; ++i, ++at) {
                    const long column = (k * edge + j) * edge + i;
                    matrix->columns[at] = static_cast<int32_t>(column);
                    matrix->values[at] = column == row ? kDiagonal : -1;
                }
            }
        }
    }
};

// Conjugate gradients on one PE for the whole problem, without a matrix: vectors have a layer of zeros around them.
class HpccgReference {
  public:
    explicit HpccgReference(const HpccgProblem& problem)
        : width_(problem.edge + 2), height_(problem.planes() + 2), r_(size()), p_(size()), q_(size()) {}

    // Bytes, about: three vectors.
    static double memory_need(const HpccgProblem& problem) {
        return 3.0 * sizeof(double) * static_cast<double>((problem.edge + 2) * (problem.edge + 2)) *
               static_cast<double>(problem.planes() + 2);
    }

    // |r| before the first iteration and behind each.
    std::vector<double> norms(int iterations) {
        for_lines([&](size_t line) { std::fill_n(&p_[line], width_ - 2, 1.0); });
        multiply();
        p_ = r_ = q_;
        double rho = sum_of_lines([&](size_t line) { return dot(&r_[line], &r_[line], width_ - 2); });
        std::vector<double> found{std::sqrt(rho)};
        const double first_rho = rho;
        for (int iteration = 0; iteration < iterations; ++iteration) {
            multiply();
            const double p_dot_q = sum_of_lines([&](size_t line) { return dot(&p_[line], &q_[line], width_ - 2); });
            const double alpha = settled(rho, first_rho) ? 0 : rho / p_dot_q;
            const double before = rho;
            rho = sum_of_lines([&](size_t line) { return add_dot(&r_[line], -alpha, &q_[line], width_ - 2); });
            found.push_back(std::sqrt(rho));
            renew(p_.data(), rho / before, r_.data(), length());
        }
        return found;
    }

  private:
    size_t size() const { return static_cast<size_t>(length()); }
    long length() const { return width_ * width_ * height_; }

    // f(place of the first point) of each line along x.
    template <class F>
    void for_lines(F&& f) const {
        for (long z = 1; z < height_ - 1; ++z) for_lines_of_plane(z, f);
    }
    template <class F>
    void for_lines_of_plane(long z, F&& f) const {
        for (long y = 1; y < width_ - 1; ++y) f(static_cast<size_t>((z * width_ + y) * width_ + 1));
    }

    // Of f(place): by planes, so that few numbers are added to one another in a row.
    template <class F>
    double sum_of_lines(F&& f) const {
        double sum = 0;
        for (long z = 1; z < height_ - 1; ++z) {
            double of_plane = 0;
            for_lines_of_plane(z, [&](size_t line) { of_plane += f(line); });
            sum += of_plane;
        }
        return sum;
    }

    // q = A p
    void multiply() {
        for_lines([&](size_t line) {
            double* const q = &q_[line];
            const double* const p = &p_[line];
            for (long i = 0; i < width_ - 2; ++i) q[i] = (HpccgProblem::kDiagonal + 1) * p[i];
            for (long dz = -1; dz <= 1; ++dz) {
                for (long dy = -1; dy <= 1; ++dy) {
                    const double* const near = p + (dz * width_ + dy) * width_;
                    for (long i = 0; i < width_ - 2; ++i) q[i] -= near[i - 1] + near[i] + near[i + 1];
                }
            }
        });
    }

    const long width_, height_;
    std::vector<double> r_, p_, q_;
};

}  // namespace shmem_mt
