#include "operations/transfer.h"

#include "base/error.h"
#include "base/invariant.h"
#include "base/settings.h"
#include "base/tsan.h"
#include "context/context.h"
#include "operations/at_once.h"
#include "operations/check.h"
#include "operations/observer.h"
#include "operations/rma.h"
#include "progress/engine.h"

#include <heddle/constants.h>
#include <heddle/hot_path.h>
#include <algorithm>
#include <cstring>

namespace heddle::operations {

namespace {

// The unit of work: worth a claim and a cache miss or two, and short enough that a wait for the last slice is short.
constexpr size_t kSliceBytes = 128 * 1024;

// A large transfer, the payload of an engine's task.
struct Transfer {
    char* to;
    const char* from;
    size_t bytes;
    size_t slice_bytes;
    SignalTo signal;
    context::Request* request;  // null: none
    uint32_t side;
    context::Context* context;
};

void copy_slice(const void* payload, uint32_t slice) {
    const auto& transfer = *static_cast<const Transfer*>(payload);
    const size_t begin = slice * transfer.slice_bytes;
    HEDDLE_INVARIANT(begin < transfer.bytes);
    heddle_copy_long(transfer.to + begin, transfer.from + begin, std::min(transfer.slice_bytes, transfer.bytes - begin),
                     1);
}

void finish(const void* payload) {
    const auto& transfer = *static_cast<const Transfer*>(payload);
    transfer.signal.send();
    [[maybe_unused]] const uint32_t outstanding =
        transfer.context->outstanding.fetch_sub(1, std::memory_order_release);  // pairs with operations::is_settled
    HEDDLE_INVARIANT(outstanding != 0);
    transfer.request->complete(transfer.side);
}

// Makes the transfer a task of the engine. False when it must or should be carried out at once: no core is free, the
// context keeps order, or too many tasks are open. bytes: HEDDLE_LARGE_BYTES or more.
bool leave_to_others(const base::Call& call, shmem_ctx_t ctx, char* to, const char* from, size_t bytes,
                     shmemx_request_t* req, const SignalTo& signal) {
    progress::Engine& engine = *progress::engine;
    progress::count_this_thread();  // this thread, too, needs a core
    if (!engine.has_free_core() || (context::context_of(ctx).options & SHMEMX_CTX_ORDERED))
        return false;
    context::Request* request = context::request_to_post(call, req);
    if (!request)
        return false;
    context::Context& context = context::context_of(ctx);
    const size_t slice_bytes =
        std::max(kSliceBytes, (bytes / progress::Task::kMaxSlices / kSliceBytes + 1) * kSliceBytes);
    const auto slices = static_cast<uint32_t>((bytes + slice_bytes - 1) / slice_bytes);
    HEDDLE_INVARIANT(slices >= 1 && slices <= progress::Task::kMaxSlices);
    // Relaxed: a thread that waits for it synchronizes through the program.
    context.outstanding.fetch_add(1, std::memory_order_relaxed);
    const Transfer transfer = {to, from, bytes, slice_bytes, signal, request, request->post(), &context};
    if (engine.submit({request, &context}, slices, copy_slice, finish, transfer))
        return true;
    context.outstanding.fetch_sub(1, std::memory_order_relaxed);
    request->complete(transfer.side);
    engine.wake_waiters();  // another thread may have begun to wait for what was counted
    return false;
}

// Checks a put, a get or a signal's data as the program has told it, and finds the PE of the world. False: there is no
// data.
bool check_transfer(Operation* operation) {
    const char* const function = operation->call.function;
    operation->world_pe = require_target(function, operation->ctx, operation->pe);
    const size_t bytes = extent(function, operation->nelems, operation->element_bytes);
    if (bytes == 0)
        return false;
    const bool is_get = operation->kind == Operation::Kind::kGet;
    const void *const there = is_get ? operation->source : operation->dest, *const here = is_get ? operation->dest
                                                                                                 : operation->source;
    char* const reached = require_symmetric(function, is_get ? "source" : "dest", there, bytes, operation->world_pe);
    require_pointer(function, is_get ? "dest" : "source", here);
    if (reached)
        check_overlap(function, is_get ? here : reached, is_get ? reached : here, bytes);
    return true;
}

// True when the observer takes a put or a get under *req.
bool observe_transfer(ObservedOperation* observed, Operation::Kind kind, const base::Call& call, shmem_ctx_t ctx,
                      void* dest, const void* source, size_t nelems, size_t element_bytes, int pe,
                      shmemx_request_t* req, const SignalTo& signal) {
    if (signal.sig_addr)
        return observe_put_signal(observed, call, ctx, dest, source, nelems, element_bytes, pe, req, signal, false);
    Operation operation = {.kind = kind,
                           .call = call,
                           .ctx = ctx,
                           .pe = pe,
                           .dest = dest,
                           .source = source,
                           .nelems = nelems,
                           .element_bytes = element_bytes,
                           .req = req,
                           .blocking = false};
    if (check_transfer(&operation))
        return observed->is_taken(*observer, operation);
    called_from = nullptr;  // the observer is not told
    return false;
}

}  // namespace

void SignalTo::send() const {
    if (!address)
        return;
    tsan::release();
    // Release: pairs with operations::load, which then sees the data.
    if (op == SHMEM_SIGNAL_SET)
        __atomic_store_n(address, value, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(address, value, __ATOMIC_RELEASE);
}

bool observe_put_signal(ObservedOperation* observed, const base::Call& call, shmem_ctx_t ctx, void* dest,
                        const void* source, size_t nelems, size_t element_bytes, int pe, shmemx_request_t* req,
                        const SignalTo& signal, bool blocking) {
    Operation operation = {.kind = Operation::Kind::kPutSignal,
                           .call = call,
                           .ctx = ctx,
                           .pe = pe,
                           .dest = dest,
                           .source = source,
                           .nelems = nelems,
                           .element_bytes = element_bytes,
                           .sig_addr = signal.sig_addr,
                           .signal = signal.value,
                           .sig_op = signal.op,
                           .req = req,
                           .blocking = blocking};
    check_transfer(&operation);
    return observed->is_taken(*observer, operation);
}

void join(const base::Call& call, shmemx_request_t* req) {
    if (reinterpret_cast<uintptr_t>(*req) & HEDDLE_REQUEST_SKIP_POST)
        return;
    if (*req == SHMEMX_REQUEST_NULL && !base::settings.check)
        *req = HEDDLE_REQUEST_COMPLETE;
    else
        context::request_to_post(call, req);  // makes the request, or checks it
}

void put_nbi(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
             size_t element_bytes, int pe) {
    if (put_at_once(call.function, ctx, dest, source, nelems, element_bytes, pe, capturing)) {
        if (capturing && nelems * element_bytes == fabric::record::kWord)
            capture_stream(call, ctx, pe);
        return;
    }
    if (capturing)
        issue_put(call, ctx, dest, source, nelems, element_bytes, pe, capturing);
    else
        slow_put(call.function, ctx, dest, source, nelems, element_bytes, pe, false);
}

void get_nbi(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
             size_t element_bytes, int pe) {
    if (get_at_once(call.function, ctx, dest, source, nelems, element_bytes, pe, capturing))
        return;
    if (capturing)
        issue_get(call, ctx, dest, source, nelems, element_bytes, pe, capturing);
    else
        slow_get(call.function, ctx, dest, source, nelems, element_bytes, pe, false);
}

void put_far(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe, const SignalTo& signal) {
    if (bytes != 0) {
        require_pointer(issue.call.function, "source", source);
        require_symmetric(issue.call.function, "dest", dest, bytes, pe);
    }
    if (signal.sig_addr)
        remote_put_signal(issue, dest, source, bytes, signal.sig_addr, signal.value, signal.op, pe);
    else if (bytes != 0)
        remote_put(issue, dest, source, bytes, pe);
}

void issue_put(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
               size_t element_bytes, int pe, shmemx_request_t* req, const SignalTo& signal) {
    require_pointer(call.function, "req", req);
    const context::Posting posting(call, req);
    const size_t bytes = extent(call.function, nelems, element_bytes);
    ObservedOperation observed;
    if (HEDDLE_UNLIKELY(find_observer() != nullptr) &&
        observe_transfer(&observed, Operation::Kind::kPut, call, ctx, dest, source, nelems, element_bytes, pe, req,
                         signal))
        return;
    if (const int world_pe = require_target(call.function, ctx, pe); is_remote(world_pe)) {
        if (bytes == 0)
            join(call, req);
        put_far({call, ctx, req}, dest, source, bytes, world_pe, signal);
        if (req == capturing)
            capture_stream(call, ctx, pe);
        return;
    }
    if (bytes >= HEDDLE_LARGE_BYTES) {
        char* to = reach(call.function, ctx, "dest", dest, bytes, pe);
        require_pointer(call.function, "source", source);
        check_overlap(call.function, to, source, bytes);
        if (leave_to_others(call, ctx, to, static_cast<const char*>(source), bytes, req, signal))
            return;
    }
    heddle_put(call.function, ctx, dest, source, nelems, element_bytes, pe);
    signal.send();
    join(call, req);
}

void issue_get(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
               size_t element_bytes, int pe, shmemx_request_t* req) {
    require_pointer(call.function, "req", req);
    const context::Posting posting(call, req);
    const size_t bytes = extent(call.function, nelems, element_bytes);
    ObservedOperation observed;
    if (HEDDLE_UNLIKELY(find_observer() != nullptr) &&
        observe_transfer(&observed, Operation::Kind::kGet, call, ctx, dest, source, nelems, element_bytes, pe, req, {}))
        return;
    if (const int world_pe = require_target(call.function, ctx, pe); is_remote(world_pe)) {
        if (bytes == 0)
            return join(call, req);
        require_symmetric(call.function, "source", source, bytes, world_pe);
        require_pointer(call.function, "dest", dest);
        return remote_get({call, ctx, req}, dest, source, bytes, world_pe);
    }
    if (bytes >= HEDDLE_LARGE_BYTES) {
        const char* from = reach(call.function, ctx, "source", source, bytes, pe);
        require_pointer(call.function, "dest", dest);
        check_overlap(call.function, dest, from, bytes);
        if (leave_to_others(call, ctx, static_cast<char*>(dest), from, bytes, req, {}))
            return;
    }
    heddle_get(call.function, ctx, dest, source, nelems, element_bytes, pe);
    join(call, req);
}

}  // namespace heddle::operations
