// What a thread adds to its counts, which another one may read. Relaxed, all: a count orders nothing.
#pragma once

#include "operations/observer.h"
#include "profiling/counts.h"

#include <algorithm>
#include <array>
#include <bit>

namespace heddle::profiling {

inline void bump(uint64_t& count, uint64_t by = 1) {
    __atomic_store_n(&count, count + by, __ATOMIC_RELAXED);
}
inline void set_bit(uint64_t& bits, int bit) {
    __atomic_store_n(&bits, bits | uint64_t{1} << bit, __ATOMIC_RELAXED);
}
inline void raise(uint64_t& most, uint64_t value) {
    if (value > most)
        __atomic_store_n(&most, value, __ATOMIC_RELAXED);
}
template <class Words>
Words read(const Words& from) {
    static_assert(sizeof(Words) % sizeof(uint64_t) == 0);
    Words words;
    for (size_t i = 0; i < sizeof words / sizeof(uint64_t); ++i)
        reinterpret_cast<uint64_t*>(&words)[i] =
            __atomic_load_n(reinterpret_cast<const uint64_t*>(&from) + i, __ATOMIC_RELAXED);
    return words;
}

inline size_t size_class(uint64_t bytes) {
    const int bits = bytes <= 8 ? 0 : static_cast<int>(std::bit_width(bytes - 1)) - 3;
    return std::min<size_t>((static_cast<size_t>(bits) + 2) / 3, kSizes - 1);
}

constexpr uint64_t kFirstTimed = 64, kLongBytes = 32768;

// One in so many short calls is timed, behind the first ones.
inline uint64_t period(uint64_t calls) {
    return calls < 1024 ? 16 : 256;
}
enum class Timing { kNone, kSample, kExact };
inline Timing timing_of(const Counts& counts, uint64_t bytes) {
    if (bytes >= kLongBytes || counts.calls <= kFirstTimed)
        return Timing::kExact;
    return counts.calls % period(counts.calls) == 0 ? Timing::kSample : Timing::kNone;
}

// Adds what a run has counted to the counts of its place, and to the pairs of its thread. Of another thread: what it
// has counted so far.
void add_run(const operations::ObservedRun& run, Counts& counts, std::array<Pair, kGroups>& pairs);
// The operation is one that loads and stores complete at once, on a context that numbers PEs as the world does.
bool may_be_run(const operations::Operation& operation);

}  // namespace heddle::profiling
