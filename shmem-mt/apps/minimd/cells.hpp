// Cells half as long as the lists reach, equal for every number of PEs: the box and its images are cut into them, so an
// atom and its image are in the same cell of the box. A search that goes through cells in their order, and in a cell
// through atoms by their numbers, meets the same neighbours in the same order on any PE.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "apps/common/range.hpp"
#include "apps/minimd/layout.hpp"
#include "programs/common/thread_team.hpp"

namespace shmem_mt {

// The cells around the part of this PE, numbered along x first.
class MdCellGrid {
  public:
    MdCellGrid(const MdModel& model, const MdLayout& layout)
        : cells_(std::max(1L, static_cast<long>(model.edge() * kCellsOfReach / kListCutoff))), edge_(model.edge()) {
        for (size_t a = 0; a < 3; ++a) {
            const double low = layout.low(a) * static_cast<double>(cells_) / edge_;
            const double high = layout.high(a) * static_cast<double>(cells_) / edge_;
            first_[a] = static_cast<long>(std::floor(low - kRounding)) - kCellsOfReach - 1;
            length_[a] = static_cast<long>(std::floor(high + kRounding)) + kCellsOfReach + 2 - first_[a];
        }
    }

    static constexpr long kCellsOfReach = 2;
    static constexpr long kRows = (2 * kCellsOfReach + 1) * (2 * kCellsOfReach + 1);

    long count() const { return length_[0] * length_[1] * length_[2]; }

    // Of what is so many edges away from an atom at that place of the box.
    int32_t cell(const Vector& at, const std::array<int, 3>& edges) const {
        long number = 0;
        for (size_t a = 3; a-- > 0;) {
            const long place = std::min(cells_ - 1, static_cast<long>(at[a] * static_cast<double>(cells_) / edge_));
            number = number * length_[a] + place + edges[a] * cells_ - first_[a];
        }
        return static_cast<int32_t>(number);
    }

    // f(first cell, last cell) for each row of cells in which neighbours of the atoms of a cell may be.
    template <class F>
    void for_rows_around(int32_t cell, F&& f) const {
        for (long z = -kCellsOfReach; z <= kCellsOfReach; ++z) {
            for (long y = -kCellsOfReach; y <= kCellsOfReach; ++y) {
                const long middle = cell + (z * length_[1] + y) * length_[0];
                f(static_cast<size_t>(middle - kCellsOfReach), static_cast<size_t>(middle + kCellsOfReach));
            }
        }
    }

  private:
    static constexpr double kRounding = 1e-6;

    const long cells_;  // along the edge of the box
    const double edge_;
    long first_[3], length_[3];
};

// Things with a number and a cell each, sorted by cell, then by number. All threads of the PE together.
class MdCellSort {
  public:
    MdCellSort(ThreadTeam& team, const MdCellGrid& grid, long capacity)
        : team_(team),
          counts_(new std::atomic<int32_t>[static_cast<size_t>(grid.count())]()),
          starts_(static_cast<size_t>(grid.count()) + 1),
          ranks_(static_cast<size_t>(capacity)),
          order_(ranks_.size()),
          totals_(static_cast<size_t>(team.size())) {}

    // each(f) calls f(index) for the thread's share of them. Begins and ends with all threads past a barrier.
    template <class Each, class CellOf, class IdOf>
    void sort(int thread, Each&& each, CellOf&& cell_of, IdOf&& id_of) {
        // Relaxed: the barriers order all of it. Ranks differ from run to run; the sort by number makes up for that.
        each([&](long index) {
            ranks_[static_cast<size_t>(index)] = counts_[cell_of(index)].fetch_add(1, std::memory_order_relaxed);
        });
        team_.barrier();
        const Range cells = Range{0, static_cast<long>(starts_.size()) - 1}.share(thread, team_.size());
        count_cells(thread, cells);
        team_.barrier();
        place_cells(thread, cells);
        team_.barrier();
        each([&](long index) {
            const int32_t start = starts_[cell_of(index)];
            order_[static_cast<size_t>(start + ranks_[static_cast<size_t>(index)])] = static_cast<int32_t>(index);
        });
        team_.barrier();
        for (long cell = cells.begin; cell < cells.end; ++cell)
            std::sort(order_.data() + start(static_cast<size_t>(cell)),
                      order_.data() + start(static_cast<size_t>(cell) + 1),
                      [&](int32_t i, int32_t j) { return id_of(i) < id_of(j); });
        team_.barrier();
    }

    long size() const { return starts_.back(); }
    int32_t start(size_t cell) const { return starts_[cell]; }
    int32_t at(long place) const { return order_[static_cast<size_t>(place)]; }

  private:
    struct alignas(64) Total {
        int32_t count;
    };

    // How much is in the thread's cells. Relaxed, here and below: barriers order all of it.
    void count_cells(int thread, const Range& cells) {
        int32_t count = 0;
        for (long cell = cells.begin; cell < cells.end; ++cell)
            count += counts_[static_cast<size_t>(cell)].load(std::memory_order_relaxed);
        totals_[static_cast<size_t>(thread)].count = count;
    }

    // Behind those of the threads before.
    void place_cells(int thread, const Range& cells) {
        int32_t start = 0;
        for (int before = 0; before < thread; ++before) start += totals_[static_cast<size_t>(before)].count;
        for (long cell = cells.begin; cell < cells.end; ++cell) {
            starts_[static_cast<size_t>(cell)] = start;
            start += counts_[static_cast<size_t>(cell)].load(std::memory_order_relaxed);
            counts_[static_cast<size_t>(cell)].store(0, std::memory_order_relaxed);
        }
        if (thread == team_.size() - 1)
            starts_.back() = start;
    }

    ThreadTeam& team_;
    const std::unique_ptr<std::atomic<int32_t>[]> counts_;  // all 0 between two sorts
    std::vector<int32_t> starts_;                           // by cell
    std::vector<int32_t> ranks_;                            // by index: its place in its cell, at first
    std::vector<int32_t> order_;
    std::vector<Total> totals_;  // by thread
};

}  // namespace shmem_mt
