#include "collective/crew.h"

#include "base/error.h"
#include "base/settings.h"

#include <algorithm>

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
    // Relaxed, all: the values alone matter; forget comes before the gate that the next ones pass.
    int first = 0;
    if (!room_.threads.compare_exchange_strong(first, threads_, std::memory_order_relaxed) && first != threads_)
        base::fatal(call_.function, "nthreads is %d here, but %d in another thread: right would be the same in all",
                    threads_, first);
    constexpr int kBits = 64;
    const uint64_t bit = uint64_t{1} << (thread_ % kBits);
    if (thread_ < kBits && room_.there.fetch_or(bit, std::memory_order_relaxed) & bit)
        base::fatal(call_.function, "two threads are number %d: right would be a number of its own for each of the %d",
                    thread_, threads_);
}

void Crew::forget() const {
    room_.threads.store(0, std::memory_order_relaxed);
    room_.there.store(0, std::memory_order_relaxed);
}

}  // namespace heddle::collective
