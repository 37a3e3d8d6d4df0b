// How many operations a thread has in flight, and what completes them.
#pragma once

#include <utility>

#include "programs/common/requests.hpp"

namespace shmem_mt {

// kSingly: call after call, and a quiet in the end; a call that returns a value waits for it. kBatch: kLookAhead calls,
// then a quiet. kRequest: kLookAhead calls, then a wait for their request (shmemx.h).
enum class InFlight { kSingly, kBatch, kRequest };

constexpr long kLookAhead = 1024;  // the most that RandomAccess allows; here of each thread

// f(link), whose quiet completes what has been called.
template <class Link, class F>
void with_completion(const Link& link, InFlight in_flight, F&& f) {
    if (in_flight == InFlight::kRequest)
        with_requests(link, Requests::kMerged, nullptr, std::forward<F>(f));
    else
        f(link);
}

}  // namespace shmem_mt
