// The one clock of the suite: seconds since an arbitrary start, monotonic, good to tens of nanoseconds.
// Stamps of different PEs may be compared only when both run on one host (see Job::one_host).
#pragma once

#include <time.h>

namespace shmem_mt {

// Seconds (not wall-clock time). Cannot fail on any system that has CLOCK_MONOTONIC.
inline double now_seconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds that one look at the clock adds to what is timed.
inline double clock_cost() {
    constexpr int kLooks = 1000;
    const double start = now_seconds();
    for (int i = 1; i < kLooks; ++i) now_seconds();
    return (now_seconds() - start) / kLooks;
}

}  // namespace shmem_mt
