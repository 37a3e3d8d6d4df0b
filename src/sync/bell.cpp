#include "sync/bell.h"

#include <algorithm>
#include <bit>

namespace heddle::sync {

HEDDLE_PE_LOCAL Bells bells;

namespace {

void ring_watchers(const Gate& gate) {
    const GateName name = bells.name_of(gate);
    const int slots = bells.slots_of_a_bit();
    // Relaxed: see Watch.
    for (uint64_t bits = gate.watchers.load(std::memory_order_relaxed); bits != 0; bits &= bits - 1) {
        const int first = std::countr_zero(bits) * slots, end = std::min(first + slots, bells.count);
        for (int slot = first; slot < end; ++slot)
            if (bells.of[slot].may_watch(name))
                bells.of[slot].gate.advance();
    }
}

}  // namespace

void wake_all_of(Gate& gate, uint32_t sleepers) {
    if (sleepers % kWatcher != 0)
        os::futex_wake_all(&gate.value);
    if (sleepers >= kWatcher)
        ring_watchers(gate);
}

}  // namespace heddle::sync
