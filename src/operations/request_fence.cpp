#include "operations/request_fence.h"

#include "base/counters.h"
#include "fabric/multirail/rail_scheduler.h"
#include "progress/wait_policy.h"

namespace heddle::operations {

namespace {

using context::Request;
using fabric::Stream;

void await_claims(const base::Call& call, Request& request) {
    base::counters->request_fence_waits.add_cheaply();
    context::RequestWait wait(&request, context::RequestWait::For::kOtherNodes);  // not for what is posted meanwhile
    progress::wait_for_stores(call.function, &request, [&] { return wait.is_over(); });
    if (!request.shared)  // whose threads may be here at once, and have nothing marked
        request.fenced_stream_set = Request::kNone;
}

// The stream set that all which is under way is in, if it is one of this thread's; kNone: nothing is under way.
// *is_kept: false, where that cannot be said.
int64_t find_stream_set(const Request& request, bool* is_kept) {
    int64_t found = Request::kNone;
    *is_kept = !request.shared && request.captures.load(std::memory_order_relaxed) == 0;
    request.for_claims([&](const Stream& stream, bool is_complete) {
        if (is_complete)
            return;
        *is_kept = *is_kept && stream.is_of(fabric::this_thread()) &&
                   (found == Request::kNone || found == int64_t{stream.stream_set()});
        found = int64_t{stream.stream_set()};
    });
    return found;
}

}  // namespace

void remote_request_fence(const base::Call& call, Request& request) {
    context::claim_captured(request);
    bool is_kept;
    const int64_t kept = find_stream_set(request, &is_kept);
    if (kept == Request::kNone)
        return;
    if (!is_kept)
        return await_claims(call, request);
    request.for_claims([&](Stream& stream, bool is_complete) {
        if (int64_t{stream.stream_set()} != kept)
            context::forget_claim(stream, request);  // inlined code may put through the kept stream set alone
        else if (!is_complete && stream.rails)
            stream.rails->fence(call.function);
        else if (!is_complete)
            stream.order(call.function);
    });
    request.fenced_stream_set = kept;
}

void await_request_fence(const base::Call& call, shmemx_request_t req) {
    Request* const request = context::find_request(call, req);
    if (request && request->fenced_stream_set != Request::kNone)
        await_claims(call, *request);
}

void await_request_fence_slowly(const base::Call& call, shmemx_request_t req, const Stream& stream) {
    Request* const request = context::find_request(call, req);
    if (request && request->fenced_stream_set != Request::kNone &&
        request->fenced_stream_set != int64_t{stream.stream_set()})
        await_claims(call, *request);
}

}  // namespace heddle::operations
