// Ticks: the counter in which monitor instructions take their limits, the time stamp counter of x86-64 and the virtual
// counter of aarch64. Its rate is constant on every CPU that has these instructions. Threads: any.
#pragma once

#include <cstdint>

namespace heddle::os {

inline uint64_t ticks_now() {
#if defined(__x86_64__)
    uint32_t low, high;
    asm volatile("rdtsc" : "=a"(low), "=d"(high));
    return static_cast<uint64_t>(high) << 32 | low;
#elif defined(__aarch64__)
    uint64_t count;
    asm volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#endif
}

// Both clocks at the same time, as nearly as a thread can tell: ticks, and CLOCK_MONOTONIC.
struct Instant {
    uint64_t ticks = 0, ns = 0;
};
Instant both_clocks();

// The counter's rate. aarch64 has a register for it. On x86-64 it is measured against CLOCK_MONOTONIC in 0.2 ms, with
// an error below 1 %: CPUID's answer depends on the hypervisor.
uint64_t measure_ticks_per_ms();

// Ticks of a time, at most those of 1000 s: a longer wait may wake early.
uint64_t ticks_of_ns(uint64_t ns, uint64_t ticks_per_ms);
uint64_t ns_of_ticks(uint32_t ticks, uint64_t ticks_per_ms);

// now + ticks, or the largest value.
uint64_t deadline_after(uint64_t now, uint64_t ticks);

}  // namespace heddle::os
