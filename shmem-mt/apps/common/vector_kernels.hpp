// The arithmetic of conjugate gradients on stretches of vectors. All forms call the same functions on the same slices.
// No function is inlined, so a compiler that contracts a * b + c does it everywhere or nowhere. Compilers make vectors
// of four elements a turn at -O2; every vector unit gives the same bits, as none of those named fuses a * b + c.
#pragma once

#include "apps/common/vector_units.hpp"

namespace shmem_mt {

SHMEM_MT_VECTORS inline double dot(const double* x, const double* y, long n) {
    double a = 0, b = 0, c = 0, d = 0;
    long i = 0;
    for (; i + 4 <= n; i += 4) {
        a += x[i] * y[i];
        b += x[i + 1] * y[i + 1];
        c += x[i + 2] * y[i + 2];
        d += x[i + 3] * y[i + 3];
    }
    for (; i < n; ++i) a += x[i] * y[i];
    return (a + b) + (c + d);
}

// y += factor * x
SHMEM_MT_VECTORS inline void add(double* __restrict__ y, double factor, const double* __restrict__ x, long n) {
    long i = 0;
    for (; i + 4 <= n; i += 4) {
        y[i] += factor * x[i];
        y[i + 1] += factor * x[i + 1];
        y[i + 2] += factor * x[i + 2];
        y[i + 3] += factor * x[i + 3];
    }
    for (; i < n; ++i) y[i] += factor * x[i];
}

// y += factor * x; returns the inner product of y with itself.
SHMEM_MT_VECTORS inline double add_dot(double* __restrict__ y, double factor, const double* __restrict__ x, long n) {
    double a = 0, b = 0, c = 0, d = 0;
    long i = 0;
    for (; i + 4 <= n; i += 4) {
        const double y0 = y[i] + factor * x[i], y1 = y[i + 1] + factor * x[i + 1];
        const double y2 = y[i + 2] + factor * x[i + 2], y3 = y[i + 3] + factor * x[i + 3];
        y[i] = y0;
        y[i + 1] = y1;
        y[i + 2] = y2;
        y[i + 3] = y3;
        a += y0 * y0;
        b += y1 * y1;
        c += y2 * y2;
        d += y3 * y3;
    }
    for (; i < n; ++i) {
        y[i] += factor * x[i];
        a += y[i] * y[i];
    }
    return (a + b) + (c + d);
}

// y = x + factor * y
SHMEM_MT_VECTORS inline void renew(double* __restrict__ y, double factor, const double* __restrict__ x, long n) {
    long i = 0;
    for (; i + 4 <= n; i += 4) {
        y[i] = x[i] + factor * y[i];
        y[i + 1] = x[i + 1] + factor * y[i + 1];
        y[i + 2] = x[i + 2] + factor * y[i + 2];
        y[i + 3] = x[i + 3] + factor * y[i + 3];
    }
    for (; i < n; ++i) y[i] = x[i] + factor * y[i];
}

// z = x + factor * y
SHMEM_MT_VECTORS inline void combine(double* __restrict__ z, const double* __restrict__ x, double factor,
                                     const double* __restrict__ y, long n) {
    long i = 0;
    for (; i + 4 <= n; i += 4) {
        z[i] = x[i] + factor * y[i];
        z[i + 1] = x[i + 1] + factor * y[i + 1];
        z[i + 2] = x[i + 2] + factor * y[i + 2];
        z[i + 3] = x[i + 3] + factor * y[i + 3];
    }
    for (; i < n; ++i) z[i] = x[i] + factor * y[i];
}

// y = factor * x
SHMEM_MT_VECTORS inline void scale(double* __restrict__ y, double factor, const double* __restrict__ x, long n) {
    for (long i = 0; i < n; ++i) y[i] = factor * x[i];
}

// The sum of (x - y)^2.
[[gnu::noinline]] inline double distance(const double* x, const double* y, long n) {
    double sum = 0;
    for (long i = 0; i < n; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum;
}

}  // namespace shmem_mt
