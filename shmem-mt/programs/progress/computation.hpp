// Work for a core, of known length and known result: `units` steps of x -> a x + c modulo 2^64, each of which waits
// for the one before and touches no memory.
#pragma once

#include <cstdint>

namespace shmem_mt {

constexpr uint64_t kStepFactor = 6364136223846793005u;
constexpr uint64_t kStepSummand = 1442695040888963407u;

// A few cycles a unit.
inline uint64_t compute(uint64_t x, long units) {
    for (long i = 0; i < units; ++i) {
        x = x * kStepFactor + kStepSummand;
        asm volatile("" : "+r"(x));  // the steps stay steps
    }
    return x;
}

// What compute() returns, by squaring: the cost grows with the logarithm of `units`.
inline uint64_t computed(uint64_t x, long units) {
    uint64_t factor = kStepFactor, summand = kStepSummand;
    for (long left = units; left > 0; left /= 2) {
        if (left % 2 == 1)
            x = x * factor + summand;
        summand *= factor + 1;
        factor *= factor;
    }
    return x;
}

}  // namespace shmem_mt
