// Which PE has which rows of CG, and how vectors lie in memory. All PEs have equally many rows; the last rows are empty
// where the PEs do not divide n. A PE's rows are cut into slices of kSlice rows, and its slices into pieces, which
// travel one by one. A whole vector, as every PE has it, is piece 0 of all PEs, then piece 1 of all PEs, and so on.
// With one piece its order is that of the rows.
//
//     PE 0: a0 a1    PE 1: b0 b1    in two pieces, whole: a0 b0 a1 b1
//
// Inner products are sums of the slices' sums, in the order of the rows. Own rows and whole vectors, any number of
// threads and any number of pieces give the same bits.
#pragma once

#include <algorithm>
#include <vector>

#include "apps/common/range.hpp"

namespace shmem_mt {

constexpr long kSlice = 64;

// A thread's share of so many rows, in whole slices.
inline Range rows_of_thread(long rows, int thread, int threads) {
    const Range slices = Range{0, (rows + kSlice - 1) / kSlice}.share(thread, threads);
    return {slices.begin * kSlice, std::min(slices.end * kSlice, rows)};
}

// A slice in a whole vector.
struct Block {
    long position;
    long length;
    int pe;
    long slice;
};

class CgLayout {
  public:
    // At most `pieces`; fewer where there are fewer slices.
    CgLayout(long n, int pes, int me, long pieces)
        : pes_(pes), rows_((n + pes - 1) / pes), slices_((rows_ + kSlice - 1) / kSlice) {
        pieces_ = std::min(pieces, slices_);
        for (long piece = 0; piece < pieces_; ++piece) {
            block_starts_.push_back(static_cast<long>(blocks_.size()));
            for (int pe = 0; pe < pes; ++pe) {
                const Range slices = slices_of(piece);
                for (long slice = slices.begin; slice < slices.end; ++slice) {
                    const Range rows = rows_of_slice(slice);
                    blocks_.push_back({position(pe, rows.begin), rows.end - rows.begin, pe, slice});
                }
            }
        }
        block_starts_.push_back(static_cast<long>(blocks_.size()));
        for (long slice = 0; slice < slices_; ++slice) own_.push_back(position(me, slice * kSlice));
    }

    int pes() const { return pes_; }
    long rows() const { return rows_; }      // of each PE
    long slices() const { return slices_; }  // of each PE
    long pieces() const { return pieces_; }
    long whole() const { return rows_ * pes_; }
    // Where that slice of this PE lies in a whole vector.
    long own(long slice) const { return own_[static_cast<size_t>(slice)]; }

    // In the order of their positions.
    const std::vector<Block>& blocks() const { return blocks_; }
    Range all_blocks() const { return {0, static_cast<long>(blocks_.size())}; }
    Range blocks_of(long piece) const {
        return {block_starts_[static_cast<size_t>(piece)], block_starts_[static_cast<size_t>(piece + 1)]};
    }

    Range all_slices() const { return {0, slices_}; }
    Range slices_of(long piece) const { return {slices_ * piece / pieces_, slices_ * (piece + 1) / pieces_}; }
    Range rows_of_slice(long slice) const { return {slice * kSlice, std::min((slice + 1) * kSlice, rows_)}; }
    // The rows of neighbouring slices.
    Range rows_of(const Range& slices) const { return {slices.begin * kSlice, std::min(slices.end * kSlice, rows_)}; }
    Range rows_of_piece(long piece) const { return rows_of(slices_of(piece)); }

    // Where that row of a PE lies in a whole vector.
    long position(int pe, long row) const {
        long piece = 0;
        while (row >= rows_of_piece(piece).end) ++piece;
        const Range rows = rows_of_piece(piece);
        return pes_ * rows.begin + pe * (rows.end - rows.begin) + row - rows.begin;
    }

  private:
    int pes_;
    long rows_, slices_, pieces_ = 1;
    std::vector<Block> blocks_;
    std::vector<long> block_starts_;  // of each piece, and the end
    std::vector<long> own_;
};

}  // namespace shmem_mt
