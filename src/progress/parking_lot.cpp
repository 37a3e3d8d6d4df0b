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

// Under the lock, as the next six. In front: a sleeper that naps, with the shortest naps, and one with a duty that
// nobody rests at the wake-up for. Nobody takes over from the others when they leave.
void ParkingLot::add(Sleeper& sleeper) {
    const bool in_front =
        sleeper.wait.for_store || (!(first_ && first_->rests_at_wakeup) && duty_of(sleeper) != Duty::kNone);
    Sleeper*& end = in_front ? first_ : last_;
    (in_front ? sleeper.next : sleeper.before) = end;
    if (end)
        (in_front ? end->before : end->next) = &sleeper;
    else
        (in_front ? last_ : first_) = &sleeper;
    end = &sleeper;
    n_for_store_ += sleeper.wait.for_store;
    sleepers_.fetch_add(1, std::memory_order_acq_rel);  // pairs with ParkingLot::relay and ParkingLot::call
}

void ParkingLot::remove(Sleeper& sleeper) {
    const bool was_first = first_ == &sleeper;
    (sleeper.before ? sleeper.before->next : first_) = sleeper.next;
    (sleeper.next ? sleeper.next->before : last_) = sleeper.before;
    n_for_store_ -= sleeper.wait.for_store;
    // Relaxed: too high a count costs a look.
    [[maybe_unused]] const uint32_t sleepers = sleepers_.fetch_sub(1, std::memory_order_relaxed);
    HEDDLE_INVARIANT(sleepers != 0);
    if (was_first)
        call_first();
}

// How the sleeper is to sleep.
void ParkingLot::settle(Sleeper& sleeper) {
    const Duty duty = first_ == &sleeper ? duty_of(sleeper) : Duty::kNone;
    sleeper.naps = first_ == &sleeper && (n_for_store_ != 0 || duty == Duty::kPoll);
    sleeper.rests_at_wakeup = duty != Duty::kNone;
    sleeper.state.store(kAsleep, std::memory_order_relaxed);
}

void ParkingLot::wake(Sleeper& sleeper, State state) {
    // Relaxed: the sleeper reads it under the lock, or behind the advance of the wake-up.
    sleeper.state.store(state, std::memory_order_relaxed);
    if (sleeper.rests_at_wakeup)
        return sleeper.wait.wakeup->advance();
    base::counters->wake_ups.add();
    os::futex_wake_all(&sleeper.state);
}

// A first sleeper that naps looks for its duty by itself.
void ParkingLot::call_first() {
    // Relaxed: state is written under the lock.
    if (!first_ || first_->naps || first_->state.load(std::memory_order_relaxed) != kAsleep)
        return;
    const Duty duty = duty_of(*first_);
    const bool is_to_nap = n_for_store_ != 0 || duty == Duty::kPoll;
    if (is_to_nap || (duty == Duty::kDrive && !first_->rests_at_wakeup))
        wake(*first_, kCalled);
}

// caller: needs no wake-up; may be null.
void ParkingLot::ask_all(const Sleeper* caller) {
    for (Sleeper* sleeper = first_; sleeper; sleeper = sleeper->next) {
        if (sleeper->state.load(std::memory_order_relaxed) == kReady ||
            !sleeper->wait.condition(sleeper->wait.argument))
            continue;
        if (sleeper == caller)
            sleeper->state.store(kReady, std::memory_order_relaxed);
        else
            wake(*sleeper, kReady);
    }
}

void ParkingLot::call_sleepers() {
    const os::Locked locked(lock_);
    call_first();
}

void ParkingLot::call_sleepers_to_work(uint32_t count) {
    const os::Locked locked(lock_);
    for (Sleeper* sleeper = first_; sleeper && count > 0; sleeper = sleeper->next) {
        if (sleeper->state.load(std::memory_order_relaxed) != kAsleep)
            continue;
        wake(*sleeper, kToWork);
        --count;
    }
}

void ParkingLot::relay_to_sleepers() {
    const os::Locked locked(lock_);
    ask_all(nullptr);
}

// Sleeps once, as settle has said. False when the sleeper has moved something.
bool ParkingLot::sleep(Sleeper& sleeper) {
    const Wait& wait = sleeper.wait;
    const auto deadline = [&] {
        const uint64_t now_ns = os::now_ns();
        const uint64_t nap_end_ns = now_ns + length_of_nap(now_ns - wait.begin_ns);
        return os::to_timespec(sleeper.naps ? std::min(nap_end_ns, wait.end_ns) : wait.end_ns);
    };
    if (!sleeper.rests_at_wakeup) {
        const timespec until = deadline();
        os::futex_wait(&sleeper.state, kAsleep, &until);
        return true;
    }
    // Ahead of the progress and of the look at state: what comes behind them ends the sleep. Pairs with
    // EventCount::advance_silently.
    const uint32_t seen_wakeup = wait.wakeup->value.load(std::memory_order_seq_cst);
    if (wait.make_progress(wait.waiter))
        return false;
    if (sleeper.state.load(std::memory_order_relaxed) == kAsleep) {
        const timespec until = deadline();
        wait.wakeup->sleep(seen_wakeup + 1, &until);
    }
    return true;
}

ParkingLot::Leave ParkingLot::park(const Wait& wait) {
    Sleeper sleeper = {wait};
    pthread_mutex_lock(&lock_);
    add(sleeper);
    bool has_held = wait.condition(wait.argument), has_moved = false;
    for (bool stays = true; !has_held && stays;) {
        settle(sleeper);
        pthread_mutex_unlock(&lock_);
        has_moved = !sleep(sleeper);
        pthread_mutex_lock(&lock_);
        if (!has_moved && sleeper.state.load(std::memory_order_relaxed) == kToWork) {
            pthread_mutex_unlock(&lock_);
            has_moved = wait.make_progress(wait.waiter);
            pthread_mutex_lock(&lock_);
        }
        const uint32_t state = sleeper.state.load(std::memory_order_relaxed);
        if (state == kCalled)
            base::counters->vain_wake_ups.add();
        else if (state == kAsleep && (sleeper.naps || sleeper.rests_at_wakeup))
            ask_all(&sleeper);
        stays = !has_moved && os::now_ns() < wait.end_ns;
        has_held = sleeper.state.load(std::memory_order_relaxed) == kReady;
    }
    remove(sleeper);
    pthread_mutex_unlock(&lock_);
    return has_held ? Leave::kHeld : has_moved ? Leave::kMoved : Leave::kEnd;
}

}  // namespace heddle::progress
