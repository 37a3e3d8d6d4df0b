#include "progress/engine.h"

#include <sched.h>
#include <signal.h>
#include <algorithm>

namespace heddle::progress {

HEDDLE_PE_LOCAL Engine* engine = nullptr;

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

}  // namespace

bool Engine::has_free_core() const {
    if (choice_ != Overlap::kAuto)
        return choice_ == Overlap::kAlways;
    // Relaxed, both: counts that are a moment old make one transfer overlap that had better not, or the other way
    // round.
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
        const uint64_t bit = ~used & (used + 1);  // the lowest that is clear
        // Acquire: pairs with the release in finish, behind which nobody touches the task's fields any more.
        if (used_.compare_exchange_weak(used, used | bit, std::memory_order_acquire, std::memory_order_relaxed))
            return &tasks_[__builtin_ctzll(bit)];
    }
}

void Engine::open(Task* task, const Owners& owners, uint32_t slices) {
    caller_cpu_.store(sched_getcpu(), std::memory_order_relaxed);
    outstanding_.fetch_add(1, std::memory_order_relaxed);
    task->request.store(owners.request, std::memory_order_relaxed);
    task->context.store(owners.context, std::memory_order_relaxed);
    task->left.store(slices, std::memory_order_relaxed);
    const uint64_t generation = (task->claims.load(std::memory_order_relaxed) >> kGenerationShift) + 1;
    task->claims.store(generation << kGenerationShift | uint64_t{slices} << kSlicesShift,
                       std::memory_order_release);                              // pairs with do_slice
    open_.fetch_or(uint64_t{1} << (task - tasks_), std::memory_order_release);  // pairs with help
    work_.advance();
}

// Claims the next slice of the task as `claims` shows it, and does it. False when there is none any more.
bool Engine::do_slice(Task& task, uint64_t claims) {
    const uint64_t generation = claims >> kGenerationShift;
    do {
        if (claims >> kGenerationShift != generation || next_of(claims) >= slices_of(claims))
            return false;
        // Acquire: pairs with open; the fields that it wrote before are seen.
    } while (
        !task.claims.compare_exchange_weak(claims, claims + 1, std::memory_order_acquire, std::memory_order_acquire));
    const uint32_t slice = next_of(claims);
    if (slice + 1 == slices_of(claims))  // no slice is left to claim; relaxed, because a bit too many costs a look
        open_.fetch_and(~(uint64_t{1} << (&task - tasks_)), std::memory_order_relaxed);
    task.slice(task.payload, slice);
    // acq_rel: who does the last one sees what all others did.
    if (task.left.fetch_sub(1, std::memory_order_acq_rel) == 1)
        finish(task);
    return true;
}

void Engine::finish(Task& task) {
    task.finish(task.payload);
    used_.fetch_and(~(uint64_t{1} << (&task - tasks_)), std::memory_order_release);  // pairs with take
    outstanding_.fetch_sub(1, std::memory_order_release);                            // pairs with outstanding
    finished_.advance();
}

bool Engine::start_thread() {
    // Acquire and release: pair with each other across threads, so that stop sees thread_.
    if (started_.load(std::memory_order_acquire) || started_.exchange(true, std::memory_order_acq_rel))
        return true;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);  // the program's signals are for its own threads
    const bool failed = pthread_create(&thread_, nullptr, run_thread, this) != 0;
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    if (failed)
        started_.store(false, std::memory_order_release);
    return !failed;
}

void* Engine::run_thread(void* it) {
    static_cast<Engine*>(it)->run();
    return nullptr;
}

void Engine::run() {
    count(true);
    for (;;) {
        keep_off(caller_cpu_.load(std::memory_order_relaxed));
        const uint32_t seen = work_.value.load(std::memory_order_acquire);  // pairs with the advance in open
        if (help([](const Owners&) { return true; }))
            continue;
        if (stopping_.load(std::memory_order_acquire)) {  // pairs with stop
            count(false);
            return;
        }
        wait_in_background(policy_, work_, seen + 1, [this](bool awake) { count(awake); });
    }
}

// From here on the background thread runs on the job's CPUs, whatever its PE is bound to, but not on this one: its
// caller computes there, and the kernel likes to wake a thread beside the one that woke it. Where that leaves no CPU,
// or the kernel says no, it stays where it is.
void Engine::keep_off(int cpu) {
    if (cpu == kept_off_)
        return;
    kept_off_ = cpu;
    constexpr int kWordBits = 64;
    uint64_t cpus[kMostCpuWords] = {};
    std::copy_n(cpus_, cpu_words_, cpus);
    if (cpu >= 0 && static_cast<size_t>(cpu) < cpu_words_ * kWordBits)
        cpus[cpu / kWordBits] &= ~(uint64_t{1} << (cpu % kWordBits));
    sched_setaffinity(0, cpu_words_ * sizeof *cpus, reinterpret_cast<const cpu_set_t*>(cpus));
}

// Relaxed: see has_free_core.
void Engine::count(bool awake) {
    awake_.store(awake, std::memory_order_relaxed);
    policy_.node_threads->fetch_add(awake ? 1 : UINT32_MAX, std::memory_order_relaxed);
}

void Engine::stop(const char* function) {
    wait_for(function, [](const Owners&) { return true; }, [this] { return outstanding() == 0; });
    if (!started_.load(std::memory_order_acquire))
        return;
    stopping_.store(true, std::memory_order_release);  // pairs with run
    work_.advance();
    pthread_join(thread_, nullptr);
    stopping_.store(false, std::memory_order_relaxed);
    started_.store(false, std::memory_order_relaxed);
}

}  // namespace heddle::progress
