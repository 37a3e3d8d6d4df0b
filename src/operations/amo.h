// The slow path of the atomics. Any thread; atomic with the inlined ones, being the same CPU operations.
#pragma once

#include "operations/check.h"
#include "operations/transfer.h"

#include <heddle/hot_path.h>

namespace heddle::operations {

inline uint64_t slow_amo(const char* function, shmem_ctx_t ctx, heddle_amo_op op, const void* dest, uint64_t operand,
                         uint64_t compare, size_t bytes, int pe) {
    const int world_pe = require_target(function, ctx, pe);
    keep_order(ctx);
    const char* argument = op == HEDDLE_AMO_FETCH ? "source" : "dest";
    return heddle_amo_on(op, require_atomic(function, argument, dest, bytes, world_pe), operand, compare, bytes);
}

// Under *req.
inline uint64_t amo_under(const base::Call& call, shmem_ctx_t ctx, heddle_amo_op op, const void* dest, uint64_t operand,
                          uint64_t compare, size_t bytes, int pe, shmemx_request_t* req) {
    require_pointer(call.function, "req", req);
    const context::Posting posting(call, req);
    const uint64_t old = slow_amo(call.function, ctx, op, dest, operand, compare, bytes, pe);
    join(call, req);
    return old;
}

}  // namespace heddle::operations
