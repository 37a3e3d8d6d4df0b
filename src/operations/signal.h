// Put with signal, and the signal's own operations. Threads: any.
#pragma once

#include "base/error.h"
#include "operations/check.h"
#include "operations/rma.h"
#include "operations/transfer.h"
#include "operations/wait.h"

#include <heddle/constants.h>
#include <heddle/hot_path.h>

namespace heddle::operations {

// The target of a signal to pe, a number of the context. Ends the PE when the signal is wrong: before the data moves,
// so that a wrong signal changes nothing.
inline SignalTo signal_to(const char* function, shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int sig_op,
                          int pe) {
    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        base::fatal(function, "sig_op %d is wrong: right would be SHMEM_SIGNAL_SET (%d) or SHMEM_SIGNAL_ADD (%d)",
                    sig_op, SHMEM_SIGNAL_SET, SHMEM_SIGNAL_ADD);
    if (reinterpret_cast<uintptr_t>(sig_addr) % sizeof *sig_addr != 0)
        base::fatal(function, "sig_addr %p is not a multiple of %zu", static_cast<void*>(sig_addr), sizeof *sig_addr);
    char* const address = reach(function, ctx, "sig_addr", sig_addr, sizeof *sig_addr, pe);
    const int world_pe = address ? pe : require_target(function, ctx, pe);  // needed for other nodes only
    return {sig_addr, reinterpret_cast<uint64_t*>(address), signal, sig_op, world_pe};
}

// blocking: returns when source may be reused.
inline void put_signal(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                       size_t element_bytes, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,
                       bool blocking = true) {
    const SignalTo to = signal_to(function, ctx, sig_addr, signal, sig_op, pe);
    ObservedOperation observed;
    if (HEDDLE_UNLIKELY(find_observer() != nullptr) &&
        observe_put_signal(&observed, {function}, ctx, dest, source, nelems, element_bytes, pe, nullptr, to, blocking))
        return;
    if (to.address) {
        heddle_put(function, ctx, dest, source, nelems, element_bytes, pe);
        return to.send();
    }
    const IssueParams issue = {.call = {function}, .ctx = ctx};
    put_far(issue, dest, source, extent(function, nelems, element_bytes), to.pe, to);
    if (blocking)
        remote_put_done(issue, to.pe);
}

// Under *req.
inline void put_signal_nbe(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                           size_t element_bytes, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe,
                           shmemx_request_t* req) {
    issue_put(call, ctx, dest, source, nelems, element_bytes, pe, req,
              signal_to(call.function, ctx, sig_addr, signal, sig_op, pe));
}

// Under the request that captures this thread's operations, if there is one.
inline void put_signal_nbi(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                           size_t element_bytes, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) {
    if (shmemx_request_t* req = capturing)
        put_signal_nbe(call, ctx, dest, source, nelems, element_bytes, sig_addr, signal, sig_op, pe, req);
    else
        put_signal(call.function, ctx, dest, source, nelems, element_bytes, sig_addr, signal, sig_op, pe, false);
}

inline uint64_t signal_fetch(const char* function, const uint64_t* sig_addr) {
    require_running(function);
    check_ivars(function, "sig_addr", sig_addr, 1, sizeof *sig_addr);
    progress::poll_after_test();  // first: the value is one that the caller waits for
    const uint64_t value = load(sig_addr);
    saw(sig_addr);
    return value;
}

}  // namespace heddle::operations
