// Sequence: operations that are posted in an order and carried out in that order, by whoever makes progress: the
// non-blocking collectives of one team. Each runs on the sequence's fiber as if it blocked.
//
//     post    the operation stands in the queue, and is begun, as far as it gets
//     drive   the fiber is resumed while what it waits for is there; one thread at a time, others go away
//
// Nothing is missed: an event that work may wait for rings the PE's wake-up (sync/wakeup.h), and who drives
// (Engine::drive) looks, when it has let go, whether the wake-up has rung meanwhile; so it sees what another thread,
// turned away, came for (tests/concurrency/wakeup.pml: every interleaving).
//
// Threads: any drives; posts one at a time (as the specification has it for the collectives of a team). No lock. Memory
// grows with the most that were under way at once.
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

    // work(), which is copied, will be carried out behind what was posted before, in the modes of arithmetic that this
    // thread has now; messages say that it was posted at `caller`. False when there is no memory.
    template <class Work>
    bool post(const Work& work, const void* caller = nullptr) {
        Operation* const operation = pool_.take();
        if (!operation)
            return false;
        operation->run = [](const void* payload) { (*static_cast<const Work*>(payload))(); };
        operation->payload.hold(work);
        operation->caller = caller;
        begin(operation);
        return true;
    }

    // Acquire: pairs with the end of an operation; what they did is seen.
    bool is_empty() const { return done_.load(std::memory_order_acquire) == posted_.load(std::memory_order_relaxed); }
    uint32_t under_way() const {
        return posted_.load(std::memory_order_relaxed) - done_.load(std::memory_order_relaxed);
    }
    // Returns when it is empty, or when this is asked by an operation of its own.
    void wait(const char* function) {
        if (!is_empty() && Fiber::current() != &fiber_)
            wait_until_empty(function);
        tsan::acquire(this);
    }

    // Carries on what can go on; true when something did. For Engine::drive.
    bool drive();

    // The step of a collective that its operation waits in; 0: none. Any thread.
    uint64_t step() const { return fiber_.step(); }

    Sequence* next_of_engine = nullptr;

  private:
    struct Operation {
        sync::PoolLink link;
        std::atomic<Operation*> behind{nullptr};
        Run run = nullptr;
        uint64_t modes = 0;  // of arithmetic: the poster's
        const void* caller = nullptr;
        InlinePayload<kPayloadBytes> payload;
    };

    void begin(Operation* operation);
    void wait_until_empty(const char* function);
    bool carry_on();
    static void run(const Operation* operation);

    Engine& engine_;
    sync::Pool<Operation, 8> pool_;
    Operation* last_;  // of who posts
    std::atomic<uint32_t> posted_{0};
    alignas(64) std::atomic<bool> driven_{false};
    std::atomic<uint32_t> done_{0};
    // Of who drives: the operation that is over, behind which the next one stands; and what runs it.
    Operation* over_;
    Fiber fiber_;
};

}  // namespace heddle::progress
