// How anything in Heddle waits, in one place.
//
//     look, pause, look ...   ->   watch the line (os/monitor_wait.h)   ->   yield the core   ->   sleep
//
// Spinning and watching last spin_us, yielding yield_us after that; then the wait sleeps: on an event count's futex
// when the event comes from the library, in short naps that grow with the time waited (at most 1/16 of it, at most 2
// ms) when it is a peer's plain store, which wakes nobody. Where more threads run on the node, or in this PE, than
// there are cores, the first two phases fall away: a thread that spins keeps the one it waits for from running. Threads
// that never waited in the library are not among those it counts, nor are other processes: a wait whose first yield
// lets another thread run tells the PE's waits of the next oversubscribed_ns the same. Each wait starts anew, so a busy
// exchange never sleeps and an idle one always does.
//
// While the PE has a network, or non-blocking collectives under way, a wait makes progress while it is awake; and where
// nobody else would meanwhile, it does not sleep on its own event alone, but at the PE's wake-up (sync/wakeup.h), and
// makes progress when that rings. A wait in a fiber (progress/fiber.h) has no phases: it leaves the thread.
//
// Any thread. Costs nothing while the condition already holds, and about 20 ns to begin a wait that does not.
#pragma once

#include "base/pe_local.h"
#include "os/clock.h"
#include "os/monitor_wait.h"
#include "os/pause.h"
#include "progress/fiber.h"
#include "sync/event_count.h"
#include "sync/wakeup.h"

#include <sched.h>
#include <atomic>
#include <cstdint>
#include <utility>

namespace heddle::progress {

struct WaitPolicy {
    uint64_t spin_ns = 50000;
    uint64_t yield_ns = os::kMillisecondNs;
    uint64_t oversubscribed_ns = 10000000;  // 1 of 200 waits of 50 us learns anew whether cores are shared
    const os::Monitor* monitor = nullptr;
    std::atomic<uint32_t>* node_threads = nullptr;   // threads of all PEs of the node; null before init
    std::atomic<uint32_t>* node_sleepers = nullptr;  // those of them that sleep in a wait
    uint32_t node_cores = 1;
    std::atomic<uint32_t> own_threads{0};  // of this PE, that the library has seen
    uint32_t own_cores = 1;                // in this PE's affinity mask
    // some thread of this PE found another one ready to run on its core
    std::atomic<uint64_t> oversubscribed_until_ns{0};
    bool (*poll)() = nullptr;            // makes progress; true when something was moved
    sync::EventCount* wakeup = nullptr;  // the PE's wake-up
    bool has_network = false;
    std::atomic<uint32_t> posted{0};   // non-blocking collectives under way
    std::atomic<bool> alone{false};    // there is no background thread, nor may there be
    bool multiple_asked = false;       // SHMEM_THREAD_MULTIPLE was
    std::atomic<uint32_t> pollers{0};  // threads that wait, awake, and make progress
    void (*hand_over)() = nullptr;     // the last of these stops, and others are to take over; may be null
    // Shows where this thread waits (function, address), or that it no longer does (nullptr, nullptr). May be null.
    void (*show)(const char* function, const void* address) = nullptr;
    // A thread that waits in `function` has looked in vain, and sleeps next. Returns after how many ns it is to look
    // again at the latest. May be null.
    uint64_t (*looked)(const char* function) = nullptr;

    // There is, or may be, something to make progress with.
    bool polls() const { return has_network || posted.load(std::memory_order_relaxed) != 0; }
    // And nobody else would, while those who wait sleep.
    bool polls_asleep() const {
        return posted.load(std::memory_order_relaxed) != 0 || (has_network && alone.load(std::memory_order_relaxed));
    }

    // While a thread sleeps, another one may post what nobody but the sleeper would drive.
    bool has_several_threads() const { return multiple_asked || own_threads.load(std::memory_order_relaxed) > 1; }

    bool oversubscribed(uint64_t now_ns) const {
        // Relaxed: what is a moment old only makes a wait spin a little too long or too short.
        return (node_threads && node_threads->load(std::memory_order_relaxed) > node_cores) ||
               own_threads.load(std::memory_order_relaxed) > own_cores ||
               oversubscribed_until_ns.load(std::memory_order_relaxed) > now_ns;
    }
};

// This PE's policy: one object per PE, set up by runtime, before any other thread waits.
extern HEDDLE_PE_LOCAL WaitPolicy* wait_policy;

// Makes progress, where there is something to make it with; true when something was moved.
inline bool poll() {
    return wait_policy->polls() && wait_policy->poll();
}

// Counts the calling thread as one that runs in this PE, once; it is taken off when the thread ends.
void count_this_thread();

// True while the calling thread waits in the library: so in what interrupts it there.
bool is_waiting();

// The step of a collective that the calling thread, or the fiber that it runs, waits in, as a word (team/team.h); 0:
// none.
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

// The phases of one wait that did not end at once.
class WaitSteps {
  public:
    // line: the address waited on, for messages; when one_line, also the only line that ready() reads, to be watched.
    WaitSteps(const char* function, const void* line, bool one_line);
    // Of the library's own thread, which is neither counted nor shown.
    WaitSteps(WaitPolicy& policy, const void* line);
    ~WaitSteps();
    WaitSteps(const WaitSteps&) = delete;
    WaitSteps& operator=(const WaitSteps&) = delete;

    // Passes a little time, as the phase has it. True when it is time to sleep: the caller does, in its own way.
    template <class Ready>
    bool step(Ready& ready) {
        switch (phase_) {
            case Phase::kSpin:
                if (polls())
                    poll_and_begin_anew();
                else
                    for (int i = 0; i < kLooksPerClock && !ready(); ++i) os::pause();
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
                look_in_ns_ = policy_.looked && function_ ? policy_.looked(function_) : kLookNs;
                return true;
        }
        advance();
        return false;
    }

    // When the sleep that step has allowed ends at the latest.
    timespec next_look() const { return os::to_timespec(os::now_ns() + look_in_ns_); }
    // One nap of a wait for a plain store, or for what the network brings.
    void nap();
    // The sleep of a wait for event count; false when it had better sleep on the event count, because nothing else can
    // concern it.
    template <class Ready>
    bool sleep_at_wakeup(sync::EventCount& event_count, Ready& ready) {
        if (!function_ || !sync::wakeups.own || !(policy_.polls_asleep() || policy_.has_several_threads()))
            return false;
        const sync::Watch watch(event_count);
        const uint32_t heard = policy_.wakeup->value.load(std::memory_order_seq_cst);  // see sync/wakeup.h
        if (!ready() && !(policy_.polls() && policy_.poll()))
            rest_at_wakeup(heard);
        return true;
    }

  private:
    enum class Phase { kSpin, kMonitor, kYield, kSleep };
    static constexpr uint64_t kLookNs = 1000000000;
    static constexpr int kLooksPerClock = 32;  // pauses of about 10 ns each between two readings of the clock

    Phase first_phase(bool one_line) const;
    bool polls() const { return function_ && policy_.polls(); }
    void rest_at_wakeup(uint32_t heard);
    void count_as_poller(bool polls);
    // Polls the network; where that moved something, the wait is as if it had just begun.
    bool poll_and_begin_anew();
    void advance();
    void fall_asleep();
    void wake_up();  // what fall_asleep told is taken back

    WaitPolicy& policy_;
    const char* function_;
    const void* line_;
    uint64_t start_ns_;
    Phase phase_;
    uint64_t watch_ns_ = 1000;  // how long to watch the line at once: as long as it has waited, up to the phase's end
    uint64_t look_in_ns_ = kLookNs;
    uint32_t seen_wakeup_ = 0;  // the wake-up, as last heard
    bool is_poller_ = false;
};

// Returns when ready(), which reads event count alone, is true; sleep(until) sleeps on the event count, until then at
// the latest.
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

// The same for the library's own thread, which counts as one that runs while it does not sleep here: awake(false) is
// called before it first sleeps, and awake(true) behind. For a while it sleeps in naps, and looks: whoever opens the
// event count in that time need not wake it, which would cost the opener more than 10 us.
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

// Returns when another thread or PE has opened event count to target or further.
inline void wait_for_event_count(const char* function, sync::EventCount& event_count, uint32_t target) {
    wait_at_event_count(
        function, event_count, [&] { return event_count.reached(target); },
        [&](const timespec& until) { event_count.sleep(target, &until); });
}

// Waits for an event count of the job page. The PE that advances it may belong to another pretended node, whose PEs
// cannot reach this PE's wake-up; so a PE with a network polls every millisecond instead of relying on it.
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

// Returns when event count is open to target, which it stays until this thread has seen it.
inline void wait_until_event_count_holds(const char* function, sync::EventCount& event_count, uint32_t target) {
    wait_at_event_count(
        function, event_count, [&] { return event_count.holds(target); },
        [&](const timespec& until) { event_count.sleep_unless_holds(target, &until); });
}

// Returns when ready() does, which a peer brings about by a plain store to line. In a fiber: which rings the wake-up.
template <class Ready>
void wait_for_store(const char* function, const void* line, Ready ready, bool one_line = true) {
    if (ready())
        return;
    if (Fiber* const fiber = Fiber::current())
        return fiber->wait(ready);
    WaitSteps steps(function, line, one_line);
    while (!ready()) {
        if (steps.step(ready))
            steps.nap();
    }
}

// The same when ready() reads several lines, of which `first` is one.
template <class Ready>
void wait_for_stores(const char* function, const void* first, Ready ready) {
    wait_for_store(function, first, ready, false);
}

}  // namespace heddle::progress
