// Event count: a 32-bit count in shared memory that only advances. Threads of any process wait for it to reach a value
// (D. Reed, R. Kanodia, "Synchronization with eventcounts and sequencers", 1979).
//
// The wake protocol, which tests/model/event_count.pml checks in every interleaving:
//     notifier: value = new (seq_cst)         sleeper:  sleepers += 1 (seq_cst)
//               if sleepers != 0 (seq_cst)              the kernel sleeps only while value == old
//                   wake                                sleepers -= 1
// In the single order of the four seq_cst accesses either the notifier sees the sleeper or the sleeper sees the new
// value. No wake is lost, and a notifier pays for the system call only when some thread sleeps. Cost of advance_to
// without sleepers: one exchange (about 5 ns, docs/decisions/0003) and one load.
#pragma once

#include "base/invariant.h"
#include "os/futex.h"

#include <atomic>
#include <cstdint>

namespace heddle::sync {

struct EventCount;
constexpr uint32_t kWatcher = 1u << 16;  // one watch (sync/wakeup.h), as counted in `sleepers`
// Wakes the threads and the watching PEs that `sleepers`, a value other than 0 of the event count's field, counts.
void wake_all_of(EventCount& event_count, uint32_t sleepers);

// Waiters spin on an event count: it has a cache line of its own, or shares the line with data that waiters read next.
struct alignas(8) EventCount {
    std::atomic<uint32_t> value;
    std::atomic<uint32_t> sleepers;
    std::atomic<uint64_t> watchers;  // the PEs that have ever watched this event count (sync/wakeup.h)

    // True once the count has reached target; counts may wrap. seq_cst here and in `holds`: a watcher loads after its
    // increment of `sleepers`, and the single order must have them in that order. On x86-64 and aarch64 a seq_cst load
    // is the instruction of an acquire load.
    bool reached(uint32_t target) const {
        // Pairs with EventCount::set, EventCount::advance_to and EventCount::advance_silently.
        return static_cast<int32_t>(value.load(std::memory_order_seq_cst) - target) >= 0;
    }

    // True while the count equals target. For counts that do not advance before all waiters have seen them: an old
    // count never equals target by mistake, while `reached` takes a count 2^31 steps old for a future one.
    bool holds(uint32_t target) const {
        // Pairs with EventCount::set, EventCount::advance_to and EventCount::advance_silently.
        return value.load(std::memory_order_seq_cst) == target;
    }

    // advance_to in two halves, set and then wake: a caller does something short between them while the store travels.
    void set(uint32_t new_value) {
        value.store(new_value, std::memory_order_release);  // pairs with EventCount::reached and EventCount::holds
    }
    void wake() {
        // A read-modify-write, because all of `sleepers` are in one order. This one follows the sleeper's increment and
        // sees it, or precedes it, and the sleeper's next load sees what set stored. Pairs with
        // EventCount::sleep_unless and Watch::Watch.
        if (const uint32_t some = sleepers.fetch_add(0, std::memory_order_acq_rel))
            wake_all_of(*this, some);
    }

    void advance_to(uint32_t new_value) {
        // Pairs with EventCount::reached, EventCount::holds and EventCount::sleep_unless.
        value.store(new_value, std::memory_order_seq_cst);
        // Pairs with EventCount::sleep_unless and Watch::Watch.
        if (const uint32_t some = sleepers.load(std::memory_order_seq_cst))
            wake_all_of(*this, some);
    }

    // Advances by one; several threads may call it at once. For event counts that mean "something has changed".
    void advance() {
        advance_silently();
        // Pairs with EventCount::sleep_unless and Watch::Watch.
        if (const uint32_t some = sleepers.load(std::memory_order_seq_cst))
            wake_all_of(*this, some);
    }
    // Advances by one, and wakes nobody: for what threads that are awake, or about to sleep, must not miss.
    void advance_silently() {
        // Pairs with EventCount::reached, EventCount::holds, EventCount::sleep_unless and ParkingLot::sleep.
        value.fetch_add(1, std::memory_order_seq_cst);
    }

    // Sleeps until woken or the deadline (null: none). Returns at once when the count has reached target, or, in
    // sleep_unless_holds, equals it. May return early.
    void sleep(uint32_t target, const timespec* deadline) {
        sleep_unless(deadline, [target](uint32_t now) { return static_cast<int32_t>(now - target) >= 0; });
    }
    void sleep_unless_holds(uint32_t target, const timespec* deadline) {
        sleep_unless(deadline, [target](uint32_t now) { return now == target; });
    }

  private:
    template <class Passed>
    void sleep_unless(const timespec* deadline, Passed passed) {
        // Pairs with EventCount::wake, EventCount::advance_to and EventCount::advance.
        sleepers.fetch_add(1, std::memory_order_seq_cst);
        // Pairs with EventCount::advance_to and EventCount::advance_silently.
        const uint32_t old = value.load(std::memory_order_seq_cst);
        if (!passed(old))
            os::futex_wait(&value, old, deadline);
        // Relaxed: too high a count costs a wake, never loses one.
        [[maybe_unused]] const uint32_t before = sleepers.fetch_sub(1, std::memory_order_relaxed);
        HEDDLE_INVARIANT(before % kWatcher != 0);  // this sleeper was counted
    }
};
static_assert(sizeof(EventCount) == 16);

}  // namespace heddle::sync
