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
#include "apps/krylov/row_slices.hpp"
#include "programs/common/thread_team.hpp"

namespace shmem_mt {

struct Neighbour {
    int pe;
    Range ghosts;                // its rows among this PE's ghosts
    std::vector<int32_t> sends;  // own rows that it needs, rising
};

class KrylovSystem {
  public:
    // `firsts`: the first row of each PE, and the end. `matrix`: the rows of PE `me`, columns by their numbers. All
    // threads of the team take part; thread 0 calls.
    KrylovSystem(ThreadTeam& team, SparseMatrix matrix, const std::vector<long>& firsts, int me)
        : matrix_(std::move(matrix)), own_{firsts[static_cast<size_t>(me)], firsts[static_cast<size_t>(me) + 1]} {
        const RowSlices slices(rows());
        std::vector<Found> found(static_cast<size_t>(team.size()));
        team.run([&](int thread) {
            find_ghosts(slices.of_thread(thread, team.size()), &found[static_cast<size_t>(thread)]);
        });
        for (const Found& part : found) ghosts_.insert(ghosts_.end(), part.ghosts.begin(), part.ghosts.end());
        sort_out(&ghosts_);
        find_neighbours(firsts);
        team.run(
            [&](int thread) { localize(slices.of_thread(thread, team.size()), &found[static_cast<size_t>(thread)]); });
        for (const Found& part : found) join(part);
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
    // What one thread finds in its rows.
    struct alignas(64) Found {
        std::vector<int32_t> ghosts;
        std::vector<std::vector<int32_t>> sends;  // by neighbour
        std::vector<Range> interior, boundary;
    };

    bool is_own(int32_t column) const { return column >= own_.begin && column < own_.end; }

    static void sort_out(std::vector<int32_t>* numbers) {
        std::sort(numbers->begin(), numbers->end());
        numbers->erase(std::unique(numbers->begin(), numbers->end()), numbers->end());
    }

    void find_ghosts(const Range& rows, Found* found) const {
        const long end = matrix_.starts[static_cast<size_t>(rows.end)];
        for (long i = matrix_.starts[static_cast<size_t>(rows.begin)]; i < end; ++i) {
            if (!is_own(matrix_.columns[static_cast<size_t>(i)]))
                found->ghosts.push_back(matrix_.columns[static_cast<size_t>(i)]);
        }
        sort_out(&found->ghosts);
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

    void localize(const Range& rows, Found* found) {
        found->sends.resize(neighbours_.size());
        for (long row = rows.begin; row < rows.end; ++row) localize_row(row, found);
    }

    void localize_row(long row, Found* found) {
        bool has_ghosts = false;
        for (long i = matrix_.starts[static_cast<size_t>(row)]; i < matrix_.starts[static_cast<size_t>(row) + 1]; ++i) {
            int32_t& column = matrix_.columns[static_cast<size_t>(i)];
            column = place(column);
            const long ghost = column - rows();
            if (ghost < 0)
                continue;
            has_ghosts = true;
            std::vector<int32_t>& sends = found->sends[neighbour_of(ghost)];
            if (sends.empty() || sends.back() != row)
                sends.push_back(static_cast<int32_t>(row));
        }
        append({row, row + 1}, has_ghosts ? &found->boundary : &found->interior);
    }

    size_t neighbour_of(long ghost) const {
        const auto found = std::find_if(neighbours_.begin(), neighbours_.end(),
                                        [&](const Neighbour& neighbour) { return ghost < neighbour.ghosts.end; });
        return static_cast<size_t>(found - neighbours_.begin());
    }

    static void append(const Range& rows, std::vector<Range>* runs) {
        if (runs->empty() || runs->back().end != rows.begin)
            runs->push_back({rows.begin, rows.begin});
        runs->back().end = rows.end;
    }

    // Behind what the threads before have found.
    void join(const Found& part) {
        for (size_t i = 0; i < neighbours_.size(); ++i)
            neighbours_[i].sends.insert(neighbours_[i].sends.end(), part.sends[i].begin(), part.sends[i].end());
        for (const Range& run : part.interior) append(run, &interior_);
        for (const Range& run : part.boundary) append(run, &boundary_);
    }

    SparseMatrix matrix_;
    const Range own_;
    std::vector<int32_t> ghosts_;  // numbers, rising
    std::vector<Neighbour> neighbours_;
    std::vector<Range> interior_, boundary_;
};

}  // namespace shmem_mt
