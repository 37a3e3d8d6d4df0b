// The part of a system of linear equations that one PE has: some rows of a sparse matrix, and what of a vector must
// come from whom to be multiplied with them. Rows are numbered so that each PE has a stretch of them, PE after PE; a PE
// may have none. A vector that is multiplied has the PE's own rows, then the ghosts: those rows of other PEs in which
// own rows have an entry, in the order of their numbers, so PE after PE.
//
// The pattern of the matrix is symmetric. So both ends of an exchange find the same list without a word: row i of this
// PE is needed by the PEs in whose rows it has entries.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "sparse_matrix.hpp"

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
        const std::vector<int32_t> ghosts = find_ghosts();
        ghosts_ = static_cast<long>(ghosts.size());
        find_neighbours(ghosts, firsts);
        for (long row = 0; row < rows(); ++row) localize(row, ghosts);
    }

    long rows() const { return own_.length(); }
    long ghosts() const { return ghosts_; }
    const std::vector<Neighbour>& neighbours() const { return neighbours_; }  // by PE

    // Columns are places in a vector.
    const SparseMatrix& matrix() const { return matrix_; }
    SparseMatrix& matrix() { return matrix_; }

    // Rows without and with entries among the ghosts: what can be multiplied before the ghosts have come, and the rest.
    const std::vector<Range>& interior() const { return interior_; }
    const std::vector<Range>& boundary() const { return boundary_; }

  private:
    bool is_own(int32_t column) const { return column >= own_.begin && column < own_.end; }

    std::vector<int32_t> find_ghosts() const {
        std::vector<int32_t> ghosts;
        for (const int32_t column : matrix_.columns) {
            if (!is_own(column))
                ghosts.push_back(column);
        }
        std::sort(ghosts.begin(), ghosts.end());
        ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
        return ghosts;
    }

    void find_neighbours(const std::vector<int32_t>& ghosts, const std::vector<long>& firsts) {
        for (long i = 0; i < ghosts_; ++i) {
            const auto behind = std::upper_bound(firsts.begin(), firsts.end(), ghosts[static_cast<size_t>(i)]);
            const int pe = static_cast<int>(behind - firsts.begin()) - 1;
            if (neighbours_.empty() || neighbours_.back().pe != pe)
                neighbours_.push_back({pe, {i, i}, {}});
            neighbours_.back().ghosts.end = i + 1;
        }
    }

    void localize(long row, const std::vector<int32_t>& ghosts) {
        bool has_ghosts = false;
        for (long i = matrix_.starts[static_cast<size_t>(row)]; i < matrix_.starts[static_cast<size_t>(row) + 1]; ++i) {
            int32_t& column = matrix_.columns[static_cast<size_t>(i)];
            if (is_own(column)) {
                column -= static_cast<int32_t>(own_.begin);
                continue;
            }
            const long ghost = std::lower_bound(ghosts.begin(), ghosts.end(), column) - ghosts.begin();
            column = static_cast<int32_t>(rows() + ghost);
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
    long ghosts_ = 0;
    std::vector<Neighbour> neighbours_;
    std::vector<Range> interior_, boundary_;
};

}  // namespace shmem_mt
