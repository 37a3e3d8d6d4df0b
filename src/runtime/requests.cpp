// Requests, the interface (docs/decisions/0010): checks arguments, then calls src/context and src/operations.

#include "base/error.h"
#include "base/settings.h"
#include "collective/posted_group.h"
#include "context/request.h"
#include "operations/capture.h"
#include "operations/observer.h"
#include "operations/order.h"
#include "operations/request_fence.h"
#include "operations/transfer.h"
#include "progress/engine.h"
#include "runtime/runtime.h"

#include <heddle/request.h>
#include <algorithm>

namespace heddle::runtime {

using base::Call;
using context::Request;
using context::RequestWait;

namespace {

void require_request(const Call& call, const shmemx_request_t* req) {
    operations::require_running(call.function);
    operations::require_pointer(call.function, "req", req);
    operations::settle_capture();
}

void require_requests(const Call& call, size_t count, const shmemx_request_t* requests) {
    operations::require_running(call.function);
    operations::settle_capture();
    if (count > 0)
        operations::require_pointer(call.function, "requests", requests);
}

// True when task_owner is request, or a request that was merged into it. An object is never freed, so a chain
// that changes meanwhile can only mislead, and its length is bounded.
bool is_part_of(const void* task_owner, const Request* request) {
    constexpr int kMaxMerges = 64;
    const auto* part = static_cast<const Request*>(task_owner);
    for (int i = 0; part && i < kMaxMerges; ++i) {
        if (part == request)
            return true;
        part = part->parent.load(std::memory_order_relaxed);
    }
    return false;
}

// Returns when all operations that were posted to request before are complete.
void wait_for(const Call& call, Request* request, RequestWait::For what = RequestWait::For::kAll) {
    collective::await_posts_of_this_thread(call, *request);
    RequestWait wait(request, what);
    const operations::ObservedWait observed(operations::Observer::Wait::kRequest, call);
    progress::engine->wait_for(
        call.function, [&](const progress::Owners& owners) { return is_part_of(owners.request, request); },
        [&] { return wait.is_over(); }, [&] { return wait.has_ended(); });
}

void tell_of_end() {
    if (operations::Observer* const told = operations::find_observer())
        told->complete_request();
}

__attribute__((noinline)) void end_object(const Call& call, shmemx_request_t* req, Request* request) {
    tell_of_end();
    if (request->shared)
        return;
    context::end_handle(call, request);
    *req = SHMEMX_REQUEST_NULL;
}

// For a complete *req: ends a PRIVATE request.
void end_if_private(const Call& call, shmemx_request_t* req, Request* request) {
    operations::complete_stores();
    if (__builtin_expect(request != nullptr, 0))
        return end_object(call, req, request);
    *req = SHMEMX_REQUEST_NULL;
}

// A test did not hold: an observer may let what is late leave.
void tell_of_look() {
    if (operations::Observer* const told = operations::find_observer())
        told->look();
}

bool is_complete(Request* request) {
    return !request ||
           (collective::are_posts_of_this_thread_whole(*request) && context::RequestWait(request).is_over());
}

// Ends the first complete request, or with `all` every complete one, and returns their number and indices. *living: how
// many of the requests examined are not SHMEMX_REQUEST_NULL.
size_t end_complete(const Call& call, size_t count, shmemx_request_t* requests, size_t* indices, bool all,
                    size_t* living) {
    size_t found = 0;
    *living = 0;
    for (size_t i = 0; i < count && (all || found == 0); ++i) {
        if (requests[i] == SHMEMX_REQUEST_NULL)
            continue;
        ++*living;
        Request* request = context::find_request(call, requests[i]);
        if (!is_complete(request))
            continue;
        end_if_private(call, &requests[i], request);
        indices[found++] = i;
    }
    return found;
}

// True when a task belongs to one of the requests, whose handles must be valid.
bool is_part_of_any(const Call& call, const void* task_owner, size_t count, const shmemx_request_t* requests) {
    for (size_t i = 0; i < count; ++i) {
        const Request* request = context::find_request(call, requests[i]);
        if (request && is_part_of(task_owner, request))
            return true;
    }
    return false;
}

// A sleeper's handles that others look at, with every message. Of more handles its own thread looks, and is woken with
// every message: that costs a wake-up, and a look at so many handles costs as much.
constexpr size_t kMostAsked = 64;

// True when end_complete would find one. Any thread, while their own one waits.
bool some_may_be_complete(size_t count, const shmemx_request_t* requests) {
    return std::any_of(requests, requests + count, [](shmemx_request_t handle) {
        return handle == HEDDLE_REQUEST_COMPLETE || (handle != SHMEMX_REQUEST_NULL && context::is_quiet(handle));
    });
}

// Waits until at least one of the requests is complete, and ends one or all that are.
size_t wait_for_some(const Call& call, size_t count, shmemx_request_t* requests, size_t* indices, bool all) {
    require_requests(call, count, requests);
    size_t found = 0, living = 0;
    sync::EventCount& wakeup = progress::engine->wakeup();
    uint32_t seen_wakeup = 0;
    const operations::ObservedWait observed(operations::Observer::Wait::kRequest, call);
    progress::engine->wait_for(
        call.function,
        [&](const progress::Owners& owners) { return is_part_of_any(call, owners.request, count, requests); },
        [&] {
            // Acquire: what preceded the advance is seen below. What follows advances again (Engine::wake_waiters,
            // Engine::on_messages).
            seen_wakeup = wakeup.value.load(std::memory_order_acquire);
            found = end_complete(call, count, requests, indices, all, &living);
            return found > 0 || living == 0;
        },
        [&] { return count <= kMostAsked ? some_may_be_complete(count, requests) : wakeup.reached(seen_wakeup + 1); });
    return found;
}

}  // namespace

int allocate_request(const Call& call, shmemx_request_t* req, long options) {
    require_request(call, req);
    *req = SHMEMX_REQUEST_NULL;
    if (options & ~SHMEMX_REQUEST_SHARED) {
        base::complain(call.function, "options %#lx: the bits %#lx are unknown", options,
                       options & ~SHMEMX_REQUEST_SHARED);
        return 1;
    }
    *req = context::make_request((options & SHMEMX_REQUEST_SHARED) != 0);
    return *req == SHMEMX_REQUEST_NULL;
}

void free_request(const Call& call, shmemx_request_t* req) {
    require_request(call, req);
    if (Request* request = context::find_request(call, *req)) {
        wait_for(call, request);
        context::end_handle(call, request);
    }
    tell_of_end();
    operations::complete_stores();
    *req = SHMEMX_REQUEST_NULL;
}

void begin_request(const Call& call, shmemx_request_t* req) {
    require_request(call, req);
    operations::begin_capture(call, req);
}

void end_request(const Call& call, shmemx_request_t* req) {
    require_request(call, req);
    operations::end_capture(call, req);
}

void merge_requests(const Call& call, shmemx_request_t* req, size_t count, shmemx_request_t* requests) {
    require_request(call, req);
    require_requests(call, count, requests);
    operations::join(call, req);
    for (size_t i = 0; i < count; ++i) {
        if (&requests[i] == req || (requests[i] == *req && *req != HEDDLE_REQUEST_COMPLETE))
            base::fatal(call.function, "req is requests[%zu], too: right would be another request", i);
        Request* part = context::find_request(call, requests[i]);
        requests[i] = SHMEMX_REQUEST_NULL;
        if (!part)
            continue;
        context::claim_captured(*part);
        if (Request* whole = part->has_nothing() ? nullptr : context::request_to_post(call, req)) {
            context::move_claims(part, whole);
            part->parent_side = whole->post();
            // The hold that end_handle drops below orders this store before Request::release reads `parent`.
            part->parent.store(whole, std::memory_order_release);
        } else if (!part->has_nothing()) {
            wait_for(call, part);  // no memory for a request to merge the part into
        }
        context::end_handle(call, part);
    }
    progress::engine->wake_waiters();  // a part may have ended here, for which another thread waits through the whole
}

void wait_request(const Call& call, shmemx_request_t* req) {
    require_request(call, req);
    Request* request = context::find_request(call, *req);
    if (request)
        wait_for(call, request);
    end_if_private(call, req, request);
}

void wait_request_local(const Call& call, shmemx_request_t* req) {
    require_request(call, req);
    if (Request* request = context::find_request(call, *req))
        // On the node, a source may be reused when the operation is complete.
        wait_for(call, request, RequestWait::For::kSources);
}

int test_request(const Call& call, shmemx_request_t* req) {
    require_request(call, req);
    Request* request = context::find_request(call, *req);
    if (!is_complete(request)) {
        tell_of_look();
        progress::engine->help([&](const progress::Owners& owners) { return is_part_of(owners.request, request); });
        progress::poll_in_loop();
        if (!is_complete(request))
            return 0;
    }
    end_if_private(call, req, request);
    return 1;
}

size_t wait_any_request(const Call& call, size_t count, shmemx_request_t* requests) {
    size_t index = SIZE_MAX;
    wait_for_some(call, count, requests, &index, false);
    return index;
}

size_t wait_some_requests(const Call& call, size_t count, shmemx_request_t* requests, size_t* indices) {
    if (count > 0)
        operations::require_pointer(call.function, "indices", indices);
    return wait_for_some(call, count, requests, indices, true);
}

size_t test_any_request(const Call& call, size_t count, shmemx_request_t* requests) {
    require_requests(call, count, requests);
    size_t index = SIZE_MAX, living;
    if (end_complete(call, count, requests, &index, false, &living) == 0 && living > 0) {
        tell_of_look();
        progress::engine->help(
            [&](const progress::Owners& owners) { return is_part_of_any(call, owners.request, count, requests); });
        progress::poll_in_loop();
        end_complete(call, count, requests, &index, false, &living);
    }
    return index;
}

void fence_request(const Call& call, shmemx_request_t* req) {
    require_request(call, req);
    if (Request* request = context::find_request(call, *req)) {
        // Completes large transfers of the node now: later operations are stores, which nothing delays.
        wait_for(call, request, operations::find_observer() ? RequestWait::For::kAll : RequestWait::For::kNode);
        operations::remote_request_fence(call, *request);
    }
    tell_of_end();
    operations::order_stores();
}

}  // namespace heddle::runtime
