// The picture, over the PEs, in pieces of a few rows. The home of piece p is PE p % n, so most pieces travel, whichever
// PE computes them. Each piece has a stamp that says which PE and thread computed it. Pieces are dealt to PEs in blocks
// of neighbouring ones; each PE has a counter of the pieces of its block that are taken.
#pragma once

#include <algorithm>
#include <cstring>

#include "apps/common/range.hpp"
#include "apps/mandelbrot/problem.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

// Which PE and thread computed a piece.
struct Stamp {
    int32_t pe;
    int32_t thread_plus_1;  // 0: not computed yet
};

class MandelbrotImage {
  public:
    // Collective.
    MandelbrotImage(Job& job, long edge)
        : plane(edge),
          me_(job.me()),
          n_pes_(job.n_pes()),
          piece_rows_(rows_of_a_piece(edge, job.n_pes() * job.threads())),
          pieces_((edge + piece_rows_ - 1) / piece_rows_),
          piece_bytes_((static_cast<long>(sizeof(Stamp)) + 2 * edge * piece_rows_ + 63) / 64 * 64),
          memory_(
              static_cast<char*>(symmetric_alloc(static_cast<size_t>((pieces_ + n_pes_ - 1) / n_pes_ * piece_bytes_)))),
          taken_(static_cast<Counter*>(symmetric_alloc(sizeof(Counter)))) {}

    const Plane plane;

    long edge() const { return plane.edge(); }
    long pieces() const { return pieces_; }
    long piece_bytes() const { return piece_bytes_; }  // at most
    long piece_of(long row) const { return row / piece_rows_; }
    Range rows(long piece) const { return {piece * piece_rows_, std::min((piece + 1) * piece_rows_, edge())}; }

    int home(long piece) const { return static_cast<int>(piece % n_pes_); }
    char* place(long piece) const { return memory_ + piece / n_pes_ * piece_bytes_; }  // the same on all PEs

    // In a piece, at its home or elsewhere: the stamp, then the counts, row by row.
    static Stamp stamp(const char* piece) {
        Stamp stamp;
        std::memcpy(&stamp, piece, sizeof stamp);
        return stamp;
    }
    static void set_stamp(char* piece, const Stamp& stamp) { std::memcpy(piece, &stamp, sizeof stamp); }
    uint16_t* counts(char* piece, long row) const {
        return reinterpret_cast<uint16_t*>(piece + sizeof(Stamp)) + row % piece_rows_ * edge();
    }
    size_t bytes(long piece) const { return sizeof(Stamp) + static_cast<size_t>(2 * rows(piece).length() * edge()); }

    Range block(int pe) const { return Range{0, pieces_}.share(pe, n_pes_); }
    long* taken() const { return &taken_->count; }

    // f(piece, its place) for those at home here.
    template <class F>
    void for_own_pieces(F&& f) const {
        for (long piece = me_; piece < pieces_; piece += n_pes_) f(piece, place(piece));
    }

    // As before a run, on this PE. No count is so large.
    void clear() const {
        for_own_pieces([&](long, char* place) {
            std::memset(place, 0xff, static_cast<size_t>(piece_bytes_));
            set_stamp(place, {});
        });
        taken_->count = 0;
    }

    // Some 800 pieces: many for the threads to share, and one still long beside what a message costs. More where that
    // would be fewer than 32 for each worker, a thread of a PE, but no piece has less than a row.
    static long rows_of_a_piece(long edge, int workers) { return std::max(1L, edge / std::max(800L, 32L * workers)); }

  private:
    struct alignas(64) Counter {
        long count;
    };

    const int me_, n_pes_;
    const long piece_rows_, pieces_, piece_bytes_;
    char* const memory_;
    Counter* const taken_;
};

}  // namespace shmem_mt
