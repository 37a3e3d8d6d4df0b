// Transfers that may outlast their call: puts and gets under a request, and the nbi forms between shmemx_request_begin
// and _end. Short ones, and all while no core is free for another thread, are carried out at once. A large one becomes
// a task of the engine: the background thread and waiting threads copy its slices. Threads: any.
#pragma once

#include "base/call.h"
#include "context/request.h"
#include "operations/capture.h"
#include "operations/observer.h"
#include "operations/remote.h"

#include <heddle/abi.h>
#include <heddle/request.h>

#include <cstddef>
#include <cstdint>

namespace heddle::operations {

// The signal that a put sends after its data.
struct SignalTo {
    uint64_t* sig_addr = nullptr;  // the program's argument; null: no signal
    uint64_t* address = nullptr;   // in this PE's address space; null: on another node
    uint64_t value = 0;
    int op = 0;
    int pe = 0;  // of the world

    void send() const;  // on this node
};

// The nbi forms: under the request that captures this thread's operations, if there is one.
void put_nbi(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
             size_t element_bytes, int pe);
void get_nbi(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
             size_t element_bytes, int pe);

// Put and get under *req.
void issue_put(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
               size_t element_bytes, int pe, shmemx_request_t* req, const SignalTo& signal = {});
void issue_get(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
               size_t element_bytes, int pe, shmemx_request_t* req);

// A put to a PE of another node, with its signal, if it has one. Ends the PE when an argument is wrong. pe: of the
// world.
void put_far(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe, const SignalTo& signal);

// True when the observer takes a put with a signal. Ends the PE when an argument is wrong. pe: of the context.
bool observe_put_signal(ObservedOperation* observed, const base::Call& call, shmem_ctx_t ctx, void* dest,
                        const void* source, size_t nelems, size_t element_bytes, int pe, shmemx_request_t* req,
                        const SignalTo& signal, bool blocking);

// Makes or checks *req for an operation that is already complete.
void join(const base::Call& call, shmemx_request_t* req);

}  // namespace heddle::operations
