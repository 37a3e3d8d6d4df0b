// Event count: a 32-bit count in shared memory that moves forward, and threads of any process waiting for it to do so.
//
// The wake protocol, which tests/concurrency/event_count.pml checks in every interleaving:
//     opener:  value = new (seq_cst)          sleeper:  sleepers += 1 (seq_cst)
//              if sleepers != 0 (seq_cst)               the kernel sleeps only while value == old
//                  wake                                 sleepers -= 1
// In the single order of the four seq_cst accesses either the opener sees the sleeper or the sleeper sees the new
// value, so no wake is lost; and an opener pays for the system call only when somebody sleeps. Cost of open without
// sleepers: one exchange (about 5 ns) and one load.
#pragma once

#include "os/futex.h"

#include <atomic>
#include <cstdint>

namespace heddle::sync {

struct EventCount;
constexpr uint32_t kWatcher = 1u << 16;  // in `sleepers`, one that is told by a wake-up (sync/wakeup.h)
// Wakes those that `sleepers`, which is not 0, counts.
void wake_all_of(EventCount& event_count, uint32_t sleepers);

// Waiters spin on it: whoever holds one gives it a cache line of its own, or shares the line with what waiters read
// next.
struct alignas(8) EventCount {
    std::atomic<uint32_t> value;
    std::atomic<uint32_t> sleepers;
    std::atomic<uint64_t> watchers;  // the PEs that have watched it: see sync/wakeup.h

    // True once the count has reached target; counts may wrap. seq_cst, here and in holds: a watcher that has counted
    // itself looks with these, and in the single order that load comes behind its increment. On x86-64 and aarch64 it
    // is the instruction of an acquire load.
    bool reached(uint32_t target) const {
        return static_cast<int32_t>(value.load(std::memory_order_seq_cst) - target) >= 0;  // pairs with advance_to
    }

    // True while the count is target: for a count that stands there until all who wait for it have seen it. A count
    // from any time ago is another one, while reached takes one of 2^31 steps ago for one that is still to come.
    bool holds(uint32_t target) const {
        return value.load(std::memory_order_seq_cst) == target;  // pairs with advance_to
    }

    // open in two halves, for a caller with something to do in between that takes less than a sleeper minds: the store
    // is on its way meanwhile. wake must follow.
    void set(uint32_t new_value) {
        value.store(new_value, std::memory_order_release);  // pairs with reached
    }
    void wake() {
        // A read-modify-write, because those of one word have one order: this comes after the increment in sleep, and
        // sees it; or before it, and then the load behind that increment sees what set stored.
        if (const uint32_t some = sleepers.fetch_add(0, std::memory_order_acq_rel))
            wake_all_of(*this, some);
    }

    void advance_to(uint32_t new_value) {
        value.store(new_value, std::memory_order_seq_cst);                   // pairs with reached and sleep
        if (const uint32_t some = sleepers.load(std::memory_order_seq_cst))  // pairs with the increment in sleep
            wake_all_of(*this, some);
    }

    // open to one more than before, by any of several threads: for an event count that says "look again".
    void advance() {
        value.fetch_add(1, std::memory_order_seq_cst);                       // as open's store
        if (const uint32_t some = sleepers.load(std::memory_order_seq_cst))  // pairs with the increment in sleep
            wake_all_of(*this, some);
    }

    // Sleeps until woken or the deadline (null: none); returns at once when target is reached, or when the count holds
    // it. May return early.
    void sleep(uint32_t target, const timespec* deadline) {
        sleep_unless(deadline, [target](uint32_t now) { return static_cast<int32_t>(now - target) >= 0; });
    }
    void sleep_unless_holds(uint32_t target, const timespec* deadline) {
        sleep_unless(deadline, [target](uint32_t now) { return now == target; });
    }

  private:
    template <class Passed>
    void sleep_unless(const timespec* deadline, Passed passed) {
        sleepers.fetch_add(1, std::memory_order_seq_cst);            // pairs with the load in advance_to
        const uint32_t old = value.load(std::memory_order_seq_cst);  // pairs with the store in advance_to
        if (!passed(old))
            os::futex_wait(&value, old, deadline);
        sleepers.fetch_sub(1, std::memory_order_relaxed);  // too high a count costs a wake, never loses one
    }
};
static_assert(sizeof(EventCount) == 16);

}  // namespace heddle::sync
