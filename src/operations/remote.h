// Operations on PEs of other nodes. Each operation becomes a record in the calling thread's stream to the PE
// (fabric/endpoint/stream.h). Arguments have been checked (check.h); pe is of the world. Threads: any.
#pragma once

#include "context/context.h"
#include "context/request.h"
#include "memory/symmetric.h"

#include <heddle/abi.h>

#include <cstddef>
#include <cstdint>

namespace heddle::operations {

// The stream set that this thread has used last, beside what inlined code knows of it (heddle_streams_2, whose epoch
// this has; its PE numbers are those of the world, or there are none), and what the common case needs to know.
struct LastStreamSet {
    const context::Context* context = nullptr;
    fabric::StreamSet* stream_set = nullptr;
    memory::SymmetricRegion data;
    size_t data_words = 0;  // offsets at which a word may begin
};
extern constinit thread_local LastStreamSet last_stream_set;
// The one before: two contexts that a thread uses in turns stay cached, whichever of them is in last_stream_set. One
// and no more, because a library that is loaded by dlopen has some hundred bytes for such variables.
struct CachedStreamSet {
    heddle_streams streams = {};  // as heddle_streams_2 was
    const context::Context* context = nullptr;
    fabric::StreamSet* stream_set = nullptr;
};
extern constinit thread_local CachedStreamSet earlier_stream_set;

// What this thread has sent and the network has not taken yet leaves with the next poll: the thread is about to wait.
// May yield the core first (StreamSet::begin_wait). Of the contexts that it has used last.
void flush_before_wait();

// The region in which address lies, the static data if in none. *to: the address as it is named to other PEs.
inline const memory::SymmetricRegion& find_region(const void* address, fabric::Address* to) {
    const memory::Symmetric& memory = *memory::symmetric;
    const bool in_heap = memory.heap.holds(address);
    const memory::SymmetricRegion& region = in_heap ? memory.heap : memory.data;
    *to = {reinterpret_cast<uintptr_t>(address) - region.base,
           in_heap ? fabric::RegionName::kHeap : fabric::RegionName::kData};
    return region;
}

// The stream to pe in the common case: the context of `cached`, a PE that was sent to before, no
// checked run. Otherwise null: the caller then takes the slow path.
[[gnu::always_inline]] inline fabric::Stream* stream_at_once(const heddle_streams& cached, shmem_ctx_t ctx, int pe) {
    if (cached.ctx != ctx || cached.epoch != context::stream_sets_epoch().load(std::memory_order_relaxed) ||
        static_cast<unsigned>(pe) >= cached.n_pes)
        return nullptr;
    return fabric::Stream::with(__atomic_load_n(cached.to + pe, __ATOMIC_RELAXED));
}

// A put of one word to symmetric memory in the common case of stream_at_once. Returns the stream. Null, and nothing
// was done, when its ring must first make space, its message is full, or the address is out of range.
[[gnu::always_inline]] inline fabric::Stream* put_word_at_once(const heddle_streams& cached, shmem_ctx_t ctx,
                                                               void* dest, uint64_t bits, int pe) {
    fabric::Stream* const stream = stream_at_once(cached, ctx, pe);
    if (!stream)
        return nullptr;
    const LastStreamSet& last = last_stream_set;  // the regions are those of every context
    const auto address = reinterpret_cast<uintptr_t>(dest);
    if (const uint64_t offset = address - cached.heap_base; offset < cached.heap_words)
        return stream->put_word_at_once({offset, fabric::RegionName::kHeap}, bits) ? stream : nullptr;
    if (address - last.data.base < last.data_words)
        return stream->put_word_at_once({address - last.data.base, fabric::RegionName::kData}, bits) ? stream : nullptr;
    return nullptr;
}
[[gnu::always_inline]] inline fabric::Stream* put_word_at_once(shmem_ctx_t ctx, void* dest, uint64_t bits, int pe) {
    const bool is_last = __builtin_expect(heddle_streams_2.ctx == ctx, 1);
    return put_word_at_once(is_last ? heddle_streams_2 : earlier_stream_set.streams, ctx, dest, bits, pe);
}
// Whether a put is of one word, and that word.
[[gnu::always_inline]] inline bool is_word(const void* source, size_t nelems, size_t element_bytes, uint64_t* bits) {
    if (nelems > fabric::record::kWord || nelems * element_bytes != fabric::record::kWord || !source)
        return false;
    memcpy(bits, source, sizeof *bits);
    return true;
}
[[gnu::always_inline]] inline fabric::Stream* put_word_at_once(shmem_ctx_t ctx, void* dest, const void* source,
                                                               size_t nelems, size_t element_bytes, int pe) {
    uint64_t bits;
    return is_word(source, nelems, element_bytes, &bits) ? put_word_at_once(ctx, dest, bits, pe) : nullptr;
}

// The stream to pe in the common case, of either cached context; or null.
inline fabric::Stream* stream_at_once(shmem_ctx_t ctx, int pe) {
    fabric::Stream* const stream = stream_at_once(heddle_streams_2, ctx, pe);
    return stream ? stream : stream_at_once(earlier_stream_set.streams, ctx, pe);
}

// True when pe's memory is not in this PE's address space.
bool is_remote(int pe);

// How an operation is issued: for its caller, under a request, or to be completed by a quiet.
struct IssueParams {
    base::Call call;
    shmem_ctx_t ctx;
    shmemx_request_t* req = nullptr;  // null: none
    bool blocking = false;  // returns when done: a put when its source may be reused, a get when the data is here
    fabric::StreamSet* stream_set = nullptr;  // used instead of the calling thread's for ctx
};

void remote_put(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe);
// Returns when the sources of all puts to pe may be reused.
void remote_put_done(const IssueParams& issue, int pe);
void remote_get(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe);
// fetch receives `bytes` of the old value; null: not wanted.
void remote_amo(const IssueParams& issue, heddle_amo_op op, void* fetch, const void* dest, uint64_t operand,
                uint64_t compare, size_t bytes, int pe);
// The signal is seen after what this thread put before on the same context.
void remote_signal(const IssueParams& issue, uint64_t* sig_addr, uint64_t value, int sig_op, int pe);
// remote_put and remote_signal: in one message unless the data is large. bytes: 0 for a signal alone.
void remote_put_signal(const IssueParams& issue, void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                       uint64_t value, int sig_op, int pe);

// Sends a control message to pe (fabric/endpoint/control_inbox.h). It arrives after what this thread put to pe before
// on the same context.
void remote_control(const IssueParams& issue, int pe, const fabric::ControlKey& key, const void* data, size_t bytes);
// A put, and a control message with the number of its bytes that arrives after the data: in one message unless the data
// is large.
void remote_put_control(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe,
                        const fabric::ControlKey& key);
// Sends what was posted to pe now, instead of gathering more.
void remote_go(const IssueParams& issue, int pe);

// Orders what was put on ctx before this call, by any thread, ahead of what any thread puts on it afterwards
// (docs/decisions/0030). Waits for nothing while no other thread has something under way on ctx; otherwise as
// remote_quiet. Where other threads have used ctx, the next of their operations on it wait for what this thread has
// under way now.
void remote_fence(const char* function, shmem_ctx_t ctx);
// Wait until all operations on ctx, on every context, or on ctx to these PEs are complete. Operations that other
// threads post meanwhile are not waited for.
void remote_quiet(const char* function, shmem_ctx_t ctx);
void remote_quiet_all(const char* function);
void remote_quiet_to(const char* function, shmem_ctx_t ctx, const int* pes, size_t npes);
// Waits until the sources of all operations on ctx may be reused.
void remote_quiet_local(const char* function, shmem_ctx_t ctx);
// Whether records on ctx may gather from here on, until a message is full or flushed; never in a program that asked for
// SHMEM_THREAD_MULTIPLE. Where not, what has gathered leaves.
void remote_batch(shmem_ctx_t ctx, bool batches);
// True when no operation on ctx is outstanding; otherwise makes progress once.
bool is_remote_quiet(shmem_ctx_t ctx);

}  // namespace heddle::operations
