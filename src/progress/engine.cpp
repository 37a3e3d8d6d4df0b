#include "progress/engine.h"

#include "base/counters.h"
#include "base/invariant.h"
#include "base/slow_event.h"
#include "os/own_thread.h"
#include "os/pause.h"
#include "os/process.h"
#include "os/ticks.h"
#include "os/topology.h"

#include <sched.h>
#include <algorithm>

namespace heddle::progress {

HEDDLE_PE_LOCAL base::PePointer<Engine> engine;
void* (*pe_of_thread)() = nullptr;
void (*become_thread_of)(void* pe) = nullptr;

uint32_t threads_of_program() {
    const uint32_t own = engine ? engine->threads() : 0;
    return std::max(os::count_threads(), own + 1) - own;
}

namespace {

constexpr uint64_t kNextMask = 0xffff;
constexpr int kSlicesShift = 16;
constexpr int kGenerationShift = 32;

uint32_t next_of(uint64_t claims) {
    return static_cast<uint32_t>(claims & kNextMask);
}
uint32_t slices_of(uint64_t claims) {
    return static_cast<uint32_t>(claims >> kSlicesShift & kNextMask);
}

bool has_sibling(const uint64_t* cpus, size_t words) {
    constexpr int kWordBits = 64;
    for (size_t cpu = 0; cpu < words * kWordBits; ++cpu) {
        uint64_t siblings[Engine::kMaxCpuWords] = {};
        if (cpus[cpu / kWordBits] >> (cpu % kWordBits) & 1) {
            os::smt_siblings(static_cast<int>(cpu), siblings, words);
            for (size_t i = 0; i < words; ++i)
                if (siblings[i] & cpus[i])
                    return true;
        }
    }
    return false;
}

}  // namespace

Engine::Engine(WaitPolicy& policy, AsyncCopy choice, const uint64_t* cpus, size_t cpu_words)
    : policy_(policy),
      choice_(choice),
      cpus_(cpus),
      cpu_words_(std::min(cpu_words, kMaxCpuWords)),
      wakeup_(&own_wakeup_) {
    policy.wakeup = wakeup_;
}

const char* Engine::set_progress(Progress progress) {
    if (progress == Progress::kMonitor && !policy_.monitor)
        return "this CPU has no instruction that watches a cache line for user programs (or HEDDLE_MONITOR forbids it)";
    // With one core, a thread that does not sleep takes the core from the program.
    const bool one_core = policy_.node_cores == 1;
    const bool beside = policy_.monitor && !one_core && has_sibling(cpus_, cpu_words_);
    Rest rest = Rest::kBlock;
    if (progress == Progress::kManual)
        rest = Rest::kNever;
    else if (progress == Progress::kSpin && !one_core)
        rest = Rest::kSpin;
    else if (progress == Progress::kMonitor || (beside && progress != Progress::kBlock && progress != Progress::kSpin))
        rest = Rest::kMonitor;
    // Relaxed: a thread that reads the old value for a moment only rests in the old way.
    only_free_cores_.store(progress == Progress::kAuto, std::memory_order_relaxed);
    policy_.alone.store(rest == Rest::kNever, std::memory_order_seq_cst);  // pairs with WaitPolicy::polls_asleep
    rest_.store(rest, std::memory_order_seq_cst);                          // pairs with Engine::request_background
    wake_waiters();
    policy_.parking_lot.call();
    // Pairs with Engine::count_posted; if not seen, its poster requests again.
    if (policy_.posted.load(std::memory_order_seq_cst) != 0)
        request_background(true);
    return nullptr;
}

bool Engine::has_free_core() const {
    if (is_manual())
        return false;
    if (choice_ != AsyncCopy::kAuto)
        return choice_ == AsyncCopy::kAlways;
    // Relaxed, both: a count that is a moment old only makes one transfer asynchronous or synchronous by mistake.
    if (awake_.load(std::memory_order_relaxed))
        return true;
    const uint32_t threads = policy_.node_threads->load(std::memory_order_relaxed);
    const uint32_t asleep = policy_.node_sleepers->load(std::memory_order_relaxed);
    return threads < policy_.node_cores + asleep;
}

Task* Engine::take() {
    uint64_t used = used_.load(std::memory_order_relaxed);
    for (;;) {
        if (~used == 0)
            return nullptr;
        const uint64_t bit = ~used & (used + 1);  // the lowest bit that is clear
        // Acquire: pairs with Engine::finish, after which no thread touches the task's fields.
        if (!used_.compare_exchange_weak(used, used | bit, std::memory_order_acquire, std::memory_order_relaxed))
            continue;
        Task* const task = &tasks_[__builtin_ctzll(bit)];
        HEDDLE_INVARIANT(task->left.load(std::memory_order_relaxed) == 0);  // all slices of the one before are done
        return task;
    }
}

void Engine::open(Task* task, const Owners& owners, uint32_t slices) {
    HEDDLE_INVARIANT(slices >= 1 && slices <= Task::kMaxSlices);
    HEDDLE_INVARIANT(used_.load(std::memory_order_relaxed) >> (task - tasks_) & 1);
    tsan::release(this);
    base::counters->async_copies.add();
    caller_cpu_.store(sched_getcpu(), std::memory_order_relaxed);
    outstanding_.fetch_add(1, std::memory_order_relaxed);
    task->request.store(owners.request, std::memory_order_relaxed);
    task->context.store(owners.context, std::memory_order_relaxed);
    task->left.store(slices, std::memory_order_relaxed);
    const uint64_t generation = (task->claims.load(std::memory_order_relaxed) >> kGenerationShift) + 1;
    task->claims.store(generation << kGenerationShift | uint64_t{slices} << kSlicesShift,
                       std::memory_order_release);  // pairs with Engine::do_slice and Engine::help
    // Pairs with Engine::help. A thread that saw the bit of the task before may have done all slices meanwhile: the bit
    // then stays, with nothing to claim, and only costs a look.
    open_.fetch_or(uint64_t{1} << (task - tasks_), std::memory_order_release);
    // Pairs with Engine::run and Engine::rest.
    work_.advance();
    // Pairs with Engine::count_posted: while it is not 0, the thread may rest at the wake-up.
    if (policy_.posted.load(std::memory_order_seq_cst) != 0)
        wake_waiters();
}

// Claims the next slice of the task that `claims` describes, and does it. False when no slice is left.
bool Engine::do_slice(Task& task, uint64_t claims) {
    const uint64_t generation = claims >> kGenerationShift;
    do {
        if (claims >> kGenerationShift != generation || next_of(claims) >= slices_of(claims))
            return false;
        // Acquire: pairs with Engine::open, which has written the task's fields.
    } while (
        !task.claims.compare_exchange_weak(claims, claims + 1, std::memory_order_acquire, std::memory_order_acquire));
    const uint32_t slice = next_of(claims);
    HEDDLE_INVARIANT(slice < slices_of(claims));
    if (slice + 1 == slices_of(claims))  // no slice is left; relaxed, because a stale bit only costs a look
        open_.fetch_and(~(uint64_t{1} << (&task - tasks_)), std::memory_order_relaxed);
    tsan::acquire(this);
    uint64_t begin_ticks = base::find_slow_event_sink() ? os::ticks_now() : 0;
    task.slice(task.payload.object(), slice);
    base::end_slow_event(base::SlowEvent::kCopy, &begin_ticks);
    tsan::release(this);
    // acq_rel: the thread that does the last slice sees what all others did.
    const uint32_t left = task.left.fetch_sub(1, std::memory_order_acq_rel);
    HEDDLE_INVARIANT(left != 0);  // a slice is done once
    if (left == 1)
        finish(task);
    return true;
}

void Engine::finish(Task& task) {
    task.finish(task.payload.object());
    HEDDLE_INVARIANT(used_.load(std::memory_order_relaxed) >> (&task - tasks_) & 1);
    used_.fetch_and(~(uint64_t{1} << (&task - tasks_)), std::memory_order_release);  // pairs with Engine::take
    [[maybe_unused]] const uint32_t outstanding =
        // Pairs with Engine::outstanding and Engine::may_be_outstanding.
        outstanding_.fetch_sub(1, std::memory_order_release);
    HEDDLE_INVARIANT(outstanding != 0);
    wake_waiters();
}

void Engine::on_messages() {
    wakeup_->advance_silently();
    policy_.parking_lot.relay();
}

// --- Sequences

void Engine::add(Sequence& sequence) {
    sequence.next_of_engine = sequences_.load(std::memory_order_relaxed);
    // Release: pairs with Engine::drive, Engine::drive_once and Engine::step_of_posted.
    while (!sequences_.compare_exchange_weak(sequence.next_of_engine, &sequence, std::memory_order_release,
                                             std::memory_order_relaxed)) {
    }
}

bool Engine::drive() {
    // seq_cst: pairs with Engine::count_posted. The thread that has applied a message drives what the message is for,
    // or the poster sees the message.
    if (policy_.posted.load(std::memory_order_seq_cst) == 0 || Fiber::current())
        return false;
    bool moved = false;
    uint32_t seen_wakeup;
    do {
        seen_wakeup = wakeup_->value.load(std::memory_order_seq_cst);
        // Acquire: pairs with Engine::add.
        for (Sequence* it = sequences_.load(std::memory_order_acquire); it; it = it->next_of_engine)
            moved |= it->drive();
    } while (wakeup_->value.load(std::memory_order_seq_cst) != seen_wakeup);  // see Sequence::drive
    return moved;
}

void Engine::drive_once(Sequence& first) {
    // Ahead of the looks: a thread that drives one of the sequences now, and turns this one away, looks again.
    wake_waiters();
    const uint32_t seen_wakeup = wakeup_->value.load(std::memory_order_seq_cst);
    first.drive();
    // Acquire: pairs with Engine::add.
    for (Sequence* it = sequences_.load(std::memory_order_acquire); it; it = it->next_of_engine)
        if (it != &first)
            it->drive();
    // Behind them: a thread that this one has turned away looks again, in place of this one's second look in drive.
    if (wakeup_->value.load(std::memory_order_seq_cst) != seen_wakeup)
        wake_waiters();
}

uint64_t Engine::step_of_posted() const {
    uint64_t step = 0;
    for (const Sequence* it = sequences_.load(std::memory_order_acquire); it && step == 0; it = it->next_of_engine)
        step = it->step();
    return step;
}

void Engine::count_posted() {
    // Pairs with Engine::open, Engine::drive, Engine::set_progress, Engine::run and WaitSteps::count_as_poller.
    if (policy_.posted.fetch_add(1, std::memory_order_seq_cst) == 0)
        policy_.parking_lot.call();
}

void Engine::count_done() {
    [[maybe_unused]] const uint32_t posted = policy_.posted.fetch_sub(1, std::memory_order_relaxed);
    HEDDLE_INVARIANT(posted != 0);  // what is done was posted
    wake_waiters();
}

bool Engine::request_background(bool seldom) {
    // seq_cst: pairs with Engine::set_progress; of the two threads at least one sees what the other has stored.
    if (rest_.load(std::memory_order_seq_cst) == Rest::kNever ||
        (seldom && only_free_cores_.load(std::memory_order_relaxed) && !has_free_core()))
        return false;
    caller_cpu_.store(sched_getcpu(), std::memory_order_relaxed);
    if (!start_thread())
        return false;
    work_.advance();
    return true;
}

bool Engine::takes_over(size_t bytes) const {
    constexpr size_t kLeastBytes = 8192;  // to wake a thread takes longer than to send less
    if (is_manual())
        return false;
    if (choice_ != AsyncCopy::kAuto)
        return choice_ == AsyncCopy::kAlways;
    // Relaxed: as in has_free_core.
    return bytes >= kLeastBytes && policy_.leaves_core(awake_.load(std::memory_order_relaxed));
}

void Engine::begin_in_background() {
    if (request_background(false))
        wake_waiters();  // it may rest at the wake-up, as in Engine::open
    else
        drive();
}

bool Engine::start_thread() {
    // acq_rel: one thread alone starts the background thread; pairs with Engine::start_thread. thread_ is written after
    // the exchange: what orders it before stop is the program, because no other thread may use the engine during stop.
    if (started_.load(std::memory_order_acquire) || started_.exchange(true, std::memory_order_acq_rel))
        return true;
    if (pe_of_thread)
        pe_ = pe_of_thread();
    avoided_cpu_ = -1;
    priority_ = Rest::kBlock;
    const bool failed = os::start_own_thread(&thread_, run_thread, this) != 0;
    if (failed)  // release: pairs with Engine::start_thread
        started_.store(false, std::memory_order_release);
    return !failed;
}

void* Engine::run_thread(void* it) {
    static_cast<Engine*>(it)->run();
    return nullptr;
}

void Engine::run() {
    if (become_thread_of)
        become_thread_of(pe_);
    count(true);
    for (;;) {
        const uint32_t seen = work_.value.load(std::memory_order_acquire);  // pairs with Engine::open
        // Acquire: sees what preceded the wake-up's advance.
        const uint32_t seen_wakeup = wakeup_->value.load(std::memory_order_acquire);
        // Behind the counts: what is set after this look advances one of them, and the thread looks again.
        avoid_cpu(caller_cpu_.load(std::memory_order_relaxed));
        lower_priority();
        // In turns: sends that are left to this thread do not wait for a large copy to end.
        const bool driven = drive();
        if (help([](const Owners&) { return true; }) || driven)
            continue;
        if (stopping_.load(std::memory_order_acquire)) {  // pairs with Engine::stop
            count(false);
            return;
        }
        if (!is_manual() && policy_.posted.load(std::memory_order_seq_cst) != 0)  // pairs with Engine::count_posted
            rest(seen_wakeup, seen);
        else
            wait_in_background(policy_, work_, seen + 1, [this](bool awake) { count(awake); });
    }
}

// Rests until the count of the wake-up differs from `seen_wakeup` or that of work_ from `seen`. Spinning and
// monitoring also return after kLooks looks or kWatchNs.
void Engine::rest(uint32_t seen_wakeup, uint32_t seen) {
    constexpr int kLooks = 64;
    constexpr uint64_t kWatchNs = 100000;
    sync::EventCount& wakeup = *wakeup_;
    const auto is_over = [&] {
        return wakeup.value.load(std::memory_order_acquire) != seen_wakeup ||
               work_.value.load(std::memory_order_seq_cst) != seen;  // pairs with Engine::open
    };
    switch (rest_.load(std::memory_order_relaxed)) {
        case Rest::kSpin:
            for (int i = 0; i < kLooks && !is_over(); ++i) os::pause();
            if (policy_.oversubscribed(os::now_ns()))
                sched_yield();
            break;
        case Rest::kMonitor:
            policy_.monitor->arm(&wakeup.value);
            if (!is_over())
                policy_.monitor->wait(kWatchNs);
            break;
        default:
            if (is_over())
                return;
            count(false);
            wakeup.sleep(seen_wakeup + 1, nullptr);
            count(true);
    }
}

// Binds the background thread to the job's CPUs without `cpu`, where its caller computes: the kernel likes to wake a
// thread beside the one that woke it. Preferred are CPUs that share a cache with `cpu`. A thread that monitors a line
// prefers an SMT sibling of `cpu`, which loses little by it. Nothing changes when no CPU is left or the kernel refuses.
void Engine::avoid_cpu(int cpu) {
    if (cpu == avoided_cpu_)
        return;
    avoided_cpu_ = cpu;
    uint64_t cpus[kMaxCpuWords] = {}, near[kMaxCpuWords];
    std::copy_n(cpus_, cpu_words_, cpus);
    constexpr int kWordBits = 64;
    if (cpu >= 0 && static_cast<size_t>(cpu) < cpu_words_ * kWordBits) {
        cpus[cpu / kWordBits] &= ~(uint64_t{1} << (cpu % kWordBits));
        const auto take_if_any_are_the_jobs = [&] {
            uint64_t any = 0;
            for (size_t i = 0; i < cpu_words_; ++i) any |= near[i] &= cpus[i];
            if (any)
                std::copy_n(near, cpu_words_, cpus);
        };
        os::cache_siblings(cpu, near, cpu_words_);
        take_if_any_are_the_jobs();
        if (rest_.load(std::memory_order_relaxed) == Rest::kMonitor) {
            os::smt_siblings(cpu, near, cpu_words_);
            take_if_any_are_the_jobs();
        }
    }
    sched_setaffinity(0, cpu_words_ * sizeof *cpus, reinterpret_cast<const cpu_set_t*>(cpus));
}

// A background thread that spins asks for SCHED_BATCH: a share of a core, without preference for having waited.
// SCHED_IDLE would be less, and leave other threads waiting for slices that it has begun. A thread that sleeps keeps
// SCHED_OTHER: with SCHED_BATCH it would be woken too late.
void Engine::lower_priority() {
    const Rest rest = rest_.load(std::memory_order_relaxed);
    if (rest == priority_)
        return;
    priority_ = rest;
    const sched_param none = {};
    sched_setscheduler(0, rest == Rest::kSpin ? SCHED_BATCH : SCHED_OTHER, &none);
}

// Relaxed: see has_free_core.
void Engine::count(bool awake) {
    HEDDLE_INVARIANT(awake_.load(std::memory_order_relaxed) != awake);  // the thread is counted once while it is awake
    awake_.store(awake, std::memory_order_relaxed);
    policy_.node_threads->fetch_add(awake ? 1 : UINT32_MAX, std::memory_order_relaxed);
}

void Engine::stop(const char* function) {
    // No release belongs to the acquires of posted and started_: pthread_join and the program order what came before.
    wait_for(
        function, [](const Owners&) { return true; },
        [this] { return outstanding() == 0 && policy_.posted.load(std::memory_order_acquire) == 0; });
    HEDDLE_INVARIANT(outstanding() == 0);
    if (!started_.load(std::memory_order_acquire))
        return;
    stopping_.store(true, std::memory_order_release);  // pairs with Engine::run
    work_.advance();
    wake_waiters();
    pthread_join(thread_, nullptr);
    stopping_.store(false, std::memory_order_relaxed);
    started_.store(false, std::memory_order_relaxed);
}

}  // namespace heddle::progress
