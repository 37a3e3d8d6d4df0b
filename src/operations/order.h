// fence and quiet. On-node operations are plain loads and stores (docs/internals/memory-model.md), but for the large transfers
// that another thread carries out (transfer.h): those are waited for, and so is what goes to other nodes (remote.h).
// Any thread.
#pragma once

#include "operations/check.h"
#include "progress/engine.h"

#include <heddle/hot_path.h>

namespace heddle::operations {

// True when ctx is a context; false for SHMEM_CTX_INVALID, on which fence and quiet are no operations. Ends the PE when
// it is neither, or there is no library. A live context's table has an entry for PE 0; that of a destroyed one has
// none, and so it is for all before init and in checked runs.
bool find_ctx_slowly(const char* function, shmem_ctx_t ctx);
inline bool find_ctx(const char* function, shmem_ctx_t ctx) {
    if (ctx != SHMEM_CTX_INVALID && ctx->peers[0].heap_size != 0)
        return true;
    return find_ctx_slowly(function, ctx);
}

// Waits for all of ctx that outlasts its call, and helps with it.
void settle(const char* function, shmem_ctx_t ctx);
// The same for all contexts.
void settle_all(const char* function);
// Waits for the transfers of ctx, and orders what goes to other nodes.
void settle_order(const char* function, shmem_ctx_t ctx);

// Transfers under way, or a network, where nobody counts.
inline bool any_outstanding() {
    return HEDDLE_UNLIKELY(progress::engine->may_be_outstanding());
}
inline void settle_if_any(const char* function, shmem_ctx_t ctx) {
    if (any_outstanding())
        settle(function, ctx);  // acquires what the other threads did: no fence is needed behind
}

// x86-64: no instruction, stores are seen in order. aarch64: dmb ish.
inline void fence(const char* function, shmem_ctx_t ctx) {
    if (!find_ctx(function, ctx))
        return;
    HEDDLE_FENCE(__ATOMIC_ACQ_REL);  // pairs with the acquire loads of wait, test and signal_fetch at the target
    if (any_outstanding())
        settle_order(function, ctx);
}

// Full: a load after quiet must not be satisfied before the stores ahead of it are visible.
inline void quiet(const char* function, shmem_ctx_t ctx) {
    if (!find_ctx(function, ctx))
        return;
    HEDDLE_FENCE(__ATOMIC_SEQ_CST);
    settle_if_any(function, ctx);
}

// What quiet and fence are for operations that were complete when they returned.
inline void complete_stores() {
    HEDDLE_FENCE(__ATOMIC_SEQ_CST);
}
inline void order_stores() {
    HEDDLE_FENCE(__ATOMIC_ACQ_REL);
}

void pe_quiet(const char* function, shmem_ctx_t ctx, const int* target_pes, size_t npes);

// The sources of what was posted on ctx may be used again: on the node that is when it has been carried out.
void quiet_local(const char* function, shmem_ctx_t ctx);

// A quiet when nothing on ctx is outstanding, as on SHMEM_CTX_INVALID, and 1; otherwise 0, after a slice of what is.
int quiet_test(const char* function, shmem_ctx_t ctx);

}  // namespace heddle::operations
