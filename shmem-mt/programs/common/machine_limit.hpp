// The machine's own limit, measured by each program at its start: what a core needs for a plain store or load of 8 bytes
// and for a copied byte, within its first cache. Nothing that is measured can be faster; what is, did not happen.
#pragma once

#include <algorithm>
#include <cstring>

#include "programs/common/clock.hpp"

namespace shmem_mt {

// Seconds of one core.
struct MachineLimit {
    double word_s = 0;  // a store or a load of 8 bytes, the faster of the two
    double byte_s = 0;  // of a copy

    // An operation of that many bytes takes no less. The tenth is room for a core that was slow while the limit was
    // measured, by its clock or by what shares the core: an operation that did nothing is faster by orders of magnitude.
    double least_s(double bytes) const { return 0.1 * std::max(word_s, bytes * byte_s); }
};

// The best of kTries, about 10 us each, so that a time slice of others touches few of them.
inline MachineLimit machine_limit() {
    constexpr int kTries = 40, kRounds = 32;
    constexpr size_t kWords = 512;
    alignas(64) static long source[kWords], dest[kWords];
    double store_s = 1, load_s = 1, copy_s = 1;
    for (int attempt = 0; attempt < kTries; ++attempt) {
        double start = now_seconds();
        for (int round = 0; round < kRounds; ++round) {
            for (size_t i = 0; i < kWords; i += 8) {
                for (size_t j = i; j < i + 8; ++j) __atomic_store_n(dest + j, round, __ATOMIC_RELAXED);
            }
        }
        store_s = std::min(store_s, (now_seconds() - start) / (kRounds * kWords));
        start = now_seconds();
        for (int round = 0; round < kRounds; ++round) {
            for (size_t i = 0; i < kWords; i += 8) {
                for (size_t j = i; j < i + 8; ++j)
                    asm volatile("" : : "r"(__atomic_load_n(source + j, __ATOMIC_RELAXED)));
            }
        }
        load_s = std::min(load_s, (now_seconds() - start) / (kRounds * kWords));
        start = now_seconds();
        for (int round = 0; round < kRounds; ++round) {
            std::memcpy(dest, source, sizeof dest);
            asm volatile("" : : "r"(dest) : "memory");
        }
        copy_s = std::min(copy_s, (now_seconds() - start) / (kRounds * sizeof dest));
    }
    return {std::min(store_s, load_s), copy_s};
}

}  // namespace shmem_mt
