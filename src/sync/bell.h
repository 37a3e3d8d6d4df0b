// Bells: one for each PE of a node, in shared memory. A PE's bell says that something has happened which work of that
// PE may have been waiting for, whatever it was: so a thread that waits for many things looks at one cache line, and
// sleeps on one word, or has the processor watch it.
//
// A gate that such work waits for is watched (Watch): whoever opens it then rings the bells of the PEs that watch it,
// and of no others. The gate knows which PEs ever have (`watchers`: a bit for each, or for a few neighbours where there
// are more than 64), and each bell which gates its PE watches now. The order, checked in every interleaving by
// tests/concurrency/watch.pml (who is found) and bell.pml (what then happens):
//     opener:  value = new (seq_cst)                    watcher:  bell.watched += gate;  gate.watchers |= PE
//              if sleepers has watchers (seq_cst)                 sleepers += kWatcher (seq_cst)
//                  ring those of gate.watchers                    seen = bell; the gate is looked at (seq_cst)
//                  whose bell.watched has the gate                sleeps only while the bell is seen
// Cost of opening a watched gate: a look at the bell of each PE of `watchers`, a system call for each that sleeps.
#pragma once

#include "base/pe_local.h"
#include "sync/gate.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::sync {

// What a gate is called in every process of its node: its place in the shared memory, from the bells on. Gates of a
// process's own have names, too; nobody else looks for them.
using GateName = uint64_t;

struct alignas(128) Bell {  // zeroed memory is one
    static constexpr int kPlaces = 14;
    static constexpr uint64_t kOneWatch = uint64_t{1} << 48;     // beside the name of a gate
    static constexpr uint64_t kNames = (uint64_t{1} << 36) - 1;  // 4096 of them can be added up below kOneWatch

    Gate gate;
    // What work of the PE watches: each place the sum, over its watches, of kOneWatch and the gate's name. So one watch
    // is known exactly; several in one place, which is rare, are all taken for the gate that is asked about.
    std::atomic<uint64_t> watched[kPlaces];

    std::atomic<uint64_t>& place_of(GateName name) { return watched[(name * 0x9e3779b97f4a7c15 >> 32) % kPlaces]; }
    bool may_watch(GateName name) {
        // Relaxed: ordered by the count in the gate's `sleepers`, which is how an opener comes to look at this.
        const uint64_t sum = place_of(name).load(std::memory_order_relaxed);
        return sum == kOneWatch + name || sum >= 2 * kOneWatch;
    }
};
static_assert(sizeof(Bell) == 128);

struct Bells {
    Bell* of = nullptr;  // by slot
    int count = 0;
    Bell* own = nullptr;

    GateName name_of(const Gate& gate) const {
        return (reinterpret_cast<uintptr_t>(&gate) - reinterpret_cast<uintptr_t>(of)) / alignof(Gate) & Bell::kNames;
    }
    // Neighbouring slots share a bit of Gate::watchers.
    int slots_of_a_bit() const { return (count + 63) / 64; }
    uint64_t own_bit() const { return uint64_t{1} << (own - of) / slots_of_a_bit(); }
};

extern HEDDLE_PE_LOCAL Bells bells;  // this PE's node's; set by init

// Watches a gate of the node while it lives, so that this PE's bell rings when the gate opens.
class Watch {
  public:
    explicit Watch(Gate& gate) : gate_(bells.own && &gate != &bells.own->gate ? &gate : nullptr) {
        if (!gate_)
            return;
        const GateName name = bells.name_of(gate);
        place_ = &bells.own->place_of(name);
        watch_ = Bell::kOneWatch + name;
        // Relaxed, both: ordered by the increment behind them, which is how an opener comes to look at these. The bit
        // stays: a gate is watched by the same few PEs again and again.
        place_->fetch_add(watch_, std::memory_order_relaxed);
        if (const uint64_t bit = bells.own_bit(); !(gate_->watchers.load(std::memory_order_relaxed) & bit))
            gate_->watchers.fetch_or(bit, std::memory_order_relaxed);
        gate_->sleepers.fetch_add(kWatcher, std::memory_order_seq_cst);  // pairs with the load in Gate::open
    }
    ~Watch() {
        if (!gate_)
            return;
        gate_->sleepers.fetch_sub(kWatcher, std::memory_order_relaxed);  // too high a count costs a look
        place_->fetch_sub(watch_, std::memory_order_relaxed);
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

  private:
    Gate* const gate_;
    std::atomic<uint64_t>* place_ = nullptr;  // in this PE's bell
    uint64_t watch_ = 0;                      // what it has added there
};

}  // namespace heddle::sync
