#include "progress/wait_policy.h"

#include "base/counters.h"
#include "base/invariant.h"
#include "base/slow_event.h"
#include "os/ticks.h"
#include "os/yield.h"

#include <unistd.h>
#include <algorithm>
#include <utility>

namespace heddle::progress {

HEDDLE_PE_LOCAL base::PePointer<WaitPolicy> wait_policy;

namespace {

WaitPolicy before_init;

// Counts a thread while it lives. In the child of a fork the destructor does nothing: the counts, which are the node's,
// hold the parent's thread.
struct CountedThread {
    WaitPolicy* policy = nullptr;
    pid_t process = 0;

    ~CountedThread() {
        if (!policy || process != getpid())
            return;
        // Relaxed: see WaitPolicy::oversubscribed.
        [[maybe_unused]] const uint32_t own = policy->own_threads.fetch_sub(1, std::memory_order_relaxed);
        HEDDLE_INVARIANT(own != 0);  // this thread was counted
        policy->node_threads->fetch_sub(1, std::memory_order_relaxed);
    }
};

thread_local CountedThread counted_thread;

thread_local int waits = 0;       // nested waits of this thread
thread_local uint32_t tests = 0;  // that did not hold, of this thread

}  // namespace

constinit thread_local uint64_t AtStep::current_ = 0;

bool is_waiting() {
    return waits > 0;
}

void poll_seldom() {
    // Relaxed: a test that reads the old value polls a few calls later.
    if (!wait_policy->alone.load(std::memory_order_relaxed) && ++tests % kTestsPerPoll != 0)
        return;
    poll_in_loop();
}

void count_this_thread() {
    WaitPolicy* policy = wait_policy;
    if (!policy || !policy->node_threads || counted_thread.policy)
        return;
    counted_thread.policy = policy;
    counted_thread.process = getpid();
    policy->own_threads.fetch_add(1, std::memory_order_relaxed);
    policy->node_threads->fetch_add(1, std::memory_order_relaxed);
}

WaitSteps::WaitSteps(WaitPolicy& policy, const void* line)
    : policy_(policy),
      function_(nullptr),
      line_(line),
      start_ns_(os::now_ns()),
      published_{nullptr, nullptr, start_ns_} {
    phase_ = first_phase(true);
}

WaitSteps::WaitSteps(const char* function, const void* line, bool one_line, const WaitTarget* target)
    : policy_(wait_policy ? *wait_policy : before_init),
      function_(function),
      line_(line),
      start_ns_(os::now_ns()),
      published_{function, target, start_ns_} {
    ++waits;
    count_this_thread();
    if (policy_.before_wait)
        policy_.before_wait();
    if (policy_.counts_cpu_of_waits)
        start_cpu_ns_ = os::clock_ns(CLOCK_THREAD_CPUTIME_ID);
    phase_ = first_phase(one_line);
}

WaitSteps::Phase WaitSteps::first_phase(bool one_line) const {
    if (policy_.oversubscribed(start_ns_))
        return Phase::kYield;
    return policy_.monitor && one_line && !polls() ? Phase::kMonitor : Phase::kSpin;
}

WaitSteps::~WaitSteps() {
    if (phase_ == Phase::kSleep)
        wake_up();
    if (published_.entry >= 0)
        policy_.withdraw(published_);
    if (is_poller_)
        count_as_poller(false);
    hand_over_duty();
    if (start_cpu_ns_ != 0)  // relaxed: a number that orders nothing
        policy_.cpu_of_waits_ns.fetch_add(os::clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns_,
                                          std::memory_order_relaxed);
    HEDDLE_INVARIANT(!function_ || waits > 0);
    waits -= function_ != nullptr;
}

void WaitSteps::count_as_poller(bool polls) {
    is_poller_ = polls;
    // seq_cst, with the load behind it: pairs with WaitSteps::duty and Engine::count_posted. Where this thread does not
    // see what is posted, the poster's call does not find this thread counted.
    const uint32_t pollers = policy_.pollers.fetch_add(polls ? 1 : UINT32_MAX, std::memory_order_seq_cst);
    HEDDLE_INVARIANT(polls || pollers != 0);
    was_last_poller_ = !polls && pollers == 1;
    if (was_last_poller_ && policy_.hand_over && policy_.posted.load(std::memory_order_seq_cst) != 0)
        policy_.hand_over();
}

void WaitSteps::hand_over_duty() {
    if (std::exchange(was_last_poller_, false) && policy_.polls_asleep())
        policy_.parking_lot.call();
}

void WaitSteps::wake_up() {
    if (!function_)
        return;
    base::end_slow_event(base::SlowEvent::kSleep, &asleep_ticks_);
    if (policy_.show)
        policy_.show(nullptr, nullptr);
    policy_.own_sleepers.fetch_sub(1, std::memory_order_relaxed);
    if (!policy_.node_sleepers)
        return;
    [[maybe_unused]] const uint32_t sleepers = policy_.node_sleepers->fetch_sub(1, std::memory_order_relaxed);
    HEDDLE_INVARIANT(sleepers != 0);  // fall_asleep has counted this thread
}

bool WaitSteps::poll_and_begin_anew() {
    if (!is_poller_)
        count_as_poller(true);
    if (!policy_.poll())
        return false;
    start_ns_ = os::now_ns();
    return true;
}

void WaitSteps::advance() {
    const uint64_t waited = os::now_ns() - start_ns_;
    if (waited < policy_.spin_ns)
        watch_ns_ = std::min(std::max(waited, watch_ns_), policy_.spin_ns - waited);
    if (phase_ != Phase::kYield && waited >= policy_.spin_ns) {
        phase_ = Phase::kYield;
        if (os::yield_to_another())  // relaxed: see WaitPolicy::oversubscribed
            policy_.oversubscribed_until_ns.store(start_ns_ + waited + policy_.oversubscribed_ns,
                                                  std::memory_order_relaxed);
    }
    if (phase_ == Phase::kYield && waited >= policy_.spin_ns + policy_.yield_ns)
        fall_asleep();
}

// One look of a thread that is about to sleep.
void WaitSteps::look() {
    look_in_ns_ = policy_.looked && function_ ? policy_.looked(function_) : kLookNs;
    if (function_ && policy_.publish)
        policy_.publish(published_);
}

void WaitSteps::fall_asleep() {
    phase_ = Phase::kSleep;
    if (is_poller_)
        count_as_poller(false);
    if (!function_)
        return;
    base::counters->sleeps.add();
    if (base::find_slow_event_sink())
        asleep_ticks_ = os::ticks_now();
    if (policy_.show)
        policy_.show(function_, line_);
    // Relaxed: only says how many cores are likely to be free.
    if (policy_.node_sleepers)
        policy_.node_sleepers->fetch_add(1, std::memory_order_relaxed);
    policy_.own_sleepers.fetch_add(1, std::memory_order_relaxed);  // the call shows it to the service thread
    if (policy_.hand_over)
        policy_.hand_over();
}

// The awake threads that poll make progress for those in the lot.
ParkingLot::Duty WaitSteps::duty(void* steps) {
    const WaitPolicy& policy = static_cast<WaitSteps*>(steps)->policy_;
    // seq_cst: pairs with WaitSteps::count_as_poller.
    if (!policy.polls_asleep() || policy.pollers.load(std::memory_order_seq_cst) != 0)
        return ParkingLot::Duty::kNone;
    return policy.has_network && policy.alone.load(std::memory_order_seq_cst) ? ParkingLot::Duty::kPoll
                                                                              : ParkingLot::Duty::kDrive;
}

bool WaitSteps::make_progress(void* steps) {
    auto& mine = *static_cast<WaitSteps*>(steps);
    if (!mine.policy_.poll())
        return false;
    mine.count_as_poller(true);  // ahead of its leave: nobody takes over from a thread that is awake
    return true;
}

bool WaitSteps::park(ParkingLot::Condition condition, void* argument, bool for_store) {
    if (!function_ || !policy_.wakeup) {
        os::sleep_ns(ParkingLot::length_of_nap(os::now_ns() - start_ns_));
        return false;
    }
    was_last_poller_ = false;  // the lot knows who has the duty
    const ParkingLot::Leave leave = policy_.parking_lot.park({.condition = condition,
                                                              .argument = argument,
                                                              .for_store = for_store,
                                                              .begin_ns = start_ns_,
                                                              .end_ns = os::now_ns() + look_in_ns_,
                                                              .duty = duty,
                                                              .make_progress = make_progress,
                                                              .waiter = this,
                                                              .wakeup = policy_.wakeup});
    if (is_poller_)  // has moved something, whether or not its condition has held: it is awake, and counted so
        begin_anew();
    return leave == ParkingLot::Leave::kHeld;
}

void WaitSteps::begin_anew() {
    wake_up();
    start_ns_ = os::now_ns();
    phase_ = first_phase(false);
}

timespec WaitSteps::next_look() {
    hand_over_duty();
    return os::to_timespec(os::now_ns() + look_in_ns_);
}

// With a network that only this wait polls, nothing advances the wake-up when data arrives: then the sleep is a nap.
void WaitSteps::rest_at_wakeup(uint32_t seen_wakeup) {
    HEDDLE_INVARIANT(policy_.wakeup);
    const uint64_t now = os::now_ns();
    const bool naps = policy_.has_network && policy_.alone.load(std::memory_order_relaxed);
    const timespec deadline = os::to_timespec(now + (naps ? ParkingLot::length_of_nap(now - start_ns_) : look_in_ns_));
    policy_.wakeup->sleep(seen_wakeup + 1, &deadline);
}

}  // namespace heddle::progress
