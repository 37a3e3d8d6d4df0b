// Engine: the work of this PE that a thread other than its caller may carry out. The engine knows no operation: the
// work brings its functions with it. Two kinds of work:
//
// Tasks, in slices: large transfers.
//     submit      fills a free task, opens its slices, and wakes the background thread when that sleeps
//     help        claims a slice of an open task and does it; the thread that does the last slice finishes the task
// Sequences (progress/sequence.h), on fibers: non-blocking collectives.
//     drive       resumes the sequences that can continue
//
// Progress is made by threads that wait awake in the library, by programs that poll, and by one background thread, as
// the policy says (Progress). The background thread starts with the first work that is left to it, and sleeps while
// there is none. While there is work, it rests at the PE's wake-up (sync/wakeup.h): spinning,
// watching the line, or asleep.
//
// No lock. A task's claim word holds its generation, its slices and the next slice to claim. A claim is one
// compare-and-swap, which fails when the task has been reused meanwhile. Invariant: a task with a claimed slice does
// not change until that slice is done. At most kTasks tasks are open: beyond, submit returns false, and the caller does
// the work.
//
// Threads: any. The background thread ends in stop.
#pragma once

#include "base/choices.h"
#include "base/pe_local.h"
#include "base/tsan.h"
#include "progress/inline_payload.h"
#include "progress/sequence.h"
#include "progress/wait_policy.h"
#include "sync/event_count.h"
#include "sync/wakeup.h"

#include <pthread.h>
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace heddle::progress {

using base::AsyncCopy;

// What the background thread does. Manual: there is none, and only calls of the program make
// progress. The others say how it rests while there is something to wait for: kThread as the machine has it, kAuto so
// too, but on the node it is left alone unless a core is free.
using base::Progress;

// The request and the context that a task belongs to. Helpers only compare them.
struct Owners {
    const void* request = nullptr;
    const void* context = nullptr;
};

struct alignas(128) Task {
    static constexpr size_t kPayloadBytes = 96;
    static constexpr uint32_t kMaxSlices = 0xffff;
    using Slice = void (*)(const void* payload, uint32_t slice);
    using Finish = void (*)(const void* payload);

    std::atomic<uint64_t> claims{0};  // generation << 32 | slices << 16 | next slice to claim
    std::atomic<uint32_t> left{0};    // slices that are not done
    std::atomic<const void*> request{nullptr}, context{nullptr};  // Owners; read before a claim, hence atomic
    // The fields below are written by submit, and read by threads that have claimed a slice.
    Slice slice = nullptr;
    Finish finish = nullptr;
    InlinePayload<kPayloadBytes> payload;
};

class Engine {
  public:
    static constexpr int kTasks = 64;
    static constexpr size_t kMaxCpuWords = 16;

    // choice: HEDDLE_ASYNC_COPY. cpus: a bit for each CPU of the job on this node; the background thread runs only
    // there.
    Engine(WaitPolicy& policy, AsyncCopy choice, const uint64_t* cpus, size_t cpu_words);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // --- Policy

    // Sets the policy and returns null, or returns why this machine cannot have it.
    const char* set_progress(Progress progress);
    bool is_manual() const { return rest_.load(std::memory_order_relaxed) == Rest::kNever; }
    bool spins() const { return rest_.load(std::memory_order_relaxed) == Rest::kSpin; }

    // The PE's wake-up, once there is shared memory; before, a private one of the engine.
    void set_wakeup(sync::EventCount& wakeup) { wakeup_ = policy_.wakeup = &wakeup; }
    sync::EventCount& wakeup() { return *wakeup_; }
    // Makes every wait at the PE's wake-up check its condition again, and ends those of the parking lot whose condition
    // holds.
    void wake_waiters() {
        wakeup_->advance();
        policy_.parking_lot.relay();
    }
    // Messages have been applied. Wakes the threads that wait for what they changed. None at the PE's wake-up: the
    // caller then drives the sequences, or runs in a fiber, whose driver sees that the wake-up has advanced.
    void on_messages();

    // --- Tasks

    // True when a background thread would find a core: the node has more cores than threads of the job that do not
    // sleep.
    bool has_free_core() const;

    // Opens a task with a copy of payload. False, and nothing has happened, when there is no free task or no thread.
    // at_end runs once, after all slices, before the task counts as finished.
    template <class Payload>
    bool submit(const Owners& owners, uint32_t slices, Task::Slice slice, Task::Finish at_end, const Payload& payload) {
        Task* task = start_thread() ? take() : nullptr;
        if (!task)
            return false;
        task->slice = slice;
        task->finish = at_end;
        task->payload.hold(payload);
        open(task, owners, slices);
        return true;
    }

    // Tasks submitted and not finished. Acquire: pairs with Engine::finish; a caller that reads 0 sees what all tasks
    // have done. Never too few: the caller submitted the tasks that it waits for, or synchronized with their
    // submitters.
    uint32_t outstanding() const { return outstanding_.load(std::memory_order_acquire); }

    // False when no operation of this PE can be outstanding: no task is, and there is no network, whose operations are
    // counted by its streams. Always true under ThreadSanitizer, which must be told of the order. Pairs with
    // Engine::finish.
    bool may_be_outstanding() const { return outstanding_.load(std::memory_order_acquire) != 0 || asks_always_; }
    void set_network() { asks_always_ = policy_.has_network = true; }
    // While an observer (operations/observer.h) is to be told of every fence and quiet.
    void set_observed(bool observed) { asks_always_ = observed || policy_.has_network || tsan::is_on(); }

    // Does one slice of a task for which is_mine(owners) is true; false when there is no such slice.
    template <class IsMine>
    bool help(IsMine is_mine) {
        // Acquire: pairs with Engine::open; a bit that is set shows the claim word of the task.
        for (uint64_t some = open_.load(std::memory_order_acquire); some != 0; some &= some - 1) {
            Task& task = tasks_[__builtin_ctzll(some)];
            const uint64_t claims = task.claims.load(std::memory_order_acquire);  // pairs with Engine::open
            const Owners owners = {task.request.load(std::memory_order_relaxed),
                                   task.context.load(std::memory_order_relaxed)};
            if (is_mine(owners) && do_slice(task, claims))
                return true;
        }
        return false;
    }

    // --- Sequences

    // Resumes every sequence that can continue; true when one was resumed. Within a fiber: does nothing.
    bool drive();
    // Drives `first`, and then the others, once each. What can go on behind that is left to other threads, which are
    // called. For a thread that posts, and does its part of what many may do.
    void drive_once(Sequence& first);
    // The step in which a posted collective of any sequence waits; 0: none. Any thread. Acquire: pairs with
    // Engine::add.
    uint64_t step_of_posted() const;
    // Makes drive resume the sequence, until the end of the process.
    void add(Sequence& sequence);
    // Called by sequences: an operation is about to be posted, or is done.
    void count_posted();
    void count_done();
    // True when the background thread, rather than its poster, begins a collective that sends `bytes` to other nodes.
    bool takes_over(size_t bytes) const;
    // The background thread begins what was posted.
    void begin_in_background();
    // Makes the background thread resume posted operations. seldom: only if the policy is not kAuto, or a core is free.
    // False when it does not come.
    bool request_background(bool seldom);

    // --- Waiting

    // Returns when done() is true. Meanwhile does slices of tasks that is_mine accepts, and drives sequences. While the
    // thread sleeps, others ask condition for it (ParkingLot::Condition), which is true whenever done() would be. The
    // thread that makes it true calls wake_waiters or on_messages.
    template <class IsMine, class Done, class Condition>
    void wait_for(const char* function, IsMine is_mine, Done done, Condition condition) {
        if (Fiber* const fiber = Fiber::current()) {
            auto ready = [&] { return done() || (help(is_mine) && done()); };
            fiber->wait(ready);
            return tsan::acquire(this);
        }
        if (!done())
            wait_long(function, is_mine, done, condition);
        tsan::acquire(this);
    }
    template <class IsMine, class Done>
    void wait_for(const char* function, IsMine is_mine, Done done) {
        wait_for(function, is_mine, done, done);
    }
    template <class Done>
    void wait_until(const char* function, Done done) {
        wait_for(function, [](const Owners&) { return false; }, done);
    }

    // Returns when all work is done and the background thread has ended. No other thread may use the engine meanwhile.
    void stop(const char* function);

    // How many threads of the process belong to the library (the engine, the network) or to the launcher's client
    // library.
    uint32_t threads() const { return (started_.load(std::memory_order_relaxed) ? 1 : 0) + other_threads_; }
    void set_other_threads(uint32_t threads) { other_threads_ = threads; }

  private:
    // The part of wait_for that is not in the way of a condition that holds.
    template <class IsMine, class Done, class Condition>
    [[gnu::noinline]] void wait_long(const char* function, IsMine& is_mine, Done& done, Condition& condition) {
        std::optional<WaitSteps> steps;  // of one wait for all: a thread that is woken in vain sleeps again at once
        for (;;) {
            // Acquire: sees what preceded the wake-up's advance.
            const uint32_t seen = wakeup_->value.load(std::memory_order_acquire);
            if (done())
                return;
            if (help(is_mine) || drive()) {
                steps.reset();
                continue;
            }
            const auto has_advanced = [&] { return wakeup_->reached(seen + 1); };
            if (!steps)
                steps.emplace(function, wakeup_, true);
            while (!has_advanced())
                if (steps->step(has_advanced)) {
                    steps->sleep_in_lot(condition, false);
                    break;
                }
        }
    }

    enum class Rest : int { kNever, kSpin, kMonitor, kBlock };  // kNever: there is no background thread

    Task* take();
    void open(Task* task, const Owners& owners, uint32_t slices);
    bool do_slice(Task& task, uint64_t claims);
    void finish(Task& task);
    bool start_thread();
    void run();
    void rest(uint32_t seen_wakeup, uint32_t seen);
    void count(bool awake);
    static void* run_thread(void* it);
    void avoid_cpu(int cpu);
    void lower_priority();

    WaitPolicy& policy_;
    const AsyncCopy choice_;
    const uint64_t* const cpus_;
    const size_t cpu_words_;
    alignas(128) std::atomic<uint32_t> outstanding_{0};
    uint32_t other_threads_ = 0;
    bool asks_always_ = tsan::is_on();
    std::atomic<uint64_t> used_{0};  // a bit for each task that is taken
    std::atomic<uint64_t> open_{0};  // a bit for each task with slices to claim, and perhaps for others
    std::atomic<Sequence*> sequences_{nullptr};
    std::atomic<Rest> rest_{Rest::kBlock};
    std::atomic<bool> only_free_cores_{true};  // the policy is kAuto
    alignas(128) sync::EventCount work_{};     // advances when there is something to do for the background thread
    sync::EventCount* wakeup_;                 // advances when something has happened that work may wait for
    sync::EventCount own_wakeup_{};
    std::atomic<bool> started_{false};  // the background thread runs, or is about to
    std::atomic<bool> stopping_{false};
    std::atomic<bool> awake_{false};  // the background thread has something to do
    pthread_t thread_{};
    std::atomic<int> caller_cpu_{-1};  // where the last submit or request_background ran
    int avoided_cpu_ = -1;             // the CPU that the background thread keeps away from
    Rest priority_ = Rest::kBlock;     // the scheduling policy that the background thread has asked for
    void* pe_ = nullptr;               // see pe_of_thread
    Task tasks_[kTasks];
};

// For the test build with PEs as threads: pe_of_thread copies the library's state of the calling thread's PE, and the
// background thread adopts the copy with become_thread_of. Both are null in the library.
extern void* (*pe_of_thread)();
extern void (*become_thread_of)(void* pe);

// This PE's engine; made by init, lives as long as the process.
extern HEDDLE_PE_LOCAL base::PePointer<Engine> engine;

// The number of the program's threads in this PE, including those that never called the library, without the library's
// own. 1 when the system does not tell.
uint32_t threads_of_program();

}  // namespace heddle::progress
