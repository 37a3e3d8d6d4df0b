// One PE's part of a system of linear equations: some rows of a sparse matrix, and the entries of a vector that other
// PEs must send before it is multiplied with them. Rows are numbered so that each PE has a stretch of them, PE after
// PE; a PE may have none. A vector that is multiplied has the PE's own rows, then the ghosts: the rows of other PEs in
// which own rows have an entry, by their numbers, so PE after PE.
//
// The pattern of the matrix is symmetric, so both ends of an exchange find equal lists without a message: row i of this
// PE is needed by the PEs in whose rows it has entries.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/common/sparse_matrix.hpp"

namespace shmem_mt {

struct Neighbour {
    int pe;
    Range ghosts;                // its rows among this PE's ghosts
    std::vector<int32_t> sends;  // own rows that it needs, rising
};

class KrylovSystem {
  public:
    // `firsts`: the first row of each PE, and the end. `matrix`: the rows of PE `me`, columns by their numbers.
    KrylovSystem(SparseMatrix matrix, const std::vector<long>& firsts, int me)
        : matrix_(std::move(matrix)), own_{firsts[static_cast<size_t>(me)], firsts[static_cast<size_t>(me) + 1]} {
        find_ghosts();
        find_neighbours(firsts);
        for (long row = 0; row < rows(); ++row) localize(row);
    }

    long rows() const { return own_.length(); }
    long ghosts() const { return static_cast<long>(ghosts_.size()); }
    const std::vector<Neighbour>& neighbours() const { return neighbours_; }  // by PE

    // Where the row of that number is in a vector: an own one, or one of the ghosts.
    int32_t place(int32_t number) const {
        if (is_own(number))
            return number - static_cast<int32_t>(own_.begin);
        const auto ghost = std::lower_bound(ghosts_.begin(), ghosts_.end(), number);
        return static_cast<int32_t>(rows() + (ghost - ghosts_.begin()));
    }

    // Columns are places in a vector.
    const SparseMatrix& matrix() const { return matrix_; }
    SparseMatrix& matrix() { return matrix_; }

    // Rows without and with entries among the ghosts: what can be multiplied before the ghosts have come, and the rest.
    const std::vector<Range>& interior() const { return interior_; }
    const std::vector<Range>& boundary() const { return boundary_; }

  private:
    bool is_own(int32_t column) const { return column >= own_.begin && column < own_.end; }

    void find_ghosts() {
        for (const int32_t column : matrix_.columns) {
            if (!is_own(column))
                ghosts_.push_back(column);
        }
        std::sort(ghosts_.begin(), ghosts_.end());
        ghosts_.erase(std::unique(ghosts_.begin(), ghosts_.end()), ghosts_.end());
    }

    void find_neighbours(const std::vector<long>& firsts) {
        for (long i = 0; i < ghosts(); ++i) {
            const auto behind = std::upper_bound(firsts.begin(), firsts.end(), ghosts_[static_cast<size_t>(i)]);
            const int pe = static_cast<int>(behind - firsts.begin()) - 1;
            if (neighbours_.empty() || neighbours_.back().pe != pe)
                neighbours_.push_back({pe, {i, i}, {}});
            neighbours_.back().ghosts.end = i + 1;
        }
    }

    void localize(long row) {
        bool has_ghosts = false;
        for (long i = matrix_.starts[static_cast<size_t>(row)]; i < matrix_.starts[static_cast<size_t>(row) + 1]; ++i) {
            int32_t& column = matrix_.columns[static_cast<size_t>(i)];
            column = place(column);
            const long ghost = column - rows();
            if (ghost < 0)
                continue;
            has_ghosts = true;
            Neighbour& neighbour = neighbour_of(ghost);
            if (neighbour.sends.empty() || neighbour.sends.back() != row)
                neighbour.sends.push_back(static_cast<int32_t>(row));
        }
        std::vector<Range>& runs = has_ghosts ? boundary_ : interior_;
        if (runs.empty() || runs.back().end != row)
            runs.push_back({row, row});
        runs.back().end = row + 1;
    }

    Neighbour& neighbour_of(long ghost) {
        return *std::find_if(neighbours_.begin(), neighbours_.end(),
                             [&](const Neighbour& neighbour) { return ghost < neighbour.ghosts.end; });
    }

    SparseMatrix matrix_;
    const Range own_;
    std::vector<int32_t> ghosts_;  // numbers, rising
    std::vector<Neighbour> neighbours_;
    std::vector<Range> interior_, boundary_;
};

}  // namespace shmem_mt
