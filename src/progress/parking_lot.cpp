#include "progress/parking_lot.h"

#include "base/counters.h"
#include "base/invariant.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/locked.h"

#include <algorithm>

namespace heddle::progress {

namespace {

constexpr uint64_t kLongestNapNs = 2000000;  // 500 wake-ups a second: about 0.2 % of a core
// A wake-up across cores costs about 12 us (measured): shorter naps gain nothing.
constexpr uint64_t kShortestNapNs = 5000;

}  // namespace

uint64_t ParkingLot::length_of_nap(uint64_t waited_ns) {
    return std::clamp(waited_ns / 16, kShortestNapNs, kLongestNapNs);
}

// Under the lock, as the next three.
void ParkingLot::add(Sleeper& sleeper) {
    sleeper.next = first_;
    if (first_)
        first_->before = &sleeper;
    first_ = &sleeper;
    sleepers_.fetch_add(1, std::memory_order_acq_rel);  // pairs with ParkingLot::relay
}

void ParkingLot::remove(Sleeper& sleeper) {
    (sleeper.before ? sleeper.before->next : first_) = sleeper.next;
    if (sleeper.next)
        sleeper.next->before = sleeper.before;
    // Relaxed: too high a count costs a look.
    [[maybe_unused]] const uint32_t sleepers = sleepers_.fetch_sub(1, std::memory_order_relaxed);
    HEDDLE_INVARIANT(sleepers != 0);
    // Relaxed: state is written under the lock.
    if (first_ && !first_->naps && first_->state.load(std::memory_order_relaxed) == kAsleep) {
        first_->state.store(kCalled, std::memory_order_relaxed);
        base::counters->wake_ups.add();
        os::futex_wake_all(&first_->state);
    }
}

// caller: needs no wake-up; may be null.
void ParkingLot::ask_all(const Sleeper* caller) {
    for (Sleeper* sleeper = first_; sleeper; sleeper = sleeper->next) {
        if (sleeper->state.load(std::memory_order_relaxed) == kReady ||
            !sleeper->wait.condition(sleeper->wait.argument))
            continue;
        sleeper->state.store(kReady, std::memory_order_relaxed);
        if (sleeper == caller)
            continue;
        base::counters->wake_ups.add();
        os::futex_wake_all(&sleeper->state);
    }
}

void ParkingLot::relay_to_sleepers() {
    const os::Locked locked(lock_);
    ask_all(nullptr);
}

// Sleeps once: as the napper for a nap, otherwise until the wait's end. False when the napper is to leave the lot.
bool ParkingLot::sleep(Sleeper& sleeper) {
    const Wait& wait = sleeper.wait;
    const bool naps = sleeper.naps;  // written by this thread alone
    const uint64_t now_ns = os::now_ns();
    const uint64_t nap_end_ns = now_ns + length_of_nap(now_ns - wait.begin_ns);
    const timespec deadline = os::to_timespec(naps ? std::min(nap_end_ns, wait.end_ns) : wait.end_ns);
    os::futex_wait(&sleeper.state, kAsleep, &deadline);
    // Relaxed: the caller looks again under the lock.
    return !naps || sleeper.state.load(std::memory_order_relaxed) != kAsleep || wait.between_naps();
}

bool ParkingLot::park(const Wait& wait) {
    Sleeper sleeper = {wait};
    pthread_mutex_lock(&lock_);
    add(sleeper);
    bool has_held = wait.condition(wait.argument);
    for (bool stays = true; !has_held && stays;) {
        sleeper.naps = first_ == &sleeper;
        sleeper.state.store(kAsleep, std::memory_order_relaxed);
        pthread_mutex_unlock(&lock_);
        stays = sleep(sleeper);
        pthread_mutex_lock(&lock_);
        const uint32_t state = sleeper.state.load(std::memory_order_relaxed);
        if (state == kCalled)
            base::counters->vain_wake_ups.add();
        else if (state == kAsleep && sleeper.naps)
            ask_all(&sleeper);
        stays = stays && os::now_ns() < wait.end_ns;
        has_held = sleeper.state.load(std::memory_order_relaxed) == kReady;
    }
    remove(sleeper);
    pthread_mutex_unlock(&lock_);
    return has_held;
}

}  // namespace heddle::progress
