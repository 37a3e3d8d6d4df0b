// Engine: the work of this PE that a thread other than its caller may carry out. It knows no operation: what there is
// to do are functions that come with the work. Two kinds:
//
// Tasks, in slices: large transfers.
//     submit      a free task is filled, its slices are opened, the background thread is woken when it sleeps
//     help        a slice of an open task is claimed and done; whoever does the last one finishes the task
// Sequences (progress/sequence.h), on fibers: non-blocking collectives.
//     drive       what can go on goes on
//
// Who makes progress: threads that wait for something (wait_for, and any other wait while it is awake), programs that
// poll, and one background thread, as the policy says (Progress). It starts with the first work that is left to it,
// sleeps while there is none, and while there is, rests at the PE's wake-up (sync/wakeup.h): spinning, watching the
// line, or asleep.
//
// No lock. A task's claim word holds its generation, its slices and the next one to claim: a claim is one
// compare-and-swap, which fails when the task has become another one meanwhile; once a slice is claimed, the task stays
// as it is until that slice is done. At most kTasks are under way: submit says no beyond, and the caller does the work.
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

namespace heddle::progress {

using base::AsyncCopy;

// What the background thread does. Manual: there is none, and only calls of the program make
// progress. The others say how it rests while there is something to wait for: kThread as the machine has it, kAuto so
// too, but on the node it is left alone unless a core is free.
using base::Progress;

// Who may wait for a task: compared by helpers alone.
struct Owners {
    const void* request = nullptr;
    const void* context = nullptr;
};

struct alignas(128) Task {
    static constexpr size_t kPayloadBytes = 96;
    static constexpr uint32_t kMaxSlices = 0xffff;
    using Slice = void (*)(const void* payload, uint32_t slice);
    using Finish = void (*)(const void* payload);

    std::atomic<uint64_t> claims{0};                              // generation << 32 | slices << 16 | next one to claim
    std::atomic<uint32_t> left{0};                                // slices that are not done
    std::atomic<const void*> request{nullptr}, context{nullptr};  // Owners; read before a claim, hence atomic
    // From here on written by submit, and read by those who have claimed a slice.
    Slice slice = nullptr;
    Finish finish = nullptr;
    InlinePayload<kPayloadBytes> payload;
};

class Engine {
  public:
    static constexpr int kTasks = 64;
    static constexpr size_t kMaxCpuWords = 16;

    // choice: HEDDLE_ASYNC_COPY. cpus: those of the job on this node, a bit each, where the background thread may run.
    Engine(WaitPolicy& policy, AsyncCopy choice, const uint64_t* cpus, size_t cpu_words);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // --- Policy

    // Null and the policy holds from now on, or why this machine cannot have it.
    const char* set_progress(Progress progress);
    bool is_manual() const { return rest_.load(std::memory_order_relaxed) == Rest::kNever; }
    bool spins() const { return rest_.load(std::memory_order_relaxed) == Rest::kSpin; }

    // The PE's wake-up, once there is shared memory; before, one of the engine's own.
    void set_wakeup(sync::EventCount& wakeup) { wakeup_ = policy_.wakeup = &wakeup; }
    sync::EventCount& wakeup() { return *wakeup_; }
    // What waits for the wake-up looks again.
    void wake_waiters() { wakeup_->advance(); }

    // --- Tasks

    // True when a background thread would find a core: more cores than threads of the job that do not sleep.
    bool has_free_core() const;

    // Takes work over: payload is copied. False when it cannot (too many tasks, no thread), and nothing has happened.
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

    // Submitted and not finished. Acquire: pairs with finish; who finds none sees what all have done. What this thread
    // must wait for, it has submitted itself or been told of, so that it cannot find too few.
    uint32_t outstanding() const { return outstanding_.load(std::memory_order_acquire); }

    // False when nothing is, and nothing else of this PE can be: there is no network, whose books are elsewhere. True
    // also where ThreadSanitizer is to be told of what orders.
    bool may_be_outstanding() const { return outstanding_.load(std::memory_order_acquire) != 0 || asks_always_; }
    void set_network() { asks_always_ = policy_.has_network = true; }

    // Does one slice of a task that is_mine(owners) accepts; false when there is none.
    template <class IsMine>
    bool help(IsMine is_mine) {
        // Acquire: pairs with open; a bit that is set shows the claim word of the task.
        for (uint64_t some = open_.load(std::memory_order_acquire); some != 0; some &= some - 1) {
            Task& task = tasks_[__builtin_ctzll(some)];
            const uint64_t claims = task.claims.load(std::memory_order_acquire);  // pairs with open
            const Owners owners = {task.request.load(std::memory_order_relaxed),
                                   task.context.load(std::memory_order_relaxed)};
            if (is_mine(owners) && do_slice(task, claims))
                return true;
        }
        return false;
    }

    // --- Sequences

    // Lets all sequences go on that can; true when one did. Not within a fiber, where it does nothing.
    bool drive();
    // The step of a collective that a posted one waits in, of any sequence; 0: none. Any thread.
    uint64_t step_of_posted() const;
    // The sequence is one of those that drive looks after.
    void add(Sequence& sequence);
    // For sequences: an operation is about to be posted, or is over.
    void count_posted();
    void count_done();
    // The background thread is to look after what has been posted. seldom: it would better be left alone.
    void request_background(bool seldom);

    // --- Waiting

    // Returns when done(), which tasks that is_mine accepts may bring about, or whatever else rings the wake-up.
    template <class IsMine, class Done>
    void wait_for(const char* function, IsMine is_mine, Done done) {
        if (Fiber* const fiber = Fiber::current()) {
            auto ready = [&] { return done() || (help(is_mine) && done()); };
            fiber->wait(ready);
            return tsan::acquire(this);
        }
        for (;;) {
            const uint32_t seen = wakeup_->value.load(std::memory_order_acquire);  // pairs with whoever advances it
            if (done())
                return tsan::acquire(this);
            if (!help(is_mine) && !drive())
                wait_for_event_count(function, *wakeup_, seen + 1);
        }
    }
    template <class Done>
    void wait_until(const char* function, Done done) {
        wait_for(function, [](const Owners&) { return false; }, done);
    }

    // All work is done, and the background thread gone, when this returns. No other thread uses the engine meanwhile.
    void stop(const char* function);

    // How many threads of the process are the engine's, or the launcher's library's or the network's: not the
    // program's.
    uint32_t threads() const { return (started_.load(std::memory_order_relaxed) ? 1 : 0) + other_threads_; }
    void set_other_threads(uint32_t threads) { other_threads_ = threads; }

  private:
    enum class Rest : int { kNever, kSpin, kMonitor, kBlock };  // kNever: there is no background thread

    Task* take();
    void open(Task* task, const Owners& owners, uint32_t slices);
    bool do_slice(Task& task, uint64_t claims);
    void finish(Task& task);
    bool start_thread();
    void run();
    void rest(uint32_t heard, uint32_t seen);
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
    std::atomic<uint64_t> open_{0};  // and for each with slices to claim
    std::atomic<Sequence*> sequences_{nullptr};
    std::atomic<Rest> rest_{Rest::kBlock};
    std::atomic<bool> only_free_cores_{true};  // kAuto
    alignas(128) sync::EventCount work_{};     // moves when the background thread is to do something
    sync::EventCount* wakeup_;                 // moves when something has happened that work may wait for
    sync::EventCount own_wakeup_{};
    std::atomic<bool> started_{false};  // the background thread runs, or is about to
    std::atomic<bool> stopping_{false};
    std::atomic<bool> awake_{false};  // the background thread has something to do
    pthread_t thread_{};
    std::atomic<int> caller_cpu_{-1};  // where work was last left to it
    int avoided_cpu_ = -1;             // the background thread's: the CPU that it leaves alone
    Rest priority_ = Rest::kBlock;     // and how it has introduced itself to the kernel
    void* pe_ = nullptr;               // see pe_of_thread
    Task tasks_[kTasks];
};

// For the test build with PEs as threads: a copy of what the library keeps for the calling thread's PE, and how the
// background thread takes it over. Null in the library.
extern void* (*pe_of_thread)();
extern void (*become_thread_of)(void* pe);

// This PE's; made by init, lives as long as the process.
extern HEDDLE_PE_LOCAL base::PePointer<Engine> engine;

// How many threads the program has in this PE, also those that the library has not seen; not the library's own. 1 when
// it cannot be told.
uint32_t threads_of_program();

}  // namespace heddle::progress
