// fence and quiet for on-node operations, which are plain loads and stores (docs/memory-model.md). Any thread.
#pragma once

#include "operations/check.h"

#include <heddle/hot_path.h>

namespace heddle::operations {

// Ends the PE when there is no such context, or no library. A live context's table has an entry for PE 0; that of a
// destroyed one has none, and so it is for all before init and in checked runs.
inline void require_ctx(const char* function, shmem_ctx_t ctx) {
    if (ctx != SHMEM_CTX_INVALID && ctx->peers[0].heap_size != 0)
        return;
    require_target(function, ctx, 0);
}

// x86-64: no instruction, stores are seen in order. aarch64: dmb ish.
inline void fence(const char* function, shmem_ctx_t ctx) {
    require_ctx(function, ctx);
    HEDDLE_FENCE(__ATOMIC_ACQ_REL);  // pairs with the acquire loads of wait, test and signal_fetch at the target
}

// Full: a load after quiet must not be satisfied before the stores ahead of it are visible.
inline void quiet(const char* function, shmem_ctx_t ctx) {
    require_ctx(function, ctx);
    HEDDLE_FENCE(__ATOMIC_SEQ_CST);
}

inline void pe_quiet(const char* function, shmem_ctx_t ctx, const int* target_pes, size_t npes) {
    require_ctx(function, ctx);
    if (npes > 0)
        require_pointer(function, "target_pes", target_pes);
    for (size_t i = 0; i < npes; ++i) require_target(function, ctx, target_pes[i]);
    HEDDLE_FENCE(__ATOMIC_SEQ_CST);
}

}  // namespace heddle::operations
