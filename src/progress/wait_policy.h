// Wait policy: how every wait of Heddle passes its time.
//
//     look, pause, look ...   ->   watch the line (os/monitor_wait.h)   ->   yield the core   ->   sleep
//
// Spinning and watching last spin_ns, yielding yield_ns after that; then the wait sleeps. A wait for an event count
// sleeps on its futex. A wait for a store, a message or the end of operations sleeps in the parking lot
// (progress/parking_lot.h): until a thread that has applied a message or ended an operation finds its condition true.
// A peer's plain store wakes nobody: one sleeper naps for all. A nap is 1/16 of the time waited, at most 2 ms. Each
// wait begins with the first phase, so a busy exchange never sleeps and an idle one always does.
//
// With more threads than cores on the node, or in this PE, the first two phases are left out: a spinning thread keeps
// the awaited thread from running. Only threads that have waited in the library are counted, and no other processes.
// Therefore a wait whose first yield lets another thread run marks the PE as oversubscribed for the next
// oversubscribed_ns.
//
// While the PE has a network, or non-blocking collectives outstanding, a wait makes progress while it is awake. Nobody
// else may make progress meanwhile: then waits for event counts, and one of those in the parking lot, sleep at the PE's
// wake-up (sync/wakeup.h), and make progress when that advances. A wait in a fiber (progress/fiber.h) has no phases: it
// leaves the thread.
//
// Threads: any. Cost: nothing while the condition already holds; otherwise it begins with a reading of the clock.
#pragma once

#include "base/pe_local.h"
#include "os/clock.h"
#include "os/monitor_wait.h"
#include "os/pause.h"
#include "progress/fiber.h"
#include "progress/parking_lot.h"
#include "sync/event_count.h"
#include "sync/wakeup.h"

#include <sched.h>
#include <atomic>
#include <cstdint>
#include <utility>

namespace heddle::progress {

// What a wait waits for, for reports. Made where the wait has not ended at once, and valid as long as the wait.
struct WaitTarget {
    enum class Kind : uint8_t { kValue, kAnyValue, kLock };

    Kind kind = Kind::kValue;
    uint8_t value_bytes = 0;
    bool is_signed = false;
    int comparison = 0;             // SHMEM_CMP_*
    const void* address = nullptr;  // symmetric: of the value, of the first of nelems elements, or of the lock
    uint64_t value = 0;             // that those are compared with
    size_t nelems = 1;
};

// A wait that sleeps, for WaitPolicy::publish, which owns the last two members.
struct SleepingWait {
    const char* function;
    const WaitTarget* target;  // null: not told
    uint64_t begin_ns;
    int entry = -1;        // where the wait is published; -1: nowhere
    uint64_t next_ns = 0;  // when there is more to publish
};

struct WaitPolicy {
    uint64_t spin_ns = 50000;
    uint64_t yield_ns = os::kMillisecondNs;
    uint64_t oversubscribed_ns = 10000000;  // a wait in 200 of 50 us each learns anew whether cores are shared
    const os::Monitor* monitor = nullptr;
    std::atomic<uint32_t>* node_threads = nullptr;   // counted threads of all PEs of the node; null before init
    std::atomic<uint32_t>* node_sleepers = nullptr;  // counted threads that sleep in a wait
    uint32_t node_cores = 1;
    std::atomic<uint32_t> own_threads{0};  // counted threads of this PE
    uint32_t own_cores = 1;                // in this PE's affinity mask
    // Threads of this PE that sleep in a wait. Relaxed: a thread that has added itself calls hand_over.
    std::atomic<uint32_t> own_sleepers{0};
    // Until then waits yield at once: some thread of this PE found another one ready to run on its core.
    std::atomic<uint64_t> oversubscribed_until_ns{0};
    bool (*poll)() = nullptr;  // makes progress; true when something was moved
    // Called by a thread whose wait has not ended at once, before it polls, and at tests that make progress: what the
    // thread has sent must not gather meanwhile. May be null.
    void (*before_wait)() = nullptr;
    sync::EventCount* wakeup = nullptr;  // the PE's wake-up
    ParkingLot parking_lot;              // of waits for stores, messages and the ends of operations
    bool has_network = false;
    std::atomic<uint32_t> posted{0};   // non-blocking collectives outstanding
    std::atomic<bool> alone{false};    // there is no background thread, and none may start
    bool multiple_asked = false;       // the program asked for SHMEM_THREAD_MULTIPLE
    std::atomic<uint32_t> pollers{0};  // threads that wait, awake, and make progress
    // Called when a thread falls asleep, and when the last poller stops while collectives are posted: the network's
    // service thread takes over. May be null.
    void (*hand_over)() = nullptr;
    // Publishes where this thread sleeps (function, address), or that it no longer does (nullptr, nullptr). May be
    // null.
    void (*show)(const char* function, const void* address) = nullptr;
    // Called when a thread that waits in `function` is about to sleep. Returns the longest time, in ns, until the
    // thread must check its condition again. May be null.
    uint64_t (*looked)(const char* function) = nullptr;
    // Publishes a wait for reports when it falls asleep, and more of it at each further look. May be null.
    void (*publish)(SleepingWait& wait) = nullptr;
    // Called at the end of a wait with an entry.
    void (*withdraw)(SleepingWait& wait) = nullptr;
    // Records a collective of a checked run, for reports of the last calls. May be null.
    void (*record)(const char* call) = nullptr;
    // The CPU time of waits that have ended, where it is counted, for who asks what the program has computed.
    std::atomic<uint64_t> cpu_of_waits_ns{0};
    bool counts_cpu_of_waits = false;

    // True when this PE may have something to make progress with.
    bool polls() const { return has_network || posted.load(std::memory_order_relaxed) != 0; }
    // True when, beside that, nobody else would make progress while all waiting threads sleep.
    bool polls_asleep() const {
        // seq_cst: see WaitSteps::count_as_poller. alone: pairs with Engine::set_progress.
        return posted.load(std::memory_order_seq_cst) != 0 || (has_network && alone.load(std::memory_order_seq_cst));
    }

    // True when, while one thread sleeps, another one may post an operation that only the sleeper would drive.
    bool has_several_threads() const { return multiple_asked || own_threads.load(std::memory_order_relaxed) > 1; }

    // More threads of this PE have waited in the library than the PE has cores. Relaxed: as in oversubscribed.
    bool is_crowded() const { return own_threads.load(std::memory_order_relaxed) > own_cores; }
    // A thread of the library finds a core beside the threads of the program. is_counted: the thread, which is awake,
    // is among those of the node. Relaxed: as in oversubscribed.
    bool leaves_core(bool is_counted = false) const {
        return own_threads.load(std::memory_order_relaxed) < own_cores + own_sleepers.load(std::memory_order_relaxed) &&
               (!node_threads || node_threads->load(std::memory_order_relaxed) - is_counted <
                                     node_cores + node_sleepers->load(std::memory_order_relaxed));
    }
    bool oversubscribed(uint64_t now_ns) const {
        // Relaxed: a count that is a moment old only makes a wait spin a little too long or too short.
        return (node_threads && node_threads->load(std::memory_order_relaxed) > node_cores) || is_crowded() ||
               oversubscribed_until_ns.load(std::memory_order_relaxed) > now_ns;
    }
};

// This PE's policy, set up by runtime before any other thread waits.
extern HEDDLE_PE_LOCAL base::PePointer<WaitPolicy> wait_policy;

// Makes progress if there may be something to make progress with; true when something was moved.
inline bool poll() {
    return wait_policy->polls() && wait_policy->poll();
}

// As poll, for a call that the program may repeat instead of a wait: what the thread has sent must not gather.
inline void poll_in_loop() {
    if (wait_policy->before_wait)
        wait_policy->before_wait();
    poll();
}

// Makes progress, at some calls of a thread, for a test that did not hold or a fetch. A loop over tests then ends even
// if no thread of the library makes progress. Every call where there is no such thread (WaitPolicy::alone), otherwise
// one in kTestsPerPoll of a thread. Cost without a network and posted collectives: two loads.
constexpr uint32_t kTestsPerPoll = 16;
void poll_seldom();
inline void poll_after_test() {
    if (wait_policy->polls())
        poll_seldom();
}

// Counts the calling thread, once, among those of this PE and its node, until the thread ends.
void count_this_thread();

// True while the calling thread waits in the library, and so also in a signal handler that interrupts the wait.
bool is_waiting();

// Marks, while it lives, the step of a collective in which the calling thread, or the fiber that it runs, waits: a word
// as in team/team.h; 0: none.
class AtStep {
  public:
    explicit AtStep(uint64_t step) : before_(set(step)) {}
    ~AtStep() { set(before_); }
    AtStep(const AtStep&) = delete;
    AtStep& operator=(const AtStep&) = delete;
    static uint64_t current() { return current_; }  // of the thread

  private:
    static uint64_t set(uint64_t step) {
        if (Fiber* const fiber = Fiber::current())
            return fiber->exchange_step(step);
        return std::exchange(current_, step);
    }
    static constinit thread_local uint64_t current_;
    const uint64_t before_;
};

// The phases of one wait whose condition did not hold at once.
class WaitSteps {
  public:
    // line: the address waited on, for messages. one_line: ready() reads only this line, so the line may be watched.
    WaitSteps(const char* function, const void* line, bool one_line, const WaitTarget* target = nullptr);
    // For the library's own thread, which is neither counted nor published.
    WaitSteps(WaitPolicy& policy, const void* line);
    ~WaitSteps();
    WaitSteps(const WaitSteps&) = delete;
    WaitSteps& operator=(const WaitSteps&) = delete;

    // Passes a little time in the current phase. True when it is time to sleep, which the caller does in its own way.
    // A change that is seen while spinning leads to the return without a reading of the clock, which takes as long as a
    // put.
    template <class Ready>
    bool step(Ready& ready) {
        switch (phase_) {
            case Phase::kSpin:
                if (polls())
                    poll_and_begin_anew();
                else
                    for (int i = 0; i < kLooksPerClock; ++i) {
                        if (ready())
                            return false;
                        os::pause();
                    }
                break;
            case Phase::kMonitor:
                policy_.monitor->arm(line_);
                if (!ready())  // the line may have changed before it was armed
                    policy_.monitor->wait(watch_ns_);
                break;
            case Phase::kYield:
                if (!polls() || !poll_and_begin_anew())
                    sched_yield();
                break;
            case Phase::kSleep:
                look();
                return true;
        }
        advance();
        return false;
    }

    // The latest end of the sleep that step has allowed, of a thread that makes no progress meanwhile.
    timespec next_look();
    // Sleeps in the parking lot: until ready() has held, until the next look, or until this thread has made progress,
    // behind which the wait begins anew. True when ready() has held. for_store: a peer's plain store may end the wait.
    template <class Ready>
    bool sleep_in_lot(Ready& ready, bool for_store) {
        return park([](void* it) { return (*static_cast<Ready*>(it))(); }, &ready, for_store);
    }
    // True when this thread may have to make progress while it sleeps, and therefore sleeps at the PE's wake-up.
    bool sleeps_at_wakeup() const {
        return function_ && sync::wakeups.own && (policy_.polls_asleep() || policy_.has_several_threads());
    }
    // Sleeps at the PE's wake-up, which advances when ready() has become true. Makes progress before.
    template <class Ready>
    void sleep_at_wakeup(Ready& ready) {
        const uint32_t seen_wakeup = policy_.wakeup->value.load(std::memory_order_seq_cst);  // see sync/wakeup.h
        if (!ready() && !(policy_.polls() && policy_.poll()))
            rest_at_wakeup(seen_wakeup);
    }
    // Sleeps at the PE's wake-up. False, without sleeping, when only the event count concerns this wait: the caller
    // then sleeps on the event count.
    template <class Ready>
    bool sleep_at_wakeup(sync::EventCount& event_count, Ready& ready) {
        if (!sleeps_at_wakeup())
            return false;
        const sync::Watch watch(event_count);
        sleep_at_wakeup(ready);
        return true;
    }

  private:
    enum class Phase { kSpin, kMonitor, kYield, kSleep };
    static constexpr uint64_t kLookNs = 1000000000;
    static constexpr int kLooksPerClock = 32;  // pauses of about 10 ns each between two readings of the clock

    Phase first_phase(bool one_line) const;
    bool park(ParkingLot::Condition condition, void* argument, bool for_store);
    static ParkingLot::Duty duty(void* steps);
    static bool make_progress(void* steps);
    bool polls() const { return function_ && policy_.polls(); }
    void rest_at_wakeup(uint32_t seen_wakeup);
    void count_as_poller(bool polls);
    // Where this thread was the last that polled, and sleeps elsewhere than in the lot or leaves: a sleeper takes over.
    void hand_over_duty();
    // Makes progress; if something was moved, the wait starts again with its time at 0.
    bool poll_and_begin_anew();
    void advance();
    void look();
    void fall_asleep();
    void wake_up();  // undoes what fall_asleep published
    void begin_anew();

    WaitPolicy& policy_;
    const char* function_;
    const void* line_;
    uint64_t start_ns_;
    uint64_t start_cpu_ns_ = 0;  // of the thread; 0: not counted
    uint64_t asleep_ticks_ = 0;  // since when, for a trace
    Phase phase_;
    // How long to watch the line at once: as long as this wait has lasted, up to the phase's end.
    uint64_t watch_ns_ = 1000;
    uint64_t look_in_ns_ = kLookNs;
    bool is_poller_ = false;
    bool was_last_poller_ = false;  // and nobody has been called since
    SleepingWait published_;
};

// Returns when ready(), which reads only this event count, is true. sleep(until) sleeps on the event count, at most
// until then.
template <class Ready, class Sleep>
void wait_at_event_count(const char* function, sync::EventCount& event_count, Ready ready, Sleep sleep) {
    if (ready())
        return;
    if (Fiber* const fiber = Fiber::current()) {
        const sync::Watch watch(event_count);
        return fiber->wait(ready);
    }
    WaitSteps steps(function, &event_count, true);
    while (!ready()) {
        if (steps.step(ready) && !steps.sleep_at_wakeup(event_count, ready))
            sleep(steps.next_look());
    }
}

// Waits for an event count to reach target, for the library's own thread. Calls awake(false) before the first sleep,
// and awake(true) after the last. At first the thread sleeps in naps (docs/decisions/0011): a thread that advances the
// event count meanwhile makes no system call to wake it.
template <class Awake>
void wait_in_background(WaitPolicy& policy, sync::EventCount& event_count, uint32_t target, Awake awake) {
    constexpr uint64_t kNapNs = 50000;
    constexpr int kNaps = 200;
    WaitSteps steps(policy, &event_count);
    const auto ready = [&] { return event_count.reached(target); };
    int naps = 0;
    while (!ready()) {
        if (!steps.step(ready))
            continue;
        if (naps == 0)
            awake(false);
        if (naps++ < kNaps)
            os::sleep_ns(kNapNs);
        else
            event_count.sleep(target, nullptr);
    }
    if (naps > 0)
        awake(true);
}

// Returns when the event count has reached target.
inline void wait_for_event_count(const char* function, sync::EventCount& event_count, uint32_t target) {
    wait_at_event_count(
        function, event_count, [&] { return event_count.reached(target); },
        [&](const timespec& until) { event_count.sleep(target, &until); });
}

// Waits for an event count of the job page. The PE that advances it may belong to another pretended node, whose PEs
// cannot reach this PE's wake-up. Therefore a PE with a network polls every millisecond instead of relying on its
// wake-up.
inline void wait_for_event_count_of_job(const char* function, sync::EventCount& event_count, uint32_t target) {
    const auto ready = [&] { return event_count.reached(target); };
    if (ready())
        return;
    WaitSteps steps(function, &event_count, true);
    while (!ready()) {
        if (!steps.step(ready))
            continue;
        if (!wait_policy || !wait_policy->polls_asleep()) {
            const timespec until = steps.next_look();
            event_count.sleep(target, &until);
            continue;
        }
        const timespec deadline = os::to_timespec(os::now_ns() + os::kMillisecondNs);
        event_count.sleep(target, &deadline);
        wait_policy->poll();
    }
}

// Returns when the event count equals target, which it does until this thread has seen it.
inline void wait_until_event_count_holds(const char* function, sync::EventCount& event_count, uint32_t target) {
    wait_at_event_count(
        function, event_count, [&] { return event_count.holds(target); },
        [&](const timespec& until) { event_count.sleep_unless_holds(target, &until); });
}

// Returns when ready() is true, which a peer's plain store to line causes. In a fiber: a store that advances the
// wake-up.
template <class Ready>
void wait_for_store(const char* function, const void* line, Ready ready, bool one_line = true,
                    const WaitTarget* target = nullptr) {
    if (ready())
        return;
    if (Fiber* const fiber = Fiber::current())
        return fiber->wait(ready);
    WaitSteps steps(function, line, one_line, target);
    while (!ready()) {
        if (steps.step(ready) && steps.sleep_in_lot(ready, true))
            return;
    }
}

// Returns when ready() is true, which reads several lines; `first` is one of them.
template <class Ready>
void wait_for_stores(const char* function, const void* first, Ready ready, const WaitTarget* target = nullptr) {
    wait_for_store(function, first, ready, false, target);
}

}  // namespace heddle::progress
