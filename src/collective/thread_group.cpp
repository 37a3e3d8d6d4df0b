#include "collective/thread_group.h"

#include "base/error.h"
#include "base/invariant.h"
#include "base/settings.h"

#include <algorithm>
#include <cstring>

namespace heddle::collective {

void ThreadGroup::require_number(const base::Call& call, int thread, int threads) {
    if (threads < 1 || thread < 0 || thread >= threads)
        base::fatal(call.function,
                    "thread %d of nthreads %d: right would be nthreads of 1 or more, and threads 0 to %d", thread,
                    threads, std::max(threads, 1) - 1);
}

ThreadGroup::Share ThreadGroup::one_of_many(size_t count, size_t unit, int sharers) const {
    const auto threads = static_cast<size_t>(sharers), thread = static_cast<size_t>(thread_);
    const size_t each = (count / threads + unit) / unit * unit;
    HEDDLE_INVARIANT(unit > 0 && threads > 0 && each * threads >= count);  // the shares are all there is
    return {std::min(count, thread * each), std::min(count, (thread + 1) * each)};
}

team::ThreadGroupState& ThreadGroup::state() const {
    return progress::Fiber::current() ? team_.helpers->thread_group : team_.thread_group;
}

void ThreadGroup::check() const {
    if (!base::settings.check)
        return;
    team::ThreadGroupState& segment = state();
    // A thread stores its function and caller before its number of threads, so that a thread that disagrees can name
    // both. acq_rel, all: pair with ThreadGroup::check and ThreadGroup::another.
    const char* function = nullptr;
    if (!segment.function.compare_exchange_strong(function, call_.function, std::memory_order_acq_rel) &&
        strcmp(function, call_.function) != 0)
        base::fatal(call_.function, "thread %d is in %s, but another one in %s: right would be the same in all",
                    thread_, base::describe(call_).data(), base::describe(another()).data());
    if (thread_ < segment.kWatched) {
        const void* there = segment.callers[thread_].exchange(call_.caller, std::memory_order_acq_rel);
        if (there)
            base::fatal(
                call_.function,
                "two threads are number %d, in %s and in %s: right would be a number of its own for each of the "
                "%d",
                thread_, base::describe({segment.function.load(), there}).data(), base::describe(call_).data(),
                threads_);
    }
    int first = 0;
    if (!segment.threads.compare_exchange_strong(first, threads_, std::memory_order_acq_rel) && first != threads_)
        base::fatal(call_.function,
                    "nthreads is %d in %s, but %d in another thread, in %s: right would be the same in all", threads_,
                    base::describe(call_).data(), first, base::describe(another()).data());
}

// The call of another thread that has arrived. Acquire, both: pair with ThreadGroup::check.
base::Call ThreadGroup::another() const {
    const team::ThreadGroupState& segment = state();
    base::Call call = {segment.function.load(std::memory_order_acquire), nullptr};
    for (int i = 0; i < segment.kWatched && !call.caller; ++i)
        if (i != thread_)
            call.caller = segment.callers[i].load(std::memory_order_acquire);
    return call;
}

// Relaxed, all: the advance of `released` afterwards orders these stores before the threads that arrive next.
void ThreadGroup::forget() const {
    if (!base::settings.check)
        return;
    team::ThreadGroupState& segment = state();
    for (std::atomic<const void*>& caller : segment.callers) caller.store(nullptr, std::memory_order_relaxed);
    segment.threads.store(0, std::memory_order_relaxed);
    segment.function.store(nullptr, std::memory_order_relaxed);
}

}  // namespace heddle::collective
