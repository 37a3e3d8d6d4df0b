// The problem of Jacobi's method: A u = b on edge^3 cells, zero all around them. A is the Laplacian with 7 points (6 on
// the diagonal, -1 for each face's neighbour) or with 27 (26, and -1 for all neighbours); b is made of a known u.
//
// The error of u follows from its residual r by comparison with w = x (edge + 1 - x) / 2, of which A w is 1 (7 points)
// or 9 (27) in each row or more: |A^-1 r| <= max w * max |r|, and a ninth of that with 27 points. A sweep's change is
// the residual over the diagonal, so changes of at most limit() leave u right to kJacobiTolerance.
#pragma once

#include <cmath>

namespace shmem_mt {

constexpr long kLargestJacobiEdge = 256;
constexpr double kJacobiTolerance = 1e-4;  // of values up to about 1

enum class Stencil { k7, k27 };

inline double diagonal(Stencil stencil) {
    return stencil == Stencil::k7 ? 6 : 26;
}

// Of the change of a sweep.
inline double jacobi_limit(Stencil stencil, long edge) {
    const double length = static_cast<double>(edge + 1);
    const double most = length * length / 8 / (stencil == Stencil::k7 ? 1 : 9);
    return kJacobiTolerance / most / diagonal(stencil);
}

// The known u at a cell, of 0 to edge - 1 along each axis; zero one cell outside.
inline double known_solution(long edge, long x, long y, long z) {
    const double unit = 1.0 / static_cast<double>(edge + 1);
    const double a = static_cast<double>(x + 1) * unit, b = static_cast<double>(y + 1) * unit;
    const double c = static_cast<double>(z + 1) * unit;
    const bool outside = x < 0 || y < 0 || z < 0 || x >= edge || y >= edge || z >= edge;
    return outside ? 0 : 64 * a * (1 - a) * b * (1 - b) * c * (1 - c) * (1 - 0.5 * a + 0.25 * b * c);
}

// b at a cell, as the definition of A has it.
inline double right_side(Stencil stencil, long edge, long x, long y, long z) {
    double sum = diagonal(stencil) * known_solution(edge, x, y, z);
    for (long dz = -1; dz <= 1; ++dz) {
        for (long dy = -1; dy <= 1; ++dy) {
            for (long dx = -1; dx <= 1; ++dx) {
                const long steps = std::labs(dx) + std::labs(dy) + std::labs(dz);
                if (steps == 1 || (steps > 1 && stencil == Stencil::k27))
                    sum -= known_solution(edge, x + dx, y + dy, z + dz);
            }
        }
    }
    return sum;
}

// A box of x * y * z cells with a layer of ghost cells around it.
struct BoxShape {
    long x, y, z;

    long row() const { return x + 2; }
    long plane() const { return row() * (y + 2); }
    long all() const { return plane() * (z + 2); }
    long cells() const { return x * y * z; }
    long index(long i, long j, long k) const { return k * plane() + j * row() + i; }
};

}  // namespace shmem_mt
