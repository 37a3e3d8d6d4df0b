// Parking lot: where threads of this PE sleep in waits that a plain store or a message ends. A thread leaves its
// condition there and sleeps on a word of its own. Whoever may have made conditions true asks them for the sleepers,
// and wakes those whose condition holds, and no others.
//
//     a message was applied      the thread that applied it calls relay
//     a plain store              wakes nobody; one sleeper, the napper, asks all conditions after each nap
//
// The napper is the thread that parked last: its naps are the shortest. The others sleep without a timer of their own
// until their next look. A napper that leaves wakes the next one.
//
// No wake is lost: a thread counts itself, and then asks its own condition; relay is called behind what was stored, and
// then reads the count (tests/model/parking_lot.pml).
//
// A condition is asked by one thread at a time, under the lot's lock, and not again once it has held. It must not poll,
// wait or use the calling thread's own state.
//
// Threads: any. Cost of relay: a locked instruction while nobody sleeps; otherwise a lock, and about 5 ns a sleeper.
#pragma once

#include <pthread.h>
#include <atomic>
#include <cstdint>
#include <ctime>

namespace heddle::progress {

class ParkingLot {
  public:
    using Condition = bool (*)(void* argument);

    // What a sleeper needs of its wait. Relays between park's begin and end call the condition.
    struct Wait {
        Condition condition;
        void* argument;
        uint64_t begin_ns;  // of the wait
        uint64_t end_ns;    // the sleeper looks for itself then
        // Between two naps of the napper, without the lock. False: the napper leaves the lot.
        bool (*between_naps)();
    };

    ParkingLot() = default;
    ~ParkingLot() { pthread_mutex_destroy(&lock_); }
    ParkingLot(const ParkingLot&) = delete;
    ParkingLot& operator=(const ParkingLot&) = delete;

    // Sleeps until the condition has held, or until end_ns. True when it has held.
    bool park(const Wait& wait);

    // Wakes the sleepers whose condition holds. For a thread that has stored, or applied, what they may wait for.
    void relay() {
        // A read-modify-write, because those of one word are in one order. This one follows the sleeper's and sees it,
        // or precedes it, and the sleeper's condition sees what was stored. Pairs with ParkingLot::add.
        if (sleepers_.fetch_add(0, std::memory_order_acq_rel) != 0)
            relay_to_sleepers();
    }

    // The time between two looks of a wait that has lasted so long.
    static uint64_t length_of_nap(uint64_t waited_ns);

  private:
    enum State : uint32_t { kAsleep, kReady, kCalled };  // kCalled: to be the napper
    struct Sleeper {
        const Wait& wait;
        std::atomic<uint32_t> state{kAsleep};
        bool naps = false;  // as the napper
        Sleeper* before = nullptr;
        Sleeper* next = nullptr;
    };

    void add(Sleeper& sleeper);
    void remove(Sleeper& sleeper);
    void relay_to_sleepers();
    void ask_all(const Sleeper* caller);
    bool sleep(Sleeper& sleeper);

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    Sleeper* first_ = nullptr;  // the napper
    std::atomic<uint32_t> sleepers_{0};
};

}  // namespace heddle::progress
