// Put with signal, and the signal's own operations. Any thread.
#pragma once

#include "base/error.h"
#include "operations/check.h"
#include "operations/rma.h"

#include <heddle/constants.h>
#include <heddle/hot_path.h>

namespace heddle::operations {

// Where this PE reaches pe's signal; checked before the data moves, so that a bad signal changes nothing.
inline uint64_t* reach_signal(const char* function, shmem_ctx_t ctx, uint64_t* sig_addr, int pe) {
    if (reinterpret_cast<uintptr_t>(sig_addr) % sizeof *sig_addr != 0)
        base::fatal(function, "sig_addr %p is not a multiple of %zu", static_cast<void*>(sig_addr), sizeof *sig_addr);
    return reinterpret_cast<uint64_t*>(reach(function, ctx, "sig_addr", sig_addr, sizeof *sig_addr, pe));
}

inline void put_signal(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                       size_t element_bytes, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) {
    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        base::fatal(function, "sig_op %d is wrong: right would be SHMEM_SIGNAL_SET (%d) or SHMEM_SIGNAL_ADD (%d)",
                    sig_op, SHMEM_SIGNAL_SET, SHMEM_SIGNAL_ADD);
    uint64_t* remote_signal = reach_signal(function, ctx, sig_addr, pe);
    heddle_put(function, ctx, dest, source, nelems, element_bytes, pe);
    // Release: whoever sees the signal through wait, test or signal_fetch (acquire) sees the data.
    if (sig_op == SHMEM_SIGNAL_SET)
        __atomic_store_n(remote_signal, signal, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(remote_signal, signal, __ATOMIC_RELEASE);
}

inline uint64_t signal_fetch(const char* function, const uint64_t* sig_addr) {
    require_running(function);
    check_ivars(function, "sig_addr", sig_addr, 1, sizeof *sig_addr);
    return __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);  // pairs with put_signal, and with fence at the source
}

}  // namespace heddle::operations
