// fence and quiet. Operations on the node are plain loads and stores (docs/internals/memory-model.md). Only large
// transfers that another thread carries out (transfer.h) and operations on other nodes (remote.h) are waited for.
// Threads: any.
#pragma once

#include "operations/check.h"
#include "progress/engine.h"

#include <heddle/hot_path.h>

namespace heddle::operations {

// True when ctx is a context; false for SHMEM_CTX_INVALID, on which fence and quiet do nothing. Anything else ends the
// PE, and so does a call before init. A live context's table has an entry for PE 0. A destroyed context's has none, and
// neither has any before init and in checked runs.
bool find_ctx_slowly(const char* function, shmem_ctx_t ctx);
inline bool find_ctx(const char* function, shmem_ctx_t ctx) {
    if (ctx != SHMEM_CTX_INVALID && ctx->peers[0].heap_size != 0)
        return true;
    return find_ctx_slowly(function, ctx);
}

// Waits for all operations on ctx that outlast their call, and helps with them.
void settle(const char* function, shmem_ctx_t ctx);
// Waits for all operations on all contexts that outlast their call, and helps with them.
void settle_all(const char* function);
// Waits for the transfers on ctx, and orders its operations on other nodes.
void settle_order(const char* function, shmem_ctx_t ctx);

// True when transfers may be outstanding, or there is a network, whose operations are not counted.
inline bool any_outstanding() {
    return HEDDLE_UNLIKELY(progress::engine->may_be_outstanding());
}
inline void settle_if_any(const char* function, shmem_ctx_t ctx) {
    if (any_outstanding())
        settle(function, ctx);  // acquires what the other threads wrote: no fence is needed after it
}

// Cost on the node: no instruction on x86-64, where stores are seen in order; dmb ish on aarch64.
inline void fence(const char* function, shmem_ctx_t ctx) {
    if (!find_ctx(function, ctx))
        return;
    HEDDLE_FENCE(__ATOMIC_ACQ_REL);  // pairs with operations::load
    if (any_outstanding())
        settle_order(function, ctx);
}

// A full fence: no load after quiet is satisfied before earlier stores are visible. Pairs with operations::load.
inline void quiet(const char* function, shmem_ctx_t ctx) {
    if (!find_ctx(function, ctx))
        return;
    HEDDLE_FENCE(__ATOMIC_SEQ_CST);
    settle_if_any(function, ctx);
}

// The quiet and the fence for operations that are complete when they return.
inline void complete_stores() {
    HEDDLE_FENCE(__ATOMIC_SEQ_CST);
}
inline void order_stores() {
    HEDDLE_FENCE(__ATOMIC_ACQ_REL);
}

void pe_quiet(const char* function, shmem_ctx_t ctx, const int* target_pes, size_t npes);

// Returns when the sources of all operations on ctx may be reused: on the node, when the operations are complete.
void quiet_local(const char* function, shmem_ctx_t ctx);

// quiet if nothing on ctx is outstanding, and 1. Otherwise 0, after a slice of outstanding work.
int quiet_test(const char* function, shmem_ctx_t ctx);

}  // namespace heddle::operations
