// The check of the picture: its hash is the known one, where the edge has one; and rows equal a computation pixel by
// pixel, made once. All rows are compared where they are few, else some of those whose home is this PE.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/mandelbrot/image.hpp"
#include "programs/common/validation.hpp"

namespace shmem_mt {

struct KnownHash {
    long edge;
    uint64_t hash;
};

constexpr KnownHash kKnownHashes[] = {
    {192, 0x030b2793207d}, {1600, 0xb13549caf4cd}, {3200, 0xc00983f25cb9}, {12800, 0x55d3cb58d96e}};

class MandelbrotAnswer {
  public:
    static constexpr long kAllUpTo = 512;  // edge
    static constexpr size_t kSome = 8;     // rows of each PE

    MandelbrotAnswer(const MandelbrotImage& image, const Job& job) : image_(image) {
        for (const KnownHash& known : kKnownHashes) {
            if (known.edge == image.edge())
                hash_ = &known.hash;
        }
        if (!job.options().validate)
            return;
        std::vector<long> own;
        image.for_own_pieces([&](long piece, const char*) {
            for (long row = image.rows(piece).begin; row < image.rows(piece).end; ++row) own.push_back(row);
        });
        const size_t rows = image.edge() <= kAllUpTo ? own.size() : std::min(own.size(), kSome);
        for (size_t i = 0; i < rows; ++i) rows_.push_back(plain_row(own[i * own.size() / rows]));
    }

    // Null: not known.
    const uint64_t* hash() const { return hash_; }

    // Of the picture that is there now; this PE's part of the hash comes out.
    uint64_t check(Checker& checker) const {
        uint64_t hash = 0;
        image_.for_own_pieces([&](long piece, char* place) {
            checker.compare_word(MandelbrotImage::stamp(place).thread_plus_1 != 0, 1);
            const Range rows = image_.rows(piece);
            for (long row = rows.begin; row < rows.end; ++row)
                hash += row_hash(image_.counts(place, row), row, image_.edge());
        });
        for (const auto& [row, counts] : rows_)
            checker.compare(image_.counts(image_.place(image_.piece_of(row)), row), counts.data(), 2 * image_.edge());
        return hash & kHashMask;
    }

  private:
    std::pair<long, std::vector<uint16_t>> plain_row(long row) const {
        std::vector<uint16_t> counts(static_cast<size_t>(image_.edge()));
        const double imaginary = image_.plane.imaginary(row);
        for (long column = 0; column < image_.edge(); ++column)
            counts[static_cast<size_t>(column)] = plain_count(image_.plane.real(column), imaginary);
        return {row, std::move(counts)};
    }

    const MandelbrotImage& image_;
    const uint64_t* hash_ = nullptr;
    std::vector<std::pair<long, std::vector<uint16_t>>> rows_;
};

}  // namespace shmem_mt
