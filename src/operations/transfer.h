// Transfers that may outlast their call: puts and gets under a request, and the nbi forms within shmemx_request_begin
// and _end. What is short, or where no core is free for another thread, is carried out at once. What is large becomes a
// task of the engine: its slices are copied by the background thread and by whoever waits. Any thread.
#pragma once

#include "base/call.h"
#include "context/request.h"
#include "operations/remote.h"

#include <heddle/abi.h>
#include <heddle/request.h>

#include <cstddef>
#include <cstdint>

namespace heddle::operations {

// What a put tells its target behind its data.
struct SignalTo {
    uint64_t* sig_addr = nullptr;  // as the program has it; null: nothing
    uint64_t* address = nullptr;   // as this PE reaches it; null: on another node
    uint64_t value = 0;
    int op = 0;
    int pe = 0;  // of the world

    void send() const;                          // on this node
    void send(const IssueParams& issue) const;  // anywhere
};

// The thread's nbi operations join *req from begin_capture to end_capture. Each ends the PE when it does not fit the
// other.
void begin_capture(const base::Call& call, shmemx_request_t* req);
void end_capture(const base::Call& call, shmemx_request_t* req);
// The request that captures this thread's nbi operations, or null.
extern constinit thread_local shmemx_request_t* capturing __attribute__((tls_model("initial-exec")));

// The nbi forms: under the request that captures this thread's operations, if one does.
void put_nbi(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
             size_t element_bytes, int pe);
void get_nbi(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
             size_t element_bytes, int pe);

// Put and get under *req.
void issue_put(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
               size_t element_bytes, int pe, shmemx_request_t* req, const SignalTo& signal = {});
void issue_get(const base::Call& call, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
               size_t element_bytes, int pe, shmemx_request_t* req);

// A complete operation joins *req.
void join(const base::Call& call, shmemx_request_t* req);

}  // namespace heddle::operations
