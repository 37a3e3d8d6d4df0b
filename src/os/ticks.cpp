#include "os/ticks.h"

#include "os/clock.h"

#include <algorithm>

namespace heddle::os {

namespace {

constexpr uint64_t kLongestNs = 1000ull * 1000 * kMillisecondNs;
// Ticks a millisecond. Time stamp counters run at 0.8 to 6 GHz, virtual counters at 1 MHz to 1 GHz. A result outside
// was measured while a virtual machine migrated.
constexpr uint64_t kSlowest = 1000, kFastest = 10000000;
static_assert(kLongestNs <= UINT64_MAX / kFastest, "the product in ticks_of_ns does not overflow");

}  // namespace

// The closest of several readings, because an interrupt may come between the two.
Instant both_clocks() {
    Instant best = {};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 8; ++i) {
        const uint64_t before = ticks_now(), ns = now_ns(), between = ticks_now() - before;
        if (between < least) {
            least = between;
            best = {before + between / 2, ns};
        }
    }
    return best;
}

uint64_t measure_ticks_per_ms() {
#if defined(__x86_64__)
    constexpr uint64_t kMeasureNs = 200000;
    const Instant begin = both_clocks();
    Instant end = begin;
    while (end.ns - begin.ns < kMeasureNs) end = both_clocks();
    const uint64_t rate = (end.ticks - begin.ticks) * kMillisecondNs / (end.ns - begin.ns);
#elif defined(__aarch64__)
    uint64_t hertz;
    asm volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
    const uint64_t rate = hertz / 1000;
#endif
    return std::clamp(rate, kSlowest, kFastest);
}

uint64_t ticks_of_ns(uint64_t ns, uint64_t ticks_per_ms) {
    return std::min(ns, kLongestNs) * ticks_per_ms / kMillisecondNs;
}

uint64_t ns_of_ticks(uint32_t ticks, uint64_t ticks_per_ms) {
    return ticks * kMillisecondNs / ticks_per_ms;
}

uint64_t deadline_after(uint64_t now, uint64_t ticks) {
    return ticks > UINT64_MAX - now ? UINT64_MAX : now + ticks;
}

}  // namespace heddle::os
