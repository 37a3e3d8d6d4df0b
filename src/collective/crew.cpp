#include "collective/crew.h"

#include "base/error.h"
#include "base/settings.h"

#include <algorithm>
#include <cstring>

namespace heddle::collective {

void Crew::check_number() const {
    if (threads_ < 1 || thread_ < 0 || thread_ >= threads_)
        base::fatal(call_.function,
                    "thread %d of nthreads %d: right would be nthreads of 1 or more, and threads 0 to %d", thread_,
                    threads_, std::max(threads_, 1) - 1);
}

Crew::Share Crew::one_of_many(size_t count, size_t unit) const {
    const auto threads = static_cast<size_t>(threads_), thread = static_cast<size_t>(thread_);
    const size_t each = (count / threads + unit) / unit * unit;
    return {std::min(count, thread * each), std::min(count, (thread + 1) * each)};
}

void Crew::check() const {
    if (!base::settings.check)
        return;
    // A thread shows where it is before it says how many they are, so that whoever disagrees can name both places.
    const char* function = nullptr;
    if (!room_.function.compare_exchange_strong(function, call_.function, std::memory_order_acq_rel) &&
        strcmp(function, call_.function) != 0)
        base::fatal(call_.function, "thread %d is in %s, but another one in %s: right would be the same in all",
                    thread_, base::describe(call_).data(), base::describe(another()).data());
    if (thread_ < room_.kWatched) {
        const void* there = room_.callers[thread_].exchange(call_.caller, std::memory_order_acq_rel);
        if (there)
            base::fatal(
                call_.function,
                "two threads are number %d, in %s and in %s: right would be a number of its own for each of the "
                "%d",
                thread_, base::describe({room_.function.load(), there}).data(), base::describe(call_).data(), threads_);
    }
    int first = 0;
    if (!room_.threads.compare_exchange_strong(first, threads_, std::memory_order_acq_rel) && first != threads_)
        base::fatal(call_.function,
                    "nthreads is %d in %s, but %d in another thread, in %s: right would be the same in all", threads_,
                    base::describe(call_).data(), first, base::describe(another()).data());
}

// The call of another thread that has come.
base::Call Crew::another() const {
    base::Call call = {room_.function.load(std::memory_order_acquire), nullptr};
    for (int i = 0; i < room_.kWatched && !call.caller; ++i)
        if (i != thread_)
            call.caller = room_.callers[i].load(std::memory_order_acquire);
    return call;
}

// Relaxed, all: the gate that opens behind it orders it before those who come next.
void Crew::forget() const {
    if (!base::settings.check)
        return;
    for (std::atomic<const void*>& caller : room_.callers) caller.store(nullptr, std::memory_order_relaxed);
    room_.threads.store(0, std::memory_order_relaxed);
    room_.function.store(nullptr, std::memory_order_relaxed);
}

}  // namespace heddle::collective
