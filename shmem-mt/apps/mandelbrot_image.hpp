// The picture, over the PEs: row r lies on PE r % n, so most rows travel, whoever computes them. Each has a stamp that
// says who did. And the pieces, one a row: each PE has a block of them, neighbours, and a counter of those of its block
// that are taken.
#pragma once

#include <cstring>

#include "job.hpp"
#include "mandelbrot_problem.hpp"
#include "range.hpp"

namespace shmem_mt {

// One row as it travels and lies: the stamp, then the counts.
class MandelbrotImage {
  public:
    static constexpr long kStampBytes = 8;
    static constexpr uint16_t kNoCount = 0xffff;  // more than there are steps

    // Collective.
    MandelbrotImage(Job& job, long edge)
        : plane(edge),
          me_(job.me()),
          n_pes_(job.n_pes()),
          row_bytes_((kStampBytes + 2 * edge + 63) / 64 * 64),
          own_rows_((edge - job.me() + job.n_pes() - 1) / job.n_pes()),
          rows_(static_cast<char*>(symmetric_alloc(static_cast<size_t>(((edge + n_pes_ - 1) / n_pes_) * row_bytes_)))),
          taken_(static_cast<Counter*>(symmetric_alloc(sizeof(Counter)))) {}

    const Plane plane;

    long edge() const { return plane.edge(); }
    long row_bytes() const { return row_bytes_; }

    int home(long row) const { return static_cast<int>(row % n_pes_); }
    char* place(long row) const { return rows_ + row / n_pes_ * row_bytes_; }  // the same on all PEs

    static uint16_t* counts(char* row) { return reinterpret_cast<uint16_t*>(row + kStampBytes); }

    // Who computed a row; 0: nobody has.
    static uint64_t stamp_of(int pe, int thread) {
        return static_cast<uint64_t>(pe) << 8 | static_cast<uint64_t>(thread + 1);
    }
    static int pe_of(uint64_t stamp) { return static_cast<int>(stamp >> 8); }
    static int thread_of(uint64_t stamp) { return static_cast<int>(stamp & 255) - 1; }
    static void set_stamp(char* row, uint64_t stamp) { std::memcpy(row, &stamp, sizeof stamp); }
    static uint64_t stamp(const char* row) {
        uint64_t stamp = 0;
        std::memcpy(&stamp, row, sizeof stamp);
        return stamp;
    }

    Range block(int pe) const { return Range{0, edge()}.share(pe, n_pes_); }
    long* taken() const { return &taken_->count; }

    // f(row, its place) for the rows at home here.
    template <class F>
    void for_own_rows(F&& f) const {
        for (long row = me_; row < edge(); row += n_pes_) f(row, place(row));
    }

    // As before a run, on this PE.
    void clear() {
        std::memset(rows_, 0xff, static_cast<size_t>(own_rows_ > 0 ? own_rows_ * row_bytes_ : 0));
        for_own_rows([](long, char* row) { set_stamp(row, 0); });
        taken_->count = 0;
    }

  private:
    struct alignas(64) Counter {
        long count;
    };

    const int me_, n_pes_;
    const long row_bytes_;
    const long own_rows_;
    char* const rows_;
    Counter* const taken_;
};

}  // namespace shmem_mt
