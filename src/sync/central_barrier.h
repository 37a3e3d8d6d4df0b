// Central barrier: n parties of any process wait for each other, again and again. The last party to arrive releases
// all; each party runs once per barrier. Zeroed memory is a barrier at which nobody has arrived.
#pragma once

#include "base/invariant.h"
#include "sync/event_count.h"

#include <atomic>
#include <cstdint>

namespace heddle::sync {

struct CentralBarrier {
    alignas(128) std::atomic<uint32_t> arrived;  // 128: no prefetcher joins this line with that of `released`
    alignas(128) EventCount released;            // reaches `count` when all parties have arrived for the count-th time

    // Arrives as one of n parties for the count-th time (1, 2, ...). The caller then waits for `released` to reach
    // count. What a party wrote before it arrived is seen by every party that has waited.
    void arrive(uint32_t n, uint32_t count) {
        arrive_and(n, count, [] {});
    }

    // arrive, but the last to come does the work before it lets the others go: true for that one.
    template <class Work>
    bool arrive_and(uint32_t n, uint32_t count, Work work) {
        // acq_rel: the last party sees what all others wrote before, and passes it on through `released`.
        const uint32_t here = arrived.fetch_add(1, std::memory_order_acq_rel) + 1;
        HEDDLE_INVARIANT(here <= n);  // nobody arrives twice before all are let go
        if (here != n)
            return false;
        HEDDLE_INVARIANT(!released.holds(count));  // a barrier is passed once
        work();
        arrived.store(0, std::memory_order_relaxed);  // nobody arrives again before `released` advances
        released.advance_to(count);
        return true;
    }
};

}  // namespace heddle::sync
