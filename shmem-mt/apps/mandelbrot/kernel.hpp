// The counts of a row, many pixels at once. Each vector lane holds a pixel at a step of its own; all lanes take kBlock
// steps without a check. Then a pixel beyond 2 takes the block again, alone and step by step, from the block's begin,
// and its lane goes on with the row's next pixel.
//
// This is right because a pixel that exceeds 2 within a block still does so at its end. With |z| > 2 and |z| >= |c| the
// distance from 2 at least triples, for |z^2 + c| - 2 >= |z|^2 - |z| - 2 = (|z| - 2) (|z| + 1). Rounding could outweigh
// that only for c within 1e-12 of -2, where no pixel has its middle. An overflow is infinite or no number, and counts
// as beyond 2.
#pragma once

#include <cstring>

#include "apps/mandelbrot/problem.hpp"

namespace shmem_mt {

// Four vectors side by side, for one step waits for the one before.
template <class Vector>
struct MandelbrotLanes {
    static constexpr int kEach = sizeof(Vector) / sizeof(double);
    static constexpr int kAll = 4 * kEach;
    static constexpr int kBlock = 8;
    static_assert(kMostSteps % kBlock == 0);

    struct Chain {
        Vector x, y, real, imaginary;
    };

    // What each lane is at, between blocks.
    alignas(64) double x[kAll] = {}, y[kAll] = {}, real[kAll] = {}, imaginary[kAll] = {};
    alignas(64) double next_x[kAll], next_y[kAll];
    long steps[kAll] = {};
    long column[kAll];  // -1: none; such a lane stays at 0

    [[gnu::always_inline]] inline void load(int chain, Chain& to) const {
        std::memcpy(&to.x, x + chain * kEach, sizeof(Vector));
        std::memcpy(&to.y, y + chain * kEach, sizeof(Vector));
        std::memcpy(&to.real, real + chain * kEach, sizeof(Vector));
        std::memcpy(&to.imaginary, imaginary + chain * kEach, sizeof(Vector));
    }

    [[gnu::always_inline]] static inline void save(int chain, const Chain& from, double* to_x, double* to_y) {
        std::memcpy(to_x + chain * kEach, &from.x, sizeof(Vector));
        std::memcpy(to_y + chain * kEach, &from.y, sizeof(Vector));
    }

    [[gnu::always_inline]] static inline void step(Chain& z) {
        const Vector product = z.x * z.y;
        z.x = (z.x * z.x - z.y * z.y) + z.real;
        z.y = (product + product) + z.imaginary;
    }

    // Whether no lane is beyond 2.
    [[gnu::always_inline]] static inline bool within(const Chain& a, const Chain& b, const Chain& c, const Chain& d) {
        const auto all = (a.x * a.x + a.y * a.y <= 4) & (b.x * b.x + b.y * b.y <= 4) & (c.x * c.x + c.y * c.y <= 4) &
                         (d.x * d.x + d.y * d.y <= 4);
        long every = -1;
        for (int lane = 0; lane < kEach; ++lane) every &= all[lane];
        return every != 0;
    }
};

// How many steps are left of kMostSteps until the oldest lane has done them.
template <class Lanes>
long blocks_left(const Lanes& lanes) {
    long oldest = 0;
    for (int lane = 0; lane < Lanes::kAll; ++lane) {
        if (lanes.column[lane] >= 0 && lanes.steps[lane] > oldest)
            oldest = lanes.steps[lane];
    }
    return (kMostSteps - oldest) / Lanes::kBlock;
}

template <class Vector>
[[gnu::always_inline]] inline void count_row_with(const Plane& plane, long row, uint16_t* counts) {
    SHMEM_MT_NOT_FUSED_HERE
    using Lanes = MandelbrotLanes<Vector>;
    Lanes lanes;
    long next = 0, busy = 0;
    const double imaginary = plane.imaginary(row);
    const auto renew = [&](int lane) {
        const bool more = next < plane.edge();
        lanes.x[lane] = lanes.y[lane] = 0;
        lanes.real[lane] = more ? plane.real(next) : 0;
        lanes.imaginary[lane] = more ? imaginary : 0;
        lanes.steps[lane] = 0;
        lanes.column[lane] = more ? next++ : -1;
        busy += more;
    };
    for (int lane = 0; lane < Lanes::kAll; ++lane) renew(lane);
    while (busy > 0) {
        typename Lanes::Chain a, b, c, d;
        lanes.load(0, a);
        lanes.load(1, b);
        lanes.load(2, c);
        lanes.load(3, d);
        const long most = blocks_left(lanes);
        long done = 0;
        bool within = true;
        while (within && done < most) {
            Lanes::save(0, a, lanes.x, lanes.y);
            Lanes::save(1, b, lanes.x, lanes.y);
            Lanes::save(2, c, lanes.x, lanes.y);
            Lanes::save(3, d, lanes.x, lanes.y);
            for (int i = 0; i < Lanes::kBlock; ++i) {
                Lanes::step(a);
                Lanes::step(b);
                Lanes::step(c);
                Lanes::step(d);
            }
            within = Lanes::within(a, b, c, d);
            ++done;
        }
        Lanes::save(0, a, lanes.next_x, lanes.next_y);
        Lanes::save(1, b, lanes.next_x, lanes.next_y);
        Lanes::save(2, c, lanes.next_x, lanes.next_y);
        Lanes::save(3, d, lanes.next_x, lanes.next_y);
        for (int lane = 0; lane < Lanes::kAll; ++lane) {
            if (lanes.column[lane] < 0)
                continue;
            long& steps = lanes.steps[lane];
            steps += done * Lanes::kBlock;
            double x = lanes.next_x[lane], y = lanes.next_y[lane];
            const bool beyond = !(x * x + y * y <= 4);
            if (beyond) {
                x = lanes.x[lane];
                y = lanes.y[lane];
                steps -= Lanes::kBlock;
                for (; x * x + y * y <= 4 && steps < kMostSteps; ++steps) {
                    const double after = (x * x - y * y) + lanes.real[lane];
                    y = (x * y + x * y) + imaginary;
                    x = after;
                }
            } else if (steps < kMostSteps) {
                lanes.x[lane] = x;
                lanes.y[lane] = y;
                continue;
            }
            counts[lanes.column[lane]] = static_cast<uint16_t>(steps);
            --busy;
            renew(lane);
        }
    }
}

using RowCounter = void (*)(const Plane&, long row, uint16_t* counts);

#if defined(__x86_64__)
// Of 64, 32 and 16 bytes: what one instruction of that unit takes.
typedef double Doubles8 __attribute__((vector_size(64)));
typedef double Doubles4 __attribute__((vector_size(32)));

[[gnu::target("avx512f,avx512dq")]] SHMEM_MT_NOT_FUSED inline void count_row_512(const Plane& plane, long row,
                                                                                 uint16_t* counts) {
    count_row_with<Doubles8>(plane, row, counts);
}

[[gnu::target("avx2")]] SHMEM_MT_NOT_FUSED inline void count_row_256(const Plane& plane, long row, uint16_t* counts) {
    count_row_with<Doubles4>(plane, row, counts);
}
#endif

typedef double Doubles2 __attribute__((vector_size(16)));

SHMEM_MT_NOT_FUSED inline void count_row_128(const Plane& plane, long row, uint16_t* counts) {
    count_row_with<Doubles2>(plane, row, counts);
}

// The one for the widest vectors of this machine.
inline RowCounter row_counter() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return count_row_512;
    if (__builtin_cpu_supports("avx2"))
        return count_row_256;
#endif
    return count_row_128;
}

}  // namespace shmem_mt
