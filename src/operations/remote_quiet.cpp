// What completes operations on other nodes, and sessions, which hold them back.
#include "fabric/endpoint/awaited.h"
#include "fabric/network.h"
#include "operations/remote.h"
#include "operations/remote_records.h"
#include "progress/wait_policy.h"

namespace heddle::operations {

namespace {

using context::Context;
using fabric::Stream;
using fabric::StreamSet;

// Calls visit for every stream that has something outstanding while it returns true; false when one call did not.
template <class Visit>
bool all_active(Context& context, Visit visit) {
    if (!context.stream_sets.is_active())
        return true;
    // Acquire: pairs with Network::make_stream_set.
    for (StreamSet* stream_set = context.stream_sets.first.load(std::memory_order_acquire); stream_set;
         stream_set = stream_set->next)
        if (!stream_set->all_active(visit))
            return false;
    return true;
}

// What has been posted on the context leaves.
void flush_all(Context& context) {
    all_active(context, [](Stream& stream) {
        stream.flush();
        return true;
    });
    fabric::network->poll();
}

}  // namespace

void remote_quiet_all(const char* function) {
    fabric::wait_until_quiet(function, [](auto visit) {
        fabric::network->for_each_stream_set([&](StreamSet& stream_set) {
            stream_set.all_active([&](Stream& stream) {
                visit(stream);
                return true;
            });
        });
    });
}

void remote_quiet_to(const char* function, shmem_ctx_t ctx, const int* pes, size_t npes) {
    Context& context = context::context_of(ctx);
    const base::Members members = context.members;
    fabric::wait_until_quiet(function, [&](auto visit) {
        // Acquire: pairs with Network::make_stream_set.
        for (StreamSet* stream_set = context.stream_sets.first.load(std::memory_order_acquire); stream_set;
             stream_set = stream_set->next)
            for (size_t i = 0; i < npes; ++i) stream_set->all_to(members.pe(pes[i]), visit);
    });
}

void remote_quiet_local(const char* function, shmem_ctx_t ctx) {
    Context& context = context::context_of(ctx);
    all_active(context, [](Stream& stream) {
        if (!stream.is_local())
            stream.flush();
        return true;
    });
    all_active(context, [&](Stream& stream) {
        wait_until_local(function, stream);
        return true;
    });
}

void remote_batch(shmem_ctx_t ctx, bool batches) {
    Context& context = context::context_of(ctx);
    if (progress::wait_policy->multiple_asked)
        batches = false;  // a thread that waits already would not flush what another one posts
    if (!context::set_batching(context, batches) || batches || !fabric::network)
        return;
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with Stream::holds
    flush_all(context);
}

bool is_remote_quiet(shmem_ctx_t ctx) {
    Context& context = context::context_of(ctx);
    const auto quiet = [](Stream& stream) { return stream.is_quiet(); };
    if (all_active(context, quiet))
        return true;
    flush_all(context);
    return all_active(context, quiet);
}

}  // namespace heddle::operations
