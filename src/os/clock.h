// Clock: time for waits and deadlines. Threads: any.
#pragma once

#include <cstdint>
#include <ctime>

namespace heddle::os {

constexpr uint64_t kMillisecondNs = 1000000;

inline uint64_t clock_ns(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

// CLOCK_MONOTONIC in nanoseconds; about 20 ns through the vDSO.
inline uint64_t now_ns() {
    return clock_ns(CLOCK_MONOTONIC);
}

inline timespec to_timespec(uint64_t ns) {
    return {static_cast<time_t>(ns / 1000000000u), static_cast<long>(ns % 1000000000u)};
}

inline void sleep_ns(uint64_t ns) {
    const timespec duration = to_timespec(ns);
    nanosleep(&duration, nullptr);
}

}  // namespace heddle::os
