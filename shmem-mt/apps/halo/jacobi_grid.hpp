// Which worker has which box of the grid of cells. Workers are the threads of the PEs: each has a box of its own, and
// neighbours on its PE or on other PEs. PEs form a grid as near to a cube as their number allows, and each PE's threads
// a grid within it; most lie along z, where faces are contiguous. Where there are more workers than cells, some have no
// cells.
#pragma once

#include <utility>

#include "apps/common/range.hpp"
#include "programs/common/grid.hpp"

namespace shmem_mt {

constexpr int kBoxFaces = 6;  // face f lies on axis f / 2, on the far side when f is odd

struct JacobiWorker {
    int pe, thread;
};

class JacobiGrid {
  public:
    JacobiGrid(long edge, int n_pes, int threads) : edge_(edge) {
        while (!fits(n_pes, threads)) {
            if (threads > 1) {
                --threads;
            } else {
                --n_pes;
            }
        }
        pes_ = standing(n_pes);
        threads_ = standing(threads);
    }

    int pes() const { return pes_[0] * pes_[1] * pes_[2]; }
    int threads() const { return threads_[0] * threads_[1] * threads_[2]; }
    bool works(const JacobiWorker& who) const { return who.pe < pes() && who.thread < threads(); }

    int count(int axis) const { return pes_[at(axis)] * threads_[at(axis)]; }

    // The worker's place among all workers.
    Place place(const JacobiWorker& who) const {
        const Place of_pe = place_of(pes_, who.pe), of_thread = place_of(threads_, who.thread);
        Place place{};
        for (size_t a = 0; a < 3; ++a) place[a] = of_pe[a] * threads_[a] + of_thread[a];
        return place;
    }

    // Its cells along that axis, of 0 to edge - 1.
    Range cells(const Place& place, int axis) const { return Range{0, edge_}.share(place[at(axis)], count(axis)); }

    // Of any worker, along that axis.
    long most_cells(int axis) const { return (edge_ + count(axis) - 1) / count(axis); }

    // The worker beyond that face; pe -1: none, the boundary of the problem is there.
    JacobiWorker beyond(Place place, int face) const {
        const size_t a = at(face / 2);
        place[a] += face % 2 ? 1 : -1;
        if (place[a] < 0 || place[a] >= count(face / 2))
            return {-1, 0};
        Place of_pe{}, of_thread{};
        for (size_t i = 0; i < 3; ++i) {
            of_pe[i] = place[i] / threads_[i];
            of_thread[i] = place[i] % threads_[i];
        }
        return {number(pes_, of_pe), number(threads_, of_thread)};
    }

  private:
    static size_t at(int axis) { return static_cast<size_t>(axis); }

    static Place standing(int n) {
        Place grid = grid_of(n);
        std::swap(grid[0], grid[2]);
        return grid;
    }

    static int number(const Place& grid, const Place& place) {
        return (place[2] * grid[1] + place[1]) * grid[0] + place[0];
    }

    bool fits(int n_pes, int threads) const {
        const Place a = standing(n_pes), b = standing(threads);
        return a[0] * b[0] <= edge_ && a[1] * b[1] <= edge_ && a[2] * b[2] <= edge_;
    }

    const long edge_;
    Place pes_{}, threads_{};
};

}  // namespace shmem_mt
