// Operations on PEs that load and store do not reach: each becomes a record in the calling thread's stream to the PE
// (fabric/endpoint/stream.h). What is checked has been checked (check.h); pe is of the world. Any thread.
#pragma once

#include "context/context.h"
#include "context/request.h"
#include "memory/symmetric.h"

#include <heddle/abi.h>

#include <cstddef>
#include <cstdint>

namespace heddle::operations {

// What this thread last sent through, and all that the common case needs to know: valid while nothing of it has changed
// hands, which the epoch tells.
struct LastStreamSet {
    shmem_ctx_t ctx = nullptr;
    uint32_t epoch = 0;
    int n_pes = 0;  // of the context, where its numbers are those of the world; otherwise 0
    std::atomic<fabric::Stream*>* streams = nullptr;  // the stream set's
    memory::SymmetricRegion heap, data;
    size_t heap_words = 0, data_words = 0;  // bytes at which a word may begin
    const context::Context* context = nullptr;
    fabric::StreamSet* stream_set = nullptr;
};
extern constinit thread_local LastStreamSet last_stream_set __attribute__((tls_model("initial-exec")));

// The region that address lies in, or else the static data, and in *to what it is on any PE.
inline const memory::SymmetricRegion& find_region(const void* address, fabric::Address* to) {
    const memory::Symmetric& memory = *memory::symmetric;
    const bool in_heap = memory.heap.holds(address);
    const memory::SymmetricRegion& region = in_heap ? memory.heap : memory.data;
    *to = {reinterpret_cast<uintptr_t>(address) - region.base,
           in_heap ? fabric::RegionName::kHeap : fabric::RegionName::kData};
    return region;
}

// The stream to pe in the common case: the same context as before, a PE that has been sent to, no checks asked for.
// Otherwise null, and all is to be checked.
[[gnu::always_inline]] inline fabric::Stream* stream_at_once(const LastStreamSet& last, shmem_ctx_t ctx, int pe) {
    if (last.ctx != ctx || last.epoch != context::stream_sets_epoch.load(std::memory_order_relaxed) ||
        static_cast<unsigned>(pe) >= static_cast<unsigned>(last.n_pes))
        return nullptr;
    return last.streams[pe].load(std::memory_order_relaxed);
}

// A put of a word in that case, to symmetric memory, where the stream takes it without further ado: that stream, or
// null, and nothing has been done.
[[gnu::always_inline]] inline fabric::Stream* put_word_at_once(shmem_ctx_t ctx, void* dest, uint64_t bits, int pe) {
    const LastStreamSet& last = last_stream_set;
    fabric::Stream* const stream = stream_at_once(last, ctx, pe);
    if (!stream)
        return nullptr;
    const auto address = reinterpret_cast<uintptr_t>(dest);
    if (address - last.heap.base < last.heap_words)
        return stream->put_word_at_once({address - last.heap.base, fabric::RegionName::kHeap}, bits) ? stream : nullptr;
    if (address - last.data.base < last.data_words)
        return stream->put_word_at_once({address - last.data.base, fabric::RegionName::kData}, bits) ? stream : nullptr;
    return nullptr;
}
[[gnu::always_inline]] inline fabric::Stream* put_word_at_once(shmem_ctx_t ctx, void* dest, const void* source,
                                                               size_t nelems, size_t element_bytes, int pe) {
    if (nelems > fabric::record::kWord || nelems * element_bytes != fabric::record::kWord || !source)
        return nullptr;
    uint64_t bits;
    memcpy(&bits, source, sizeof bits);
    return put_word_at_once(ctx, dest, bits, pe);
}

// A short put in that case: the stream that it has gone to, or null when nothing has been done.
inline fabric::Stream* put_at_once(const char* function, shmem_ctx_t ctx, void* dest, const void* source, size_t nelems,
                                   size_t element_bytes, int pe) {
    const size_t bytes = nelems * element_bytes;  // an overflow needs more elements than are let through
    if (nelems > fabric::record::kMaxSmallPut || bytes - 1 >= fabric::record::kMaxSmallPut || !source)
        return nullptr;
    fabric::Stream* const stream = stream_at_once(last_stream_set, ctx, pe);
    if (!stream)  // maybe there is no memory yet, either
        return nullptr;
    fabric::Address to;
    const memory::SymmetricRegion& region = find_region(dest, &to);
    if (to.offset >= region.bytes || bytes > region.bytes - to.offset)
        return nullptr;
    char* const at = stream->reserve(function, fabric::record::put_bytes(bytes));
    stream->publish(fabric::record::put(at, to, source, bytes));
    return stream;
}

// True when this CPU does not reach pe's memory.
bool is_remote(int pe);

// Who waits for an operation: its caller, a quiet, or a request.
struct IssueParams {
    base::Call call;
    shmem_ctx_t ctx;
    shmemx_request_t* req = nullptr;  // null: none
    bool blocking = false;            // the caller goes on when it is done: at its source for a put, here for a get
    fabric::StreamSet* stream_set = nullptr;  // to be used instead of the thread's of ctx
};

void remote_put(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe);
// The sources of what was put to pe without blocking may be used again when this returns.
void remote_put_done(const IssueParams& issue, int pe);
void remote_get(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe);
// The old value of those operations that have one goes to `fetch` (`bytes` of it; null: it is not wanted).
void remote_amo(const IssueParams& issue, heddle_amo_op op, void* fetch, const void* dest, uint64_t operand,
                uint64_t compare, size_t bytes, int pe);
// The signal is seen behind what was put before it on the same context by this thread.
void remote_signal(const IssueParams& issue, uint64_t* sig_addr, uint64_t value, int sig_op, int pe);

// A control message to pe (fabric/endpoint/control_inbox.h), behind what was put to it before on the same context by
// this thread.
void remote_control(const IssueParams& issue, int pe, uint64_t key, uint32_t from, const void* data, size_t bytes);
// A put and an empty control message behind it, which comes when the data is there: in one message where the data is
// not large.
void remote_put_control(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe, uint64_t key,
                        uint32_t from);
// What was posted to pe waits for no more.
void remote_go(const IssueParams& issue, int pe);

// What was put on ctx before is delivered before what comes behind.
void remote_fence(const char* function, shmem_ctx_t ctx);
// All on ctx is complete; or all to the PEs. An operation that other threads post meanwhile is not waited for.
void remote_quiet(const char* function, shmem_ctx_t ctx);
void remote_quiet_all(const char* function);  // on every context
void remote_quiet_to(const char* function, shmem_ctx_t ctx, const int* pes, size_t npes);
// The sources of all on ctx may be used again.
void remote_quiet_local(const char* function, shmem_ctx_t ctx);
bool is_remote_quiet(shmem_ctx_t ctx);

}  // namespace heddle::operations
