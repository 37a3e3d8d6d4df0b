// The mailboxes of all workers. A worker has one for each of its faces: two boxes, which the neighbour beyond the face
// fills in turns, each with the number of the last face that has come into it; and, for faces sent through that side,
// the number of the last one that the neighbour has taken out of each.
//
// Face k goes into box k % 2. A worker that waits for face k (JacobiExchange::exchange) needs no word about what was
// taken out: it sends face k + 2 after it has received k + 1, which the neighbour sent when it had taken out k. A
// worker that does not wait sends only where a box is known to be empty. So no box is read while it is written, no
// value is torn, and no word has two updates under way, however a library carries bytes and in whatever order.
#pragma once

#include <algorithm>

#include "apps/common/signals.hpp"
#include "apps/halo/jacobi_grid.hpp"

namespace shmem_mt {

class JacobiMailboxes {
  public:
    // For one or more grids. Collective.
    JacobiMailboxes(const JacobiGrid& grid, bool edges_too)
        : threads_(grid.threads()),
          box_cells_(most_cells(grid, edges_too)),
          boxes_(static_cast<double*>(
              symmetric_alloc(sizeof(double) * static_cast<size_t>(2 * kBoxFaces * threads_ * box_cells_)))),
          arrived_(static_cast<Signal*>(symmetric_alloc(2 * sizeof(Signal) * faces()))),
          taken_(static_cast<Flag*>(symmetric_alloc(2 * sizeof(Flag) * faces()))) {}

    // Where box and words of a face of that number lie: at one symmetric address on all PEs.
    double* box(int thread, int face, uint64_t number) const {
        return boxes_ + (2 * side(thread, face) + static_cast<long>(number % 2)) * box_cells_;
    }
    Signal* arrived(int thread, int face, uint64_t number) const {
        return alternate(arrived_, side(thread, face), number);
    }
    Flag* taken(int thread, int face, uint64_t number) const { return alternate(taken_, side(thread, face), number); }

    long box_cells() const { return box_cells_; }

  private:
    size_t faces() const { return static_cast<size_t>(kBoxFaces * threads_); }
    static long side(int thread, int face) { return thread * kBoxFaces + face; }

    // Of the largest face, in whole cache lines.
    static long most_cells(const JacobiGrid& grid, bool edges_too) {
        const long g = edges_too ? 2 : 0;
        const long x = grid.most_cells(0), y = grid.most_cells(1), z = grid.most_cells(2);
        const long most = std::max({y * z, (x + g) * z, (x + g) * (y + g)});
        return (most + 7) / 8 * 8;
    }

    const long threads_;
    const long box_cells_;
    double* const boxes_;
    Signal* const arrived_;
    Flag* const taken_;
};

}  // namespace shmem_mt
