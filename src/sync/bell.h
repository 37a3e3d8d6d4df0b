// Bells: one for each PE of a node, in shared memory. A PE's bell says that something has happened which work of that
// PE may have been waiting for, whatever it was: so a thread that waits for many things looks at one cache line, and
// sleeps on one word, or has the processor watch it.
//
// A gate that such work waits for is watched (Watch): whoever opens it then rings the bells of all PEs of the
// node that watch anything. The order, checked in every interleaving by tests/concurrency/bell.pml:
//     opener:  value = new (seq_cst)                    watcher:  sleepers += kWatcher (seq_cst)
//              if sleepers has watchers (seq_cst)                 seen = bell; the gate is looked at
//                  ring                                           sleeps only while the bell is seen
#pragma once

#include "base/pe_local.h"
#include "sync/gate.h"

#include <atomic>
#include <cstdint>

namespace heddle::sync {

struct alignas(128) Bell {  // zeroed memory is one
    Gate gate;
    std::atomic<uint32_t> watching;  // gates that work of the PE watches
};

struct Bells {
    Bell* of = nullptr;  // by slot
    int count = 0;
    Bell* own = nullptr;
};

extern HEDDLE_PE_LOCAL Bells bells;  // this PE's node's; set by init

// Watches a gate of the node while it lives, so that this PE's bell rings when the gate opens.
class Watch {
  public:
    explicit Watch(Gate& gate) : gate_(bells.own && &gate != &bells.own->gate ? &gate : nullptr), bell_(bells.own) {
        if (!gate_)
            return;
        // Relaxed: ordered by the increment behind it, which is how an opener comes to look at this.
        bell_->watching.fetch_add(1, std::memory_order_relaxed);
        gate_->sleepers.fetch_add(kWatcher, std::memory_order_seq_cst);  // pairs with the load in Gate::open
    }
    ~Watch() {
        if (!gate_)
            return;
        gate_->sleepers.fetch_sub(kWatcher, std::memory_order_relaxed);  // too high a count costs a ring
        bell_->watching.fetch_sub(1, std::memory_order_relaxed);
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

  private:
    Gate* const gate_;
    Bell* const bell_;
};

}  // namespace heddle::sync
