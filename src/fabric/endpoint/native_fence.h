// NativeFence: what of a stream waits behind native puts. A native put has no place among the records, so the target's
// order does not cover it: a fence behind one holds back what follows, until the put has returned.
//
//     hold_at       records from this position on are held, as are native puts and gets with later numbers
//     hold_until    until so many returns are done
//     last_put      the number behind the last native put; hold_until <= last_put
//
// One fence is held for. A second one behind more native puts waits for the first. What is before the fence never waits
// for what is held, so that neither stands for ever.
//
// Threads: the producer fences; the sender, under the channel's lock, asks what is held.
#pragma once

#include "base/invariant.h"
#include "fabric/endpoint/return_ring.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace heddle::fabric {

class NativeFence {
  public:
    explicit NativeFence(const ReturnRing& returns) : returns_(returns) {}
    NativeFence(const NativeFence&) = delete;
    NativeFence& operator=(const NativeFence&) = delete;

    // --- The producer: one thread at a time.

    // A native put has been posted, behind which so many returns were taken.
    void on_put(uint64_t returns) {
        HEDDLE_INVARIANT(returns > last_put_);  // returns are numbered in the order of posting
        last_put_ = returns;
    }
    // All native puts have returned: a fence has nothing to hold back.
    bool is_clear() const { return returns_.has_returned(last_put_); }
    // So many returns are done when all native puts are.
    uint64_t last_put() const { return last_put_; }
    // A fence for the native puts of now is held already.
    bool is_held() const { return hold_until_.load(std::memory_order_relaxed) == last_put_; }
    // So many returns must be done before another fence can be held.
    uint64_t held_until() const { return hold_until_.load(std::memory_order_relaxed); }
    // What is published from the position on is held until all native puts of now have returned.
    void hold(uint64_t position) {
        HEDDLE_INVARIANT(returns_.has_returned(held_until()));                   // one fence at a time
        HEDDLE_INVARIANT(position >= hold_at_.load(std::memory_order_relaxed));  // fences follow each other
        HEDDLE_INVARIANT(last_put_ >= held_until());
        hold_at_.store(position, std::memory_order_relaxed);
        hold_until_.store(last_put_, std::memory_order_release);  // pairs with NativeFence::is_holding
    }

    // --- The sender: under the channel's lock.

    // Acquire: pairs with NativeFence::hold.
    bool is_holding() const { return !returns_.has_returned(hold_until_.load(std::memory_order_acquire)); }
    // Where is_holding: of the records before the position, those that may leave.
    uint64_t limit(uint64_t position) const { return std::min(position, hold_at_.load(std::memory_order_relaxed)); }
    // Whether the native put or get behind which so many returns were taken may leave.
    bool lets_pass(uint64_t returns) const {
        return !is_holding() || returns <= hold_until_.load(std::memory_order_relaxed);
    }

  private:
    const ReturnRing& returns_;
    uint64_t last_put_ = 0;  // the producer's
    std::atomic<uint64_t> hold_at_{0};
    std::atomic<uint64_t> hold_until_{0};
};

}  // namespace heddle::fabric
