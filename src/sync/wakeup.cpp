#include "sync/wakeup.h"

#include "base/counters.h"

#include <algorithm>
#include <bit>

namespace heddle::sync {

HEDDLE_PE_LOCAL PeWakeups wakeups;

namespace {

void ring_watchers(const EventCount& event_count) {
    const EventCountName name = wakeups.name_of(event_count);
    const int slots = wakeups.slots_of_a_bit();
    // Relaxed: Watch::Watch sets its bit before its seq_cst increment of `sleepers`, which the caller has seen.
    for (uint64_t bits = event_count.watchers.load(std::memory_order_relaxed); bits != 0; bits &= bits - 1) {
        const int first = std::countr_zero(bits) * slots, end = std::min(first + slots, wakeups.count);
        for (int slot = first; slot < end; ++slot)
            if (wakeups.of[slot].may_watch(name)) {
                base::counters->watch_wake_ups.add();
                wakeups.of[slot].event_count.advance();
            }
    }
}

}  // namespace

void wake_all_of(EventCount& event_count, uint32_t sleepers) {
    if (sleepers % kWatcher != 0) {
        base::counters->wake_ups.add();
        os::futex_wake_all(&event_count.value);
    }
    if (sleepers >= kWatcher)
        ring_watchers(event_count);
}

}  // namespace heddle::sync
