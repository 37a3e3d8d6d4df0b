// The picture that is computed: the square of 2.5 x 2.5 around -0.75 of the complex plane, which holds the Mandelbrot
// set, in edge x edge pixels. A pixel's count is the number of steps z -> z^2 + c from 0, up to kMostSteps, until |z|
// exceeds 2. No step is saved by knowledge of the set: the work is what is measured.
//
// Counts are equal on every machine, so no a * b + c may be fused: SHMEM_MT_NOT_FUSED tells gcc, of a function;
// SHMEM_MT_NOT_FUSED_HERE tells clang, at the start of its body.
#pragma once

#include <cstdint>

#if defined(__clang__)
#define SHMEM_MT_NOT_FUSED
#define SHMEM_MT_NOT_FUSED_HERE _Pragma("clang fp contract(off)")
#else
#define SHMEM_MT_NOT_FUSED [[gnu::optimize("fp-contract=off")]]
#define SHMEM_MT_NOT_FUSED_HERE
#endif

namespace shmem_mt {

constexpr long kMostSteps = 4096;
constexpr long kLargestEdge = 32768;

class Plane {
  public:
    explicit Plane(long edge) : edge_(edge), step_(2.5 / static_cast<double>(edge)) {}

    long edge() const { return edge_; }

    // The middle of a column or row of pixels.
    SHMEM_MT_NOT_FUSED double real(long column) const {
        SHMEM_MT_NOT_FUSED_HERE
        return -2.0 + (static_cast<double>(column) + 0.5) * step_;
    }
    SHMEM_MT_NOT_FUSED double imaginary(long row) const {
        SHMEM_MT_NOT_FUSED_HERE
        return 1.25 - (static_cast<double>(row) + 0.5) * step_;
    }

  private:
    const long edge_;
    const double step_;
};

// One pixel, as the definition has it.
SHMEM_MT_NOT_FUSED inline uint16_t plain_count(double real, double imaginary) {
    SHMEM_MT_NOT_FUSED_HERE
    double x = 0, y = 0;
    long steps = 0;
    while (steps < kMostSteps && x * x + y * y <= 4) {
        const double next = (x * x - y * y) + real;
        y = (x * y + x * y) + imaginary;
        x = next;
        ++steps;
    }
    return static_cast<uint16_t>(steps);
}

// Hashes of rows add up to that of the picture, in any order.
constexpr int kHashBits = 48;  // sums over PEs fit into a long
constexpr uint64_t kHashMask = (uint64_t{1} << kHashBits) - 1;

inline uint64_t row_hash(const uint16_t* counts, long row, long edge) {
    constexpr uint64_t kPrime = 0x100000001b3u;  // FNV-1a, of 16-bit units
    uint64_t hash = (0xcbf29ce484222325u ^ static_cast<uint64_t>(row)) * kPrime;
    for (long column = 0; column < edge; ++column) hash = (hash ^ counts[column]) * kPrime;
    return (hash ^ hash >> 29) & kHashMask;
}

}  // namespace shmem_mt
