// Wake-ups: one for each PE of a node, in shared memory. A PE's wake-up is an event count that advances whenever
// something has happened that work of that PE may be waiting for. A thread that waits for many things therefore reads
// one cache line, and sleeps on one word or has the processor watch it.
//
// Work that waits for an event count watches it (class Watch). A thread that advances a watched event count notifies
// the wake-ups of the PEs that watch it, and no others. The event count knows which PEs have ever watched it:
// `watchers` has a bit for each PE, or for a few neighbouring PEs where a node has more than 64. Each wake-up knows
// which event counts its PE watches now. The order of the steps, checked in every interleaving by
// tests/model/watch.pml (which PEs are found) and wakeup.pml (what happens then):
//
//     notifier                                          watcher
//     value = new (seq_cst)                             wakeup.watched += event count;  watchers |= PE
//     if sleepers counts watchers (seq_cst)             sleepers += kWatcher (seq_cst)
//         for the PEs of `watchers` whose               seen = wakeup; check the event count (seq_cst)
//         wakeup.watched names the event count          sleep only while the wake-up equals `seen`
//             advance their wake-up
//
// Cost of advancing a watched event count: a read of the wake-up of each PE in `watchers`, and one system call for each
// PE that sleeps.
#pragma once

#include "base/invariant.h"
#include "base/pe_local.h"
#include "sync/event_count.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::sync {

// The name of an event count, alike in every process of its node: its distance from the first wake-up. An event count
// in private memory has a name, too, but no other process looks for that name.
using EventCountName = uint64_t;

struct alignas(128) PeWakeup {  // zeroed memory is a wake-up that watches nothing
    static constexpr int kPlaces = 14;
    static constexpr uint64_t kOneWatch = uint64_t{1} << 48;     // added for each watch, above the sum of names
    static constexpr uint64_t kNames = (uint64_t{1} << 36) - 1;  // 4096 names can be added up below kOneWatch

    EventCount event_count;
    // The event counts that work of the PE watches. Each place is the sum, over its watches, of kOneWatch and the event
    // count's name. One watch in a place is known exactly. Several watches in one place, which is rare, count as
    // watches of any event count.
    std::atomic<uint64_t> watched[kPlaces];

    std::atomic<uint64_t>& place_of(EventCountName name) {
        return watched[(name * 0x9e3779b97f4a7c15 >> 32) % kPlaces];
    }
    bool may_watch(EventCountName name) {
        // Relaxed: ordered by the count in the event count's `sleepers`, which the notifier has read before.
        const uint64_t sum = place_of(name).load(std::memory_order_relaxed);
        return sum == kOneWatch + name || sum >= 2 * kOneWatch;
    }
};
static_assert(sizeof(PeWakeup) == 128);

struct PeWakeups {
    PeWakeup* of = nullptr;  // by slot
    int count = 0;
    PeWakeup* own = nullptr;

    EventCountName name_of(const EventCount& event_count) const {
        return (reinterpret_cast<uintptr_t>(&event_count) - reinterpret_cast<uintptr_t>(of)) / alignof(EventCount) &
               PeWakeup::kNames;
    }
    // Neighbouring slots share a bit of EventCount::watchers where a node has more than 64 PEs.
    int slots_of_a_bit() const { return (count + 63) / 64; }
    uint64_t own_bit() const {
        HEDDLE_INVARIANT(own >= of && own - of < count);
        return uint64_t{1} << (own - of) / slots_of_a_bit();
    }
};

extern HEDDLE_PE_LOCAL PeWakeups wakeups;  // of this PE's node; set by init

// Watches an event count of the node while the Watch lives: this PE's wake-up advances whenever the event count does.
class Watch {
  public:
    explicit Watch(EventCount& event_count)
        : event_count_(wakeups.own && &event_count != &wakeups.own->event_count ? &event_count : nullptr) {
        if (!event_count_)
            return;
        const EventCountName name = wakeups.name_of(event_count);
        place_ = &wakeups.own->place_of(name);
        watch_ = PeWakeup::kOneWatch + name;
        // Relaxed, both: ordered by the increment below, which a notifier reads before it reads these. The bit stays
        // set: the same few PEs watch an event count again and again.
        place_->fetch_add(watch_, std::memory_order_relaxed);
        if (const uint64_t bit = wakeups.own_bit(); !(event_count_->watchers.load(std::memory_order_relaxed) & bit))
            event_count_->watchers.fetch_or(bit, std::memory_order_relaxed);
        // Pairs with EventCount::wake, EventCount::advance_to and EventCount::advance.
        event_count_->sleepers.fetch_add(kWatcher, std::memory_order_seq_cst);
    }
    ~Watch() {
        if (!event_count_)
            return;
        // Relaxed: too high a count costs a look.
        [[maybe_unused]] const uint32_t sleepers =
            event_count_->sleepers.fetch_sub(kWatcher, std::memory_order_relaxed);
        [[maybe_unused]] const uint64_t sum = place_->fetch_sub(watch_, std::memory_order_relaxed);
        HEDDLE_INVARIANT(sleepers >= kWatcher && sum >= watch_);  // this watch was counted, and its place has its name
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

  private:
    EventCount* const event_count_;
    std::atomic<uint64_t>* place_ = nullptr;  // in this PE's wake-up
    uint64_t watch_ = 0;                      // the sum that this watch has added to its place
};

}  // namespace heddle::sync
