#include "operations/remote.h"

#include "base/error.h"
#include "base/settings.h"
#include "fabric/network.h"
#include "memory/symmetric.h"
#include "progress/wait_policy.h"

#include <heddle/constants.h>
#include <heddle/request.h>

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
        lane = fabric::network->make_lane(context.lanes, thread);
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

inline Stream& stream_for(const Under& under, int pe) {
    return (under.lane ? *under.lane : lane_of(context::context_of(under.ctx))).to(pe);
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
    return !(context::context_of(under.ctx).options & SHMEMX_CTX_ORDERED) && stream.is_native(under.call.function);
}

void wait_for_return(const char* function, Stream& stream) {
    const uint64_t number = stream.returns();
    stream.hurry();
    progress::wait_for_stores(function, &stream, [&] { return stream.has_returned(number); });
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
    Stream& stream = stream_for(under, pe);
    const char* const function = under.call.function;
    const Address to = address_of(dest);
    if (bytes < fabric::kLargeBytes) {
        stream.publish(record::put(stream.room(function, record::put_bytes(bytes)), to, source, bytes));
    } else if (goes_natively(under, stream)) {
        stream.put_native(function, to, static_cast<const char*>(source), bytes);
    } else {
        stream.put_large(function, to, static_cast<const char*>(source), bytes);
        if (context::context_of(under.ctx).options & SHMEMX_CTX_ORDERED)
            stream.order(function);
    }
    join_stream(under, stream);
    if (under.blocking && bytes >= fabric::kLargeBytes)
        wait_until_local(function, stream);
}

void remote_put_done(const Under& under, int pe) {
    wait_until_local(under.call.function, stream_for(under, pe));
}

void remote_get(const Under& under, void* dest, const void* source, size_t bytes, int pe) {
    Stream& stream = stream_for(under, pe);
    const char* const function = under.call.function;
    // Behind what is under way a short one takes no longer as a record, and sees it.
    const bool alone = under.blocking && stream.is_complete(stream.position());
    if ((alone || bytes >= fabric::kLargeBytes) && goes_natively(under, stream)) {
        stream.get_native(function, static_cast<char*>(dest), address_of(source), bytes);
    } else {
        stream.expect_return(function, dest, bytes);
        stream.publish(record::get(stream.room(function, record::kMostShort), address_of(source), bytes));
    }
    join_stream(under, stream);
    if (under.blocking)
        wait_for_return(function, stream);
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
        wait_for_return(function, stream);
}

void remote_signal(const Under& under, uint64_t* sig_addr, uint64_t value, int sig_op, int pe) {
    Stream& stream = stream_for(under, pe);
    const char* const function = under.call.function;
    stream.order(function);
    stream.publish(record::signal(stream.room(function, record::kMostShort), address_of(sig_addr), value,
                                  sig_op == SHMEM_SIGNAL_ADD));
    join_stream(under, stream);
}

void remote_letter(const Under& under, int pe, uint64_t key, uint32_t from, const void* data, size_t bytes) {
    Stream& stream = stream_for(under, pe);
    stream.publish(
        record::letter(stream.room(under.call.function, record::letter_bytes(bytes)), key, from, data, bytes));
}

void remote_put_letter(const Under& under, void* dest, const void* source, size_t bytes, int pe, uint64_t key,
                       uint32_t from) {
    Stream& stream = stream_for(under, pe);
    const char* const function = under.call.function;
    if (bytes < fabric::kLargeBytes) {
        char* const at = stream.room(function, record::put_bytes(bytes) + record::letter_bytes(0));
        stream.publish(record::letter(record::put(at, address_of(dest), source, bytes), key, from, nullptr, 0));
        return;
    }
    remote_put(under, dest, source, bytes, pe);
    stream.order(function);
    remote_letter(under, pe, key, from, nullptr, 0);
}

void remote_go(const Under& under, int pe) {
    stream_for(under, pe).hurry();
    fabric::network->poll();
}

void remote_fence(const char* function, shmem_ctx_t ctx) {
    Context& context = context::context_of(ctx);
    const bool one = has_one_lane(context);
    const void* const thread = fabric::this_thread();
    for (Lane* lane = context.lanes.load(std::memory_order_acquire); lane; lane = lane->next) {  // pairs with make_lane
        const bool mine = one || lane->producer.thread.load(std::memory_order_relaxed) == thread;
        lane->all([&](Stream& stream) {
            if (mine)
                stream.order(function);
            else if (!stream.is_quiet())  // another thread's stream does not order what this one's brings
                stream.hurry();
            return true;
        });
        if (!mine)
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
            for (size_t i = 0; i < npes; ++i)
                if (Stream* stream =
                        lane->streams[numbering.pe(pes[i])].load(std::memory_order_acquire))  // pairs with open
                    visit(*stream);
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
