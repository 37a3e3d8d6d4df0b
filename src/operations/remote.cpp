#include "operations/remote.h"

#include "base/error.h"
#include "base/settings.h"
#include "fabric/network.h"
#include "memory/symmetric.h"
#include "progress/wait_policy.h"

#include <heddle/constants.h>
#include <heddle/request.h>
#include <algorithm>

namespace heddle::operations {

namespace {

using context::Context;
using fabric::Address;
using fabric::Lane;
using fabric::Stream;
namespace record = fabric::record;

// --- Lanes: one for each thread and context; a context that one thread at a time uses has a single one.

bool has_one_lane(const Context& context) {
    return (context.options & (SHMEM_CTX_PRIVATE | SHMEM_CTX_SERIALIZED)) != 0;
}

Lane& find_lane(Context& context) {
    const bool one = has_one_lane(context);
    const void* const thread = (context.options & SHMEM_CTX_SERIALIZED) ? nullptr : fabric::this_thread();
    Lane* lane = context.lanes.load(std::memory_order_acquire);  // pairs with make_lane
    while (lane && !one && lane->producer.thread.load(std::memory_order_relaxed) != thread) lane = lane->next;
    if (!lane)
        lane = fabric::network->make_lane(context.lanes, thread, context::spread_of(context));
    if (!lane)
        base::fatal("network", "no memory for a lane");
    const context::Numbering& numbering = context.numbering;
    const bool as_world = numbering.start == 0 && numbering.stride == 1 && !numbering.list && !base::settings.check;
    const auto words = [](const memory::Region& region) {
        return region.bytes < record::kWord ? 0 : region.bytes - record::kWord + 1;
    };
    const memory::Region &heap = memory::symmetric->heap, &data = memory::symmetric->data;
    last_lane = {.ctx = context::handle_of(context),
                 .epoch = context::lanes_epoch.load(std::memory_order_relaxed),
                 .n_pes = as_world ? numbering.size : 0,
                 .streams = lane->streams,
                 .heap = heap,
                 .data = data,
                 .heap_words = words(heap),
                 .data_words = words(data),
                 .context = &context,
                 .lane = lane};
    return *lane;
}

inline Lane& lane_of(Context& context) {
    if (__builtin_expect(
            last_lane.context == &context && last_lane.epoch == context::lanes_epoch.load(std::memory_order_relaxed),
            1))
        return *last_lane.lane;
    return find_lane(context);
}

inline Lane& lane_for(const Under& under) {
    return under.lane ? *under.lane : lane_of(context::context_of(under.ctx));
}

inline Stream& stream_for(const Under& under, int pe) {
    return lane_for(under).to(pe);
}

bool keeps_order(const Under& under) {
    return (context::context_of(under.ctx).options & SHMEMX_CTX_ORDERED) != 0;
}

// Where order is kept, what comes behind large data waits until all of it is there; so it goes through the ring, in
// pieces, until its size makes up for a round trip. Over several rails it always does: each change of rails would wait.
bool stays_in_stream(const Under& under, size_t bytes) {
    const Lane& lane = lane_for(under);
    const bool changes = lane.n_rails > 1 && lane.spread == fabric::Spread::kInOrder;
    return keeps_order(under) && (changes || bytes < fabric::kMostPiece);
}

// Large data in pieces: calls post(stream, at, bytes) for each, with the stream of a rail that has little to do.
template <class Post>
void in_pieces(const Under& under, int pe, size_t bytes, Post post) {
    Stream& stream = stream_for(under, pe);
    if (!stream.rails)
        return post(stream, size_t{0}, bytes);
    const auto rails = static_cast<size_t>(lane_for(under).n_rails);
    const size_t piece = std::clamp(record::padded(bytes / rails), fabric::kLargeBytes, fabric::kMostPiece);
    for (size_t at = 0; at < bytes;) {
        // No piece that is not large, but for the whole.
        const size_t left = bytes - at, now = left < piece + fabric::kLargeBytes ? left : piece;
        Stream& quickest = stream.rails->quickest(under.call.function);
        post(quickest, at, now);
        stream.rails->posted(quickest, now);
        at += now;
    }
}

Address address_of(const void* address) {
    Address found;
    find_region(address, &found);
    return found;
}

// What has been posted to the stream so far joins the request.
inline void join_stream(const Under& under, Stream& stream) {
    if (under.req)
        context::claim(under.call, under.req, stream);
}

// Whether what is long enough, or waited for, goes past the records; a context that keeps order stays with them.
bool goes_natively(const Under& under, Stream& stream) {
    return !keeps_order(under) && stream.is_native(under.call.function);
}

void wait_for_returns(const Under& under, int pe) {
    const Lane& lane = lane_for(under);
    lane.all_to(pe, [](Stream& stream) { stream.hurry(); });
    lane.all_to(pe, [&](Stream& stream) {
        const uint64_t number = stream.returns();
        progress::wait_for_stores(under.call.function, &stream, [&] { return stream.has_returned(number); });
    });
}

void wait_until_local(const char* function, Stream& stream) {
    if (stream.is_local())
        return;
    stream.hurry();
    progress::wait_for_stores(function, &stream, [&] { return stream.is_local(); });
}

template <class Visit>
bool all_streams(Context& context, Visit visit) {
    for (Lane* lane = context.lanes.load(std::memory_order_acquire); lane; lane = lane->next)  // pairs with make_lane
        if (!lane->all(visit))
            return false;
    return true;
}

void finish(const char* function, Stream& stream) {
    const uint64_t position = stream.published(), returns = stream.published_returns();
    progress::wait_for_stores(function, &stream,
                              [&] { return stream.is_complete(position) && stream.has_returned(returns); });
}

}  // namespace

constinit thread_local LastLane last_lane;

bool is_remote(int pe) {
    return memory::symmetric->peers[pe].heap == nullptr;
}

void remote_put(const Under& under, void* dest, const void* source, size_t bytes, int pe) {
    const char* const function = under.call.function;
    const Address to = address_of(dest);
    const auto* const from = static_cast<const char*>(source);
    if (bytes < fabric::kLargeBytes || stays_in_stream(under, bytes)) {
        for (size_t at = 0; at < bytes; at += fabric::kLargeBytes) {
            Stream& stream = stream_for(under, pe);
            const size_t now = std::min(bytes - at, fabric::kLargeBytes);
            char* const place = stream.room(function, record::put_bytes(now));
            stream.publish(record::put(place, {to.offset + at, to.region}, from + at, now));
            join_stream(under, stream);
        }
        return;
    }
    in_pieces(under, pe, bytes, [&](Stream& stream, size_t at, size_t now) {
        const Address piece = {to.offset + at, to.region};
        if (goes_natively(under, stream))
            stream.put_native(function, piece, from + at, now);
        else
            stream.put_large(function, piece, from + at, now);
        join_stream(under, stream);
    });
    if (keeps_order(under))
        lane_for(under).order(function, pe);
    if (under.blocking)
        remote_put_done(under, pe);
}

void remote_put_done(const Under& under, int pe) {
    lane_for(under).all_to(pe, [&](Stream& stream) { wait_until_local(under.call.function, stream); });
}

void remote_get(const Under& under, void* dest, const void* source, size_t bytes, int pe) {
    const char* const function = under.call.function;
    const Address from = address_of(source);
    auto* const to = static_cast<char*>(dest);
    const auto post = [&](Stream& stream, size_t at, size_t now) {
        const Address piece = {from.offset + at, from.region};
        // Behind what is under way a short one takes no longer as a record, and sees it.
        const bool alone = under.blocking && stream.is_complete(stream.position());
        if ((alone || now >= fabric::kLargeBytes) && goes_natively(under, stream)) {
            stream.get_native(function, to + at, piece, now);
        } else {
            stream.expect_return(function, to + at, now);
            stream.publish(record::get(stream.room(function, record::kMostShort), piece, now));
        }
        join_stream(under, stream);
    };
    if (bytes < fabric::kLargeBytes)
        post(stream_for(under, pe), 0, bytes);
    else
        in_pieces(under, pe, bytes, post);
    if (under.blocking)
        wait_for_returns(under, pe);
}

void remote_amo(const Under& under, heddle_amo_op op, void* fetch, const void* dest, uint64_t operand, uint64_t compare,
                size_t bytes, int pe) {
    Stream& stream = stream_for(under, pe);
    const char* const function = under.call.function;
    if (fetch)
        stream.expect_return(function, fetch, bytes);
    stream.publish(record::atomic(stream.room(function, record::kMostShort), address_of(dest), op, operand, compare,
                                  bytes, fetch != nullptr));
    join_stream(under, stream);
    if (under.blocking && fetch)
        wait_for_returns(under, pe);
}

void remote_signal(const Under& under, uint64_t* sig_addr, uint64_t value, int sig_op, int pe) {
    const char* const function = under.call.function;
    lane_for(under).order(function, pe);
    Stream& stream = stream_for(under, pe);
    stream.publish(record::signal(stream.room(function, record::kMostShort), address_of(sig_addr), value,
                                  sig_op == SHMEM_SIGNAL_ADD));
    join_stream(under, stream);
}

void remote_letter(const Under& under, int pe, uint64_t key, uint32_t from, const void* data, size_t bytes) {
    Lane& lane = lane_for(under);
    lane.order(under.call.function, pe);
    Stream& stream = lane.to(pe);
    stream.publish(
        record::letter(stream.room(under.call.function, record::letter_bytes(bytes)), key, from, data, bytes));
}

void remote_put_letter(const Under& under, void* dest, const void* source, size_t bytes, int pe, uint64_t key,
                       uint32_t from) {
    Lane& lane = lane_for(under);
    const char* const function = under.call.function;
    if (bytes < fabric::kLargeBytes && lane.n_rails == 1) {
        Stream& stream = lane.to(pe);
        char* const at = stream.room(function, record::put_bytes(bytes) + record::letter_bytes(0));
        stream.publish(record::letter(record::put(at, address_of(dest), source, bytes), key, from, nullptr, 0));
        return;
    }
    remote_put(under, dest, source, bytes, pe);
    remote_letter(under, pe, key, from, nullptr, 0);
}

void remote_go(const Under& under, int pe) {
    lane_for(under).all_to(pe, [](Stream& stream) { stream.hurry(); });
    fabric::network->poll();
}

void remote_fence(const char* function, shmem_ctx_t ctx) {
    Context& context = context::context_of(ctx);
    const bool one = has_one_lane(context);
    const void* const thread = fabric::this_thread();
    for (Lane* lane = context.lanes.load(std::memory_order_acquire); lane; lane = lane->next) {  // pairs with make_lane
        const bool mine = one || lane->producer.thread.load(std::memory_order_relaxed) == thread;
        if (mine) {
            lane->order_all(function);
            continue;
        }
        lane->all([&](Stream& stream) {  // another thread's stream does not order what this one's brings
            if (!stream.is_quiet())
                stream.hurry();
            return true;
        });
        lane->all([&](Stream& stream) {
            finish(function, stream);
            return true;
        });
    }
}

void remote_quiet(const char* function, shmem_ctx_t ctx) {
    Context& context = context::context_of(ctx);
    all_streams(context, [](Stream& stream) {
        if (!stream.is_quiet())
            stream.hurry();
        return true;
    });
    all_streams(context, [&](Stream& stream) {
        finish(function, stream);
        return true;
    });
}

void remote_quiet_all(const char* function) {
    const auto each = [](auto visit) {
        fabric::network->for_each_lane([&](Lane& lane) {
            lane.all([&](Stream& stream) {
                visit(stream);
                return true;
            });
        });
    };
    each([](Stream& stream) { stream.hurry(); });
    each([&](Stream& stream) { finish(function, stream); });
}

void remote_quiet_to(const char* function, shmem_ctx_t ctx, const int* pes, size_t npes) {
    Context& context = context::context_of(ctx);
    const context::Numbering numbering = context.numbering;
    const auto each = [&](auto visit) {
        for (Lane* lane = context.lanes.load(std::memory_order_acquire); lane; lane = lane->next)
            for (size_t i = 0; i < npes; ++i) lane->all_to(numbering.pe(pes[i]), visit);
    };
    each([](Stream& stream) { stream.hurry(); });
    each([&](Stream& stream) { finish(function, stream); });
}

void remote_quiet_local(const char* function, shmem_ctx_t ctx) {
    Context& context = context::context_of(ctx);
    all_streams(context, [](Stream& stream) {
        if (!stream.is_local())
            stream.hurry();
        return true;
    });
    all_streams(context, [&](Stream& stream) {
        wait_until_local(function, stream);
        return true;
    });
}

bool is_remote_quiet(shmem_ctx_t ctx) {
    Context& context = context::context_of(ctx);
    const auto quiet = [](Stream& stream) { return stream.is_quiet(); };
    if (all_streams(context, quiet))
        return true;
    all_streams(context, [](Stream& stream) {
        stream.hurry();
        return true;
    });
    fabric::network->poll();
    return all_streams(context, quiet);
}

}  // namespace heddle::operations
