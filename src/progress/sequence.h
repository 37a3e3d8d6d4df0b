// Sequence: operations that are carried out in the order in which they were posted: the non-blocking collectives of one
// instance of a team. Any thread that makes progress carries them out, on the sequence's fiber, as if they blocked.
//
//     post    appends an operation to the queue, and drives the sequence
//     drive   resumes the fiber while its operation can continue; one thread at a time, other threads return at once
//
// No event is missed. An event that an operation may wait for advances the PE's wake-up (sync/wakeup.h). A thread that
// drives (Engine::drive) checks afterwards whether the wake-up has advanced, and then drives again. So it sees the
// event for which another thread, turned away, came (tests/model/wakeup.pml checks every interleaving).
//
// Threads: any thread drives; one at a time posts, as the specification asks of a team's collectives. No lock. Memory
// grows with the most operations that were outstanding at once.
#pragma once

#include "base/tsan.h"
#include "progress/fiber.h"
#include "progress/inline_payload.h"
#include "sync/pool.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::progress {

class Engine;

class Sequence {
  public:
    static constexpr size_t kPayloadBytes = 144;
    using Run = void (*)(const void* payload);

    explicit Sequence(Engine& engine);
    Sequence(const Sequence&) = delete;
    Sequence& operator=(const Sequence&) = delete;

    // By what thread an operation begins. kByPoster: its poster carries it out up to its first wait. kLater: the next
    // thread that drives the sequence does.
    enum class Begin { kByPoster, kInBackground, kLater };

    // Posts a copy of work, which runs after all operations posted before, with the calling thread's modes of
    // arithmetic. Messages name `caller` as the place of the call. False when there is no memory.
    template <class Work>
    bool post(const Work& work, const void* caller = nullptr, Begin how = Begin::kByPoster) {
        Operation* const operation = pool_.take();
        if (!operation)
            return false;
        operation->run = [](const void* payload) { (*static_cast<const Work*>(payload))(); };
        operation->payload.hold(work);
        operation->caller = caller;
        begin(operation, how);
        return true;
    }

    // Acquire: pairs with Sequence::carry_on; a caller that finds the sequence empty sees what the operations did.
    bool is_empty() const { return done_.load(std::memory_order_acquire) == posted_.load(std::memory_order_relaxed); }
    uint32_t under_way() const {
        return posted_.load(std::memory_order_relaxed) - done_.load(std::memory_order_relaxed);
    }
    // Returns when the sequence is empty, or when an operation of this sequence is the caller.
    void wait(const char* function) {
        if (!is_empty() && Fiber::current() != &fiber_)
            wait_until_empty(function);
        tsan::acquire(this);
    }

    // Resumes the fiber while its operation can continue; true when something was resumed. For Engine::drive.
    bool drive();

    // The step of a collective in which the current operation waits; 0: none. Any thread.
    uint64_t step() const { return fiber_.step(); }

    Sequence* next_of_engine = nullptr;

  private:
    struct Operation {
        sync::PoolLink link;
        std::atomic<Operation*> behind{nullptr};
        Run run = nullptr;
        uint64_t modes = 0;  // of arithmetic: those of the poster
        const void* caller = nullptr;
        InlinePayload<kPayloadBytes> payload;
    };

    void begin(Operation* operation, Begin how);
    void wait_until_empty(const char* function);
    bool carry_on();
    static void run(const Operation* operation);

    Engine& engine_;
    sync::Pool<Operation, 8> pool_;
    Operation* last_;  // the last operation of the queue; the poster's
    std::atomic<uint32_t> posted_{0};
    alignas(64) std::atomic<bool> driven_{false};
    std::atomic<uint32_t> done_{0};
    // The driver's: the last finished operation, whose `behind` is the next operation, and the fiber that runs that
    // one.
    Operation* over_;
    Fiber fiber_;
};

}  // namespace heddle::progress
