// The slow path of the atomics. Any thread. Atomic with the inlined operations, because both use the same CPU
// instructions.
#pragma once

#include "base/tsan.h"
#include "operations/at_once.h"
#include "operations/check.h"
#include "operations/observer.h"
#include "operations/remote.h"
#include "operations/transfer.h"

#include <heddle/hot_path.h>
#include <cstring>

namespace heddle::operations {

// The datum in this PE's address space; null when the PE is on another node. *pe becomes the PE of the world.
inline char* reach_atomic(const char* function, shmem_ctx_t ctx, heddle_amo_op op, const void* dest, size_t bytes,
                          int* pe) {
    *pe = require_target(function, ctx, *pe);
    return require_atomic(function, op == HEDDLE_AMO_FETCH ? "source" : "dest", dest, bytes, *pe);
}

// Performs the atomic, or posts it to another node. fetch: receives the old value, or null.
[[gnu::noinline]] inline void post_amo(const IssueParams& issue, heddle_amo_op op, void* fetch, const void* dest,
                                       uint64_t operand, uint64_t compare, size_t bytes, int pe) {
    const int ctx_pe = pe;
    char* const datum = reach_atomic(issue.call.function, issue.ctx, op, dest, bytes, &pe);
    HEDDLE_OBSERVE(.kind = Operation::Kind::kAtomic, .call = issue.call, .ctx = issue.ctx, .pe = ctx_pe, .world_pe = pe,
                   .dest = const_cast<void*>(dest), .element_bytes = bytes, .amo = op, .operand = operand,
                   .compare = compare, .fetch = fetch, .req = issue.req, .blocking = issue.blocking || !fetch);
    if (!datum)
        return remote_amo(issue, op, fetch, dest, operand, compare, bytes, pe);
    keep_order(issue.ctx);
    tsan::release(datum);
    const uint64_t old = heddle_amo_on(op, datum, operand, compare, bytes);
    tsan::acquire(datum);
    if (fetch)
        memcpy(fetch, &old, bytes);
    if (issue.req)
        join(issue.call, issue.req);
}

// Returns the old value, unless op has HEDDLE_AMO_UNFETCHED.
inline uint64_t slow_amo(const base::Call& call, shmem_ctx_t ctx, heddle_amo_op op, const void* dest, uint64_t operand,
                         uint64_t compare, size_t bytes, int pe) {
    uint64_t old = 0;
    if (op & HEDDLE_AMO_UNFETCHED) {
        const auto wanted = static_cast<heddle_amo_op>(op & ~HEDDLE_AMO_UNFETCHED);
        if (!amo_at_once(call.function, ctx, wanted, nullptr, dest, operand, compare, bytes, pe, nullptr))
            post_amo({call, ctx}, wanted, nullptr, dest, operand, compare, bytes, pe);
    } else {
        post_amo({.call = call, .ctx = ctx, .blocking = true}, op, &old, dest, operand, compare, bytes, pe);
    }
    return old;
}

// Under the request that captures this thread's operations, if there is one.
inline void slow_amo_nbi(const base::Call& call, shmem_ctx_t ctx, heddle_amo_op op, void* fetch, const void* dest,
                         uint64_t operand, uint64_t compare, size_t bytes, int pe) {
    if (!amo_at_once(call.function, ctx, op, fetch, dest, operand, compare, bytes, pe, capturing))
        post_amo({call, ctx, capturing}, op, fetch, dest, operand, compare, bytes, pe);
}

// Under *req.
[[gnu::noinline]] inline void issue_amo(const base::Call& call, shmem_ctx_t ctx, heddle_amo_op op, void* fetch,
                                        const void* dest, uint64_t operand, uint64_t compare, size_t bytes, int pe,
                                        shmemx_request_t* req) {
    require_pointer(call.function, "req", req);
    const context::Posting posting(call, req);
    post_amo({call, ctx, req}, op, fetch, dest, operand, compare, bytes, pe);
}

}  // namespace heddle::operations
