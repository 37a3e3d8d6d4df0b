// Event count: a 32-bit count in shared memory that only advances, and threads of any process that wait for it to reach
// a value (D. Reed, R. Kanodia, "Synchronization with eventcounts and sequencers", 1979).
//
// The wake protocol, which tests/concurrency/event_count.pml checks in every interleaving:
//     notifier: value = new (seq_cst)         sleeper:  sleepers += 1 (seq_cst)
//               if sleepers != 0 (seq_cst)              the kernel sleeps only while value == old
//                   wake                                sleepers -= 1
// In the single order of the four seq_cst accesses either the notifier sees the sleeper or the sleeper sees the new
// value. No wake is lost, and a notifier pays for the system call only when some thread sleeps. Cost of advance_to
// without sleepers: one exchange (about 5 ns) and one load.
#pragma once

#include "base/invariant.h"
#include "os/futex.h"

#include <atomic>
#include <cstdint>

namespace heddle::sync {

struct EventCount;
constexpr uint32_t kWatcher = 1u << 16;  // in `sleepers`, one watch (sync/wakeup.h)
// Wakes those that `sleepers`, which is not 0, counts.
void wake_all_of(EventCount& event_count, uint32_t sleepers);

// Waiters spin on it: its owner gives it a cache line of its own, or shares the line with data that waiters read next.
struct alignas(8) EventCount {
    std::atomic<uint32_t> value;
    std::atomic<uint32_t> sleepers;
    std::atomic<uint64_t> watchers;  // the PEs that have ever watched it (sync/wakeup.h)

    // True once the count has reached target; counts may wrap. The loads of `reached` and `holds` are seq_cst because a
    // watcher calls them after its increment of `sleepers`, and the single order must have them in that order. On
    // x86-64 and aarch64 a seq_cst load is the instruction of an acquire load.
    bool reached(uint32_t target) const {
        return static_cast<int32_t>(value.load(std::memory_order_seq_cst) - target) >= 0;  // pairs with advance_to
    }

    // True while the count equals target: for counts that do not advance before all waiters have seen them. An old
    // count never equals target by mistake, while `reached` takes a count of 2^31 steps ago for one that is still to
    // come.
    bool holds(uint32_t target) const {
        return value.load(std::memory_order_seq_cst) == target;  // pairs with advance_to
    }

    // advance_to in two halves: a caller that has something short to do puts it between set and wake, while the store
    // travels. wake must follow set.
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

    // Advances by one; any of several threads may call it. For event counts that mean "something has changed".
    void advance() {
        value.fetch_add(1, std::memory_order_seq_cst);                       // as the store of advance_to
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
        // Relaxed: too high a count costs a wake, never loses one.
        [[maybe_unused]] const uint32_t before = sleepers.fetch_sub(1, std::memory_order_relaxed);
        HEDDLE_INVARIANT(before % kWatcher != 0);  // this sleeper was counted
    }
};
static_assert(sizeof(EventCount) == 16);

}  // namespace heddle::sync
