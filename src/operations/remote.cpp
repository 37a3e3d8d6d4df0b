#include "operations/remote.h"

#include "base/error.h"
#include "base/settings.h"
#include "fabric/endpoint/awaited.h"
#include "fabric/network.h"
#include "memory/symmetric.h"
#include "operations/capture.h"
#include "operations/remote_records.h"
#include "operations/request_fence.h"
#include "operations/transfer.h"
#include "os/asymmetric_fence.h"
#include "os/thread_exit.h"
#include "progress/wait_policy.h"

#include <heddle/constants.h>
#include <heddle/request.h>
#include <algorithm>

alignas(64) __thread heddle_streams heddle_streams_2 = {};  // in one cache line

namespace heddle::operations {

constinit thread_local LastStreamSet last_stream_set;
constinit thread_local CachedStreamSet earlier_stream_set;

namespace {

using context::Context;
using fabric::Address;
using fabric::Stream;
using fabric::StreamSet;
namespace record = fabric::record;

bool is_quiet(const StreamSet& stream_set) {
    return stream_set.all_active([](Stream& stream) { return stream.is_quiet(); });
}

// Waits until all is complete that has been posted to the stream sets of the list, but for one of them or null.
void quiet_all(const char* function, StreamSet* first, const StreamSet* but = nullptr) {
    fabric::wait_until_quiet(function, [&](auto visit) {
        for (StreamSet* stream_set = first; stream_set; stream_set = stream_set->next) {
            if (stream_set != but)
                stream_set->all_active([&](Stream& stream) {
                    visit(stream);
                    return true;
                });
        }
    });
}

// --- Stream sets: one for each thread and context. A PRIVATE or SERIALIZED context has a single stream set.

bool has_one_stream_set(const Context& context) {
    return (context.options & (SHMEM_CTX_PRIVATE | SHMEM_CTX_SERIALIZED)) != 0;
}

// How much of a channel a stream set of the context asks for.
fabric::Weight weight_of(const Context& context) {
    if (context.options & SHMEM_CTX_PRIVATE)
        return fabric::Weight::kPrivate;
    return context.options & SHMEM_CTX_SERIALIZED ? fabric::Weight::kSerialized : fabric::Weight::kOther;
}

// Before this thread sends on the context through its stream set: what fences of other threads have left under way is
// complete. Such a fence has counted in Context::fences; or it saw no stream set but its own, and missed this one,
// which has been `made` since.
void wait_for_fences_of_others(const char* function, Context& context, StreamSet& stream_set, bool made) {
    if (made && stream_set.next)
        os::heavy_fence();  // pairs with operations::remote_fence: it sees the stream set, or here its records are seen
    // Acquire: pairs with operations::mark_fence.
    const uint64_t fences = context.fences.load(std::memory_order_acquire);
    if (!made && stream_set.fences_seen == fences)
        return;
    // Acquire: pairs with Network::make_stream_set.
    quiet_all(function, context.stream_sets.first.load(std::memory_order_acquire), &stream_set);
    stream_set.fences_seen = fences;
}

// A fence of this thread, which sends through `mine`, leaves records under way: other threads wait for them before they
// send on the context. The epoch advances behind the count, and find_stream_set reads the count behind the epoch.
void mark_fence(Context& context, StreamSet& mine) {
    // Release: pairs with operations::wait_for_fences_of_others.
    const uint64_t fences = context.fences.fetch_add(1, std::memory_order_release);
    if (mine.fences_seen == fences)
        mine.fences_seen = fences + 1;
    // Release: pairs with operations::find_stream_set.
    const uint64_t epoch = context::stream_sets_epoch().fetch_add(1, std::memory_order_release);
    if (heddle_streams_2.epoch == epoch)
        heddle_streams_2.epoch = epoch + 1;
}

// At the end of a thread: the next ones have its stream sets. What it still sends behind this finds one anew.
void leave_stream_sets() {
    settle_capture();
    heddle_streams_2 = {};
    last_stream_set = {};
    earlier_stream_set = {};
    if (fabric::network)
        fabric::network->for_each_stream_set([](StreamSet& stream_set) { stream_set.leave(fabric::this_thread()); });
}

StreamSet& find_stream_set(const char* function, Context& context) {
    // Acquire: pairs with operations::mark_fence.
    const uint64_t epoch = context::stream_sets_epoch().load(std::memory_order_acquire);
    const bool one = has_one_stream_set(context);
    const void* const thread = (context.options & SHMEM_CTX_SERIALIZED) ? nullptr : fabric::this_thread();
    // Acquire: pairs with Network::make_stream_set.
    StreamSet* stream_set =
        one ? context.stream_sets.first.load(std::memory_order_acquire) : context.stream_sets.of(thread);
    const bool found = stream_set != nullptr;
    if (!found && thread)
        stream_set = context.stream_sets.take_over(thread);  // one that a thread has left
    const bool made = !stream_set;
    if (made)
        stream_set = fabric::network->make_stream_set(context.stream_sets, thread, context::spread_of(context),
                                                      weight_of(context));
    if (!stream_set)
        base::fatal("network", "no memory for a stream set");
    if (!found && thread)
        os::ThreadExit<leave_stream_sets>::ask();  // where no end can be noticed, the stream set stays the thread's
    wait_for_fences_of_others(function, context, *stream_set, made);
    settle_capture();
    const base::Members& members = context.members;
    const bool as_world = members.start == 0 && members.stride == 1 && !members.list && !base::settings.observed;
    const auto words = [](const memory::SymmetricRegion& region) {
        return region.bytes < record::kWord ? 0 : region.bytes - record::kWord + 1;
    };
    const memory::SymmetricRegion &heap = memory::symmetric->heap, &data = memory::symmetric->data;
    if (last_stream_set.context != &context)
        earlier_stream_set = {heddle_streams_2, last_stream_set.context, last_stream_set.stream_set};
    heddle_stream* const* const to = fabric::heads_of(stream_set->streams);
    const unsigned n_pes = as_world ? static_cast<unsigned>(members.size) : 0;
    heddle_streams_2 = {.ctx = context::handle_of(context),
                        .epoch = epoch,
                        .n_pes = n_pes,
                        .to = to,
                        .heap_base = heap.base,
                        .heap_words = words(heap),
                        .nbi_to = captured_or(to)};
    last_stream_set = {&context, stream_set, data, words(data)};
    return *stream_set;
}

inline StreamSet& stream_set_of(const char* function, Context& context) {
    const uint64_t epoch = context::stream_sets_epoch().load(std::memory_order_relaxed);
    if (__builtin_expect(last_stream_set.context == &context && heddle_streams_2.epoch == epoch, 1))
        return *last_stream_set.stream_set;
    if (earlier_stream_set.context == &context && earlier_stream_set.streams.epoch == epoch)
        return *earlier_stream_set.stream_set;
    return find_stream_set(function, context);
}

inline StreamSet& stream_set_for(const IssueParams& issue) {
    return issue.stream_set ? *issue.stream_set : stream_set_of(issue.call.function, context::context_of(issue.ctx));
}

// Ahead of an operation to pe: what a fence of its request has left under way elsewhere (operations/request_fence.h).
inline void await_fence(const IssueParams& issue, StreamSet& stream_set, int pe) {
    if (issue.req)
        await_request_fence(issue.call, *issue.req, stream_set.to(pe));
}

bool keeps_order(const IssueParams& issue) {
    return (context::context_of(issue.ctx).options & SHMEMX_CTX_ORDERED) != 0;
}

// Where order is kept, operations behind large data wait until all of it has arrived. So data goes through the ring
// unless its size makes up for a round trip. With HEDDLE_ORDER=reorder on several rails it always does: each change of
// rails would wait.
bool stays_in_stream(const IssueParams& issue, const StreamSet& stream_set, size_t bytes) {
    const bool changes = stream_set.n_rails > 1 && stream_set.spread == fabric::Spread::kInOrder;
    return keeps_order(issue) && (changes || bytes < fabric::kMaxPiece);
}

// True when data of so many bytes goes in records of less than kLargeBytes.
bool goes_in_records(const IssueParams& issue, StreamSet& stream_set, int pe, size_t bytes) {
    if (bytes < fabric::kLargeBytes)
        return true;
    return bytes < kRendezvousBytes && stream_set.n_rails == 1 &&
           (keeps_order(issue) || !stream_set.to(pe).is_native(issue.call.function));
}

// Splits large data: calls post(stream, at, bytes) for each piece, with the stream of the rail that is expected to be
// done first.
template <class Post>
void in_pieces(const IssueParams& issue, StreamSet& stream_set, int pe, size_t bytes, Post post) {
    Stream& stream = stream_set.to(pe);
    if (!stream.rails)
        return post(stream, size_t{0}, bytes);
    const size_t share = record::padded(bytes / static_cast<size_t>(stream_set.n_rails));
    const size_t piece = std::clamp(share, fabric::kLargeBytes, fabric::kMaxPiece);
    for (size_t at = 0; at < bytes;) {
        // Every piece is large, unless the whole is one piece.
        const size_t left = bytes - at, now = left < piece + fabric::kLargeBytes ? left : piece;
        Stream& fastest = stream.rails->fastest(issue.call.function);
        post(fastest, at, now);
        stream.rails->posted(fastest, now);
        at += now;
    }
}

Address address_of(const void* address) {
    Address found;
    find_region(address, &found);
    return found;
}

// Adds what was posted to the stream so far to the request.
inline void join_stream(const IssueParams& issue, Stream& stream) {
    if (issue.req)
        context::claim(issue.call, issue.req, stream);
}

// True when large data, or a get that is waited for, goes by RDMA instead of records. Not in a context that keeps
// order.
bool goes_natively(const IssueParams& issue, Stream& stream) {
    return !keeps_order(issue) && stream.is_native(issue.call.function);
}

void wait_for_returns(const IssueParams& issue, int pe) {
    const StreamSet& stream_set = stream_set_for(issue);
    stream_set.all_to(pe, [](Stream& stream) { stream.flush(); });
    stream_set.all_to(pe, [&](Stream& stream) {
        const uint64_t number = stream.returns();
        progress::wait_for_stores(issue.call.function, &stream, [&] { return stream.has_returned(number); });
    });
}

}  // namespace

void flush_before_wait() {
    const uint64_t epoch = context::stream_sets_epoch().load(std::memory_order_relaxed);
    if (last_stream_set.stream_set && heddle_streams_2.epoch == epoch)
        last_stream_set.stream_set->begin_wait();
    if (earlier_stream_set.stream_set && earlier_stream_set.streams.epoch == epoch)
        earlier_stream_set.stream_set->begin_wait();
    // What gathers in a session of any context: the awaited PE may wait for it.
    const context::Contexts* const all = context::contexts;  // null: init waits
    if (all && all->batching.load(std::memory_order_relaxed) != 0)
        fabric::network->for_each_stream_set([](StreamSet& stream_set) { stream_set.flush(); });
}

bool is_remote(int pe) {
    return memory::symmetric->peers[pe].heap == nullptr;
}

namespace {

// Records that are published ahead of others belong to one stream set, found once: that may wait for other threads.
void put(const IssueParams& issue, StreamSet& stream_set, void* dest, const void* source, size_t bytes, int pe,
         Next next) {
    const char* const function = issue.call.function;
    const Address to = address_of(dest);
    const auto* const from = static_cast<const char*>(source);
    await_fence(issue, stream_set, pe);
    if (goes_in_records(issue, stream_set, pe, bytes) || stays_in_stream(issue, stream_set, bytes)) {
        if (bytes >= fabric::kLargeBytes)
            stream_set.to(pe).begin_together(bytes + kRoomForHeads);
        return for_records(bytes, next, [&](size_t at, size_t now, Next then) {
            Stream& stream = stream_set.to(pe);
            char* const place = stream.reserve(function, record::put_bytes(now));
            publish(stream, record::put(place, {to.offset + at, to.region}, from + at, now), then);
            join_stream(issue, stream);
        });
    }
    in_pieces(issue, stream_set, pe, bytes, [&](Stream& stream, size_t at, size_t now) {
        const Address piece = {to.offset + at, to.region};
        if (goes_natively(issue, stream))
            stream.put_native(function, piece, from + at, now);
        else
            stream.put_large(function, piece, from + at, now);
        join_stream(issue, stream);
    });
    if (keeps_order(issue))
        stream_set.order(function, pe);
    if (issue.blocking)
        remote_put_done(issue, pe);
}

void signal(const IssueParams& issue, StreamSet& stream_set, uint64_t* sig_addr, uint64_t value, int sig_op, int pe) {
    stream_set.order(issue.call.function, pe);
    Stream& stream = stream_set.to(pe);
    char* const at = stream.reserve(issue.call.function, record::kMaxShort);
    stream.publish(record::signal(at, address_of(sig_addr), value, sig_op == SHMEM_SIGNAL_ADD));
    join_stream(issue, stream);
}

void control(const IssueParams& issue, StreamSet& stream_set, int pe, const fabric::ControlKey& key, const void* data,
             size_t bytes) {
    stream_set.order(issue.call.function, pe);
    Stream& stream = stream_set.to(pe);
    char* const at = stream.reserve(issue.call.function, record::control_bytes(bytes));
    stream.publish(record::control(at, key, data, bytes));
}

}  // namespace

void remote_put(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe) {
    put(issue, stream_set_for(issue), dest, source, bytes, pe, Next::kNothing);
}

void remote_put_done(const IssueParams& issue, int pe) {
    stream_set_for(issue).all_to(pe, [&](Stream& stream) { wait_until_local(issue.call.function, stream); });
}

void remote_get(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe) {
    const char* const function = issue.call.function;
    const Address from = address_of(source);
    auto* const to = static_cast<char*>(dest);
    const auto post = [&](Stream& stream, size_t at, size_t now, Next next = Next::kNothing) {
        const Address piece = {from.offset + at, from.region};
        // A get of an idle stream goes by RDMA: behind outstanding operations a record takes no longer, and sees their
        // data.
        const bool alone = issue.blocking && stream.is_complete(stream.position());
        if ((alone || now >= fabric::kLargeBytes) && goes_natively(issue, stream)) {
            stream.get_native(function, to + at, piece, now);
        } else {
            stream.expect_return(function, to + at, now);
            publish(stream, record::get(stream.reserve(function, record::kMaxShort), piece, now), next);
        }
        join_stream(issue, stream);
    };
    StreamSet& stream_set = stream_set_for(issue);
    await_fence(issue, stream_set, pe);
    if (goes_in_records(issue, stream_set, pe, bytes))
        for_records(bytes, Next::kNothing,
                    [&](size_t at, size_t now, Next next) { post(stream_set.to(pe), at, now, next); });
    else
        in_pieces(issue, stream_set, pe, bytes, post);
    if (issue.blocking)
        wait_for_returns(issue, pe);
}

void remote_amo(const IssueParams& issue, heddle_amo_op op, void* fetch, const void* dest, uint64_t operand,
                uint64_t compare, size_t bytes, int pe) {
    StreamSet& stream_set = stream_set_for(issue);
    await_fence(issue, stream_set, pe);
    Stream& stream = stream_set.to(pe);
    const char* const function = issue.call.function;
    if (fetch)
        stream.expect_return(function, fetch, bytes);
    stream.publish(record::atomic(stream.reserve(function, record::kMaxShort), address_of(dest), op, operand, compare,
                                  bytes, fetch != nullptr));
    join_stream(issue, stream);
    if (issue.blocking && fetch)
        wait_for_returns(issue, pe);
}

void remote_signal(const IssueParams& issue, uint64_t* sig_addr, uint64_t value, int sig_op, int pe) {
    signal(issue, stream_set_for(issue), sig_addr, value, sig_op, pe);
}

void remote_put_signal(const IssueParams& issue, void* dest, const void* source, size_t bytes, uint64_t* sig_addr,
                       uint64_t value, int sig_op, int pe) {
    StreamSet& stream_set = stream_set_for(issue);
    await_fence(issue, stream_set, pe);
    if (bytes == 0 || bytes >= fabric::kLargeBytes || stream_set.n_rails > 1) {
        if (bytes != 0)
            put(issue, stream_set, dest, source, bytes, pe, Next::kMore);
        return signal(issue, stream_set, sig_addr, value, sig_op, pe);
    }
    stream_set.order(issue.call.function, pe);
    Stream& stream = stream_set.to(pe);
    char* const at = stream.reserve(issue.call.function, record::put_bytes(bytes) + record::kMaxShort);
    stream.publish(record::signal(record::put(at, address_of(dest), source, bytes), address_of(sig_addr), value,
                                  sig_op == SHMEM_SIGNAL_ADD));
    join_stream(issue, stream);
}

void remote_control(const IssueParams& issue, int pe, const fabric::ControlKey& key, const void* data, size_t bytes) {
    control(issue, stream_set_for(issue), pe, key, data, bytes);
}

void remote_put_control(const IssueParams& issue, void* dest, const void* source, size_t bytes, int pe,
                        const fabric::ControlKey& key) {
    StreamSet& stream_set = stream_set_for(issue);
    const char* const function = issue.call.function;
    if (bytes < fabric::kLargeBytes && stream_set.n_rails == 1) {
        Stream& stream = stream_set.to(pe);
        char* const at = stream.reserve(function, record::put_bytes(bytes) + record::control_bytes(sizeof bytes));
        stream.publish(record::control(record::put(at, address_of(dest), source, bytes), key, &bytes, sizeof bytes));
        return;
    }
    put(issue, stream_set, dest, source, bytes, pe, Next::kMore);
    control(issue, stream_set, pe, key, &bytes, sizeof bytes);
}

void remote_go(const IssueParams& issue, int pe) {
    bool waits = false;
    stream_set_for(issue).all_to(pe, [&](Stream& stream) {
        if (stream.has_left())
            return;
        stream.flush();
        waits = true;
    });
    if (waits)
        fabric::network->poll();
}

// The target keeps the order of the records of one stream set. It does not order one stream set behind another: where
// this thread has posted, other threads wait before they send behind the fence; what they have posted is waited for.
void remote_fence(const char* function, shmem_ctx_t ctx) {
    Context& context = context::context_of(ctx);
    if (!context.stream_sets.is_active())
        return;
    const bool one = has_one_stream_set(context);
    const void* const thread = fabric::this_thread();
    std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with operations::wait_for_fences_of_others
    // Acquire: pairs with Network::make_stream_set.
    StreamSet* const first = context.stream_sets.first.load(std::memory_order_acquire);
    StreamSet* mine = nullptr;
    for (StreamSet* stream_set = first; stream_set; stream_set = stream_set->next) {
        if (one || stream_set->producer.thread.load(std::memory_order_relaxed) == thread)
            mine = stream_set;
        else if (!is_quiet(*stream_set))
            return quiet_all(function, first);
    }
    if (!mine)
        return;
    mine->order_all(function);
    if (first->next && !is_quiet(*mine))
        mark_fence(context, *mine);
}

void remote_quiet(const char* function, shmem_ctx_t ctx) {
    const fabric::StreamSetList& stream_sets = context::context_of(ctx).stream_sets;
    if (stream_sets.is_active())
        quiet_all(function, stream_sets.first.load(std::memory_order_acquire));  // pairs with Network::make_stream_set
}

}  // namespace heddle::operations
