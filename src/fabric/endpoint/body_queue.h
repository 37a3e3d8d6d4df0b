// BodyQueue: what a stream sends beside its records, from where it lies: the bodies of kLarge records, and native puts
// and gets.
//
//     sent <= started <= posted      posted - sent <= kMaxBodies
//       |        |          '- by the producer: the body of a record ahead of the record
//       |        '- handed to the transport, in the order of posting
//       '- how many the transport has let go of, or has completed: their number, not which
//
// Threads: the producer posts; the sender, under the channel's lock, starts; any thread asks whether all is sent.
#pragma once

#include "base/invariant.h"
#include "fabric/protocol/record.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::fabric {

struct Body {
    uint64_t position;  // of its record; native: behind the records that must be complete first
    const char* from;   // here; null: a native get
    size_t bytes;
    uint64_t returns = 0;  // native: 1 more than the number of its return; 0: the body of a record
    Address at = {};       // native: there
    char* to = nullptr;    // of a native get: here
};

class BodyQueue {
  public:
    static constexpr uint32_t kMaxBodies = 64;

    BodyQueue() = default;
    ~BodyQueue() { delete[] bodies_; }
    BodyQueue(const BodyQueue&) = delete;
    BodyQueue& operator=(const BodyQueue&) = delete;

    // --- The producer: one thread at a time.

    // Acquire: pairs with BodyQueue::on_sent.
    bool has_space() const {
        return posted_.load(std::memory_order_relaxed) - sent_.load(std::memory_order_acquire) < kMaxBodies;
    }
    // Where has_space.
    void post(const Body& body) {
        HEDDLE_INVARIANT(has_space());
        const uint64_t posted = posted_.load(std::memory_order_relaxed);
        // Bodies of records follow their records: what is started in order is started in theirs.
        HEDDLE_INVARIANT(posted == 0 || body.position >= bodies_[(posted - 1) % kMaxBodies].position);
        if (!bodies_)
            bodies_ = new Body[kMaxBodies];
        bodies_[posted % kMaxBodies] = body;
        posted_.store(posted + 1, std::memory_order_release);  // pairs with BodyQueue::next and BodyQueue::is_sent
    }

    // --- Any thread.

    // The transport has let go of all that was posted so far. Acquire, both: pair with
    // BodyQueue::post and BodyQueue::on_sent.
    bool is_sent() const { return sent_.load(std::memory_order_acquire) == posted_.load(std::memory_order_acquire); }
    // Where a wait for space looks.
    const void* line() const { return &sent_; }

    // --- The sender: under the channel's lock.

    // The oldest that has not been started; null: there is none.
    const Body* next() const {
        const uint64_t posted = posted_.load(std::memory_order_acquire);  // pairs with BodyQueue::post
        HEDDLE_INVARIANT(started_ <= posted && posted - started_ <= kMaxBodies);
        return started_ == posted ? nullptr : &bodies_[started_ % kMaxBodies];
    }
    // Takes what next has returned.
    Body start() {
        HEDDLE_INVARIANT(next() != nullptr);
        return bodies_[started_++ % kMaxBodies];
    }
    void on_sent() {
        HEDDLE_INVARIANT(sent_.load(std::memory_order_relaxed) < started_);
        sent_.fetch_add(1, std::memory_order_release);  // pairs with BodyQueue::has_space and BodyQueue::is_sent
    }

  private:
    Body* bodies_ = nullptr;  // null: nothing was ever posted
    std::atomic<uint64_t> posted_{0};
    // The sender's, read by all.
    std::atomic<uint64_t> sent_{0};
    uint64_t started_ = 0;
};

}  // namespace heddle::fabric
