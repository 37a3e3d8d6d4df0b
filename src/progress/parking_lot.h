// Parking lot: where threads of this PE sleep in waits that a store, a message or the end of an operation ends. A
// thread leaves its condition there and sleeps on a word of its own. Whoever may have made conditions true asks them
// for the sleepers, and wakes those whose condition holds, and no others.
//
//     a message was applied      the thread that applied it calls relay
//     an operation has ended     the thread that ended it calls relay
//     work for several threads   the thread that has made it calls call_to_work, which asks no condition
//     a plain store              wakes nobody; the first sleeper asks all conditions after each of its naps
//
// The first sleeper in the list acts for all. It naps while some sleeper waits for a plain store. It makes progress
// where nobody else would (Duty), and then rests at the PE's wake-up (sync/wakeup.h) in place of its own word. A first
// sleeper that leaves wakes the next one, where there is something to take over.
//
// No wake is lost: a thread counts itself, and then asks its own condition; relay is called behind what was stored, and
// then reads the count (tests/model/parking_lot.pml). A thread that lets a duty begin calls `call` behind that
// (tests/model/duty.pml).
//
// A condition is asked by one thread at a time, under the lot's lock, and not again once it has held. It must not poll,
// wait or use the calling thread's own state.
//
// Threads: any. Cost of relay: a locked instruction while nobody sleeps; otherwise a lock, and about 5 ns a sleeper.
#pragma once

#include "sync/event_count.h"

#include <pthread.h>
#include <atomic>
#include <cstdint>
#include <ctime>

namespace heddle::progress {

class ParkingLot {
  public:
    using Condition = bool (*)(void* argument);
    // The progress that the first sleeper has to make: none; when the PE's wake-up advances; after each nap as well.
    enum class Duty { kNone, kDrive, kPoll };
    // Why a thread has left the lot: its condition has held; its end has come; it has moved something.
    enum class Leave { kHeld, kEnd, kMoved };

    // What a sleeper needs of its wait. Relays between park's begin and end call the condition.
    struct Wait {
        Condition condition;
        void* argument;
        bool for_store;     // a plain store may make the condition true
        uint64_t begin_ns;  // of the wait
        uint64_t end_ns;    // the sleeper looks for itself then
        // Any thread asks for the duty, under the lock. The first sleeper makes progress without the lock; true when it
        // has moved something, and is counted among those that poll.
        Duty (*duty)(void* waiter);
        bool (*make_progress)(void* waiter);
        void* waiter;
        sync::EventCount* wakeup;  // of the PE
    };

    ParkingLot() = default;
    ~ParkingLot() { pthread_mutex_destroy(&lock_); }
    ParkingLot(const ParkingLot&) = delete;
    ParkingLot& operator=(const ParkingLot&) = delete;

    // Sleeps until the condition has held, until end_ns, or until this thread has moved something.
    Leave park(const Wait& wait);

    // Wakes the sleepers whose condition holds. For a thread that has stored, or applied, what they may wait for.
    void relay() {
        // A read-modify-write, because those of one word are in one order. This one follows the sleeper's and sees it,
        // or precedes it, and the sleeper's condition sees what was stored. Pairs with ParkingLot::add.
        if (sleepers_.fetch_add(0, std::memory_order_acq_rel) != 0)
            relay_to_sleepers();
    }

    // Wakes the first sleeper if it has a duty, and sleeps without a look at it. For a thread behind what lets a duty
    // begin.
    void call() {
        // As in relay: the sleeper is seen, or sees that its duty has begun. Pairs with ParkingLot::add.
        if (sleepers_.fetch_add(0, std::memory_order_acq_rel) != 0)
            call_sleepers();
    }

    // Wakes so many sleepers at most, each of which makes progress, and leaves if it has moved something. For a thread
    // that has made work for several.
    void call_to_work(uint32_t count) {
        // As in relay, but nothing is lost with a sleeper that is not seen: it has seen the work, or another does it.
        if (sleepers_.load(std::memory_order_relaxed) != 0)
            call_sleepers_to_work(count);
    }

    // The time between two looks of a wait that has lasted so long.
    static uint64_t length_of_nap(uint64_t waited_ns);

  private:
    enum State : uint32_t { kAsleep, kReady, kCalled, kToWork };  // kCalled: to act for all
    struct Sleeper {
        const Wait& wait;
        std::atomic<uint32_t> state{kAsleep};
        bool naps = false;             // its sleep ends after a nap
        bool rests_at_wakeup = false;  // it sleeps at the PE's wake-up
        Sleeper* before = nullptr;
        Sleeper* next = nullptr;
    };

    void add(Sleeper& sleeper);
    void remove(Sleeper& sleeper);
    void settle(Sleeper& sleeper);
    static void wake(Sleeper& sleeper, State state);
    void call_first();
    void call_sleepers();
    void call_sleepers_to_work(uint32_t count);
    void relay_to_sleepers();
    void ask_all(const Sleeper* caller);
    static bool sleep(Sleeper& sleeper);
    static Duty duty_of(const Sleeper& sleeper) { return sleeper.wait.duty(sleeper.wait.waiter); }

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    Sleeper* first_ = nullptr;
    Sleeper* last_ = nullptr;
    uint32_t n_for_store_ = 0;  // sleepers that wait for a plain store
    std::atomic<uint32_t> sleepers_{0};
};

}  // namespace heddle::progress
