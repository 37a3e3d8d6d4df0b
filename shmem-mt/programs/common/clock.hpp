// The clocks of the suite: time in seconds since an arbitrary start, monotonic, good to tens of nanoseconds; and CPU
// time. Times of PEs on different hosts are compared by Session::now.
#pragma once

#include <time.h>

#include <algorithm>

namespace shmem_mt {

inline double seconds_on(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds (not wall-clock time). Cannot fail on any system that has CLOCK_MONOTONIC.
inline double now_seconds() {
    return seconds_on(CLOCK_MONOTONIC);
}

// Seconds that all threads of this process have run so far, the library's own among them.
inline double cpu_seconds() {
    return seconds_on(CLOCK_PROCESS_CPUTIME_ID);
}

// Returns what f() does, and adds the seconds that f() took to `seconds`; null: without a look at the clock.
template <class F>
decltype(auto) clocked(double* seconds, F&& f) {
    struct Stop {
        double* const seconds;
        const double start;
        ~Stop() {
            if (seconds != nullptr)
                *seconds += now_seconds() - start;
        }
    } const stop{seconds, seconds != nullptr ? now_seconds() : 0};
    return f();
}

// Seconds that one look at the clock adds to what is timed: the best of kTries, so that no time slice of others counts.
inline double clock_cost() {
    constexpr int kTries = 20, kLooks = 50;
    double least_s = 1;
    for (int attempt = 0; attempt < kTries; ++attempt) {
        const double start = now_seconds();
        for (int i = 1; i < kLooks; ++i) now_seconds();
        least_s = std::min(least_s, (now_seconds() - start) / kLooks);
    }
    return least_s;
}

}  // namespace shmem_mt
