#include "context/context.h"

#include "base/invariant.h"
#include "base/settings.h"
#include "fabric/network.h"

HEDDLE_PE_LOCAL uint64_t heddle_streams_epoch_1 = 0;

namespace heddle::context {

HEDDLE_PE_LOCAL base::PePointer<Contexts> contexts;

namespace {

void retire(Context& context) {
    HEDDLE_INVARIANT(context.alive.load(std::memory_order_relaxed));  // it goes back to the pool once
    HEDDLE_INVARIANT(&context != &contexts->of_default);
    context.alive.store(false, std::memory_order_relaxed);
    context.abi.peers = contexts->nobody;
    set_batching(context, false);
    if (context.stream_sets.first.load(std::memory_order_relaxed)) {
        fabric::network->return_stream_sets(context.stream_sets);
        // A thread that goes on using the context breaks the specification: relaxed suffices.
        stream_sets_epoch().fetch_add(1, std::memory_order_relaxed);
    }
    contexts->pool.give(&context);
}

}  // namespace

fabric::Spread spread_of(const Context& context) {
    if (!(context.options & SHMEMX_CTX_ORDERED))
        return fabric::Spread::kAnyOrder;
    return base::settings.order == base::RailOrder::kReorder ? fabric::Spread::kInOrder : fabric::Spread::kOneRail;
}

void start_contexts(int n_pes, const heddle_peer* nobody) {
    if (!contexts)
        contexts = new Contexts;
    HEDDLE_INVARIANT(n_pes > 0 && nobody);
    contexts->nobody = nobody;
    contexts->of_default.members = {0, 1, n_pes, nullptr};
    set_batching(contexts->of_default, false);
    contexts->pool.for_each([](Context& context) {
        if (context.alive.load(std::memory_order_relaxed))
            retire(context);
    });
}

bool set_batching(Context& context, bool batches) {
    // One thread at a time is in the library, or none batches: relaxed.
    if (context.stream_sets.batches.exchange(batches, std::memory_order_relaxed) == batches)
        return false;
    contexts->batching.fetch_add(batches ? 1 : UINT32_MAX, std::memory_order_relaxed);
    return true;
}

shmem_ctx_t create(long options, shmem_team_t team, const base::Members& members, const heddle_peer* peers) {
    Context* context = contexts->pool.take();
    if (!context)
        return SHMEM_CTX_INVALID;
    HEDDLE_INVARIANT(!context->alive.load(std::memory_order_relaxed));
    HEDDLE_INVARIANT(!context->stream_sets.first.load(std::memory_order_relaxed));  // those of the one before went back
    HEDDLE_INVARIANT(peers && members.size > 0);
    context->options = options;
    context->team = team;
    context->members = members;
    context->abi.peers = peers;
    // Release: pairs with context::destroy_all_of and context::is_alive. Threads that use the context synchronize
    // through the program with the one that creates it.
    context->alive.store(true, std::memory_order_release);
    return &context->abi;
}

// Relaxed, both: who uses a new context at that place synchronizes through the program with who has made it.
void destroy(shmem_ctx_t ctx) {
    contexts->destroyed.fetch_add(1, std::memory_order_relaxed);
    retire(context_of(ctx));
}

void destroy_all_of(shmem_team_t team) {
    contexts->destroyed.fetch_add(1, std::memory_order_relaxed);
    contexts->pool.for_each([team](Context& context) {
        // Acquire: pairs with context::create.
        if (context.alive.load(std::memory_order_acquire) && context.team == team)
            retire(context);
    });
}

bool is_alive(shmem_ctx_t ctx) {
    if (ctx == SHMEM_CTX_DEFAULT)
        return true;
    const Context* context = contexts->pool.find(ctx);
    return context && context->alive.load(std::memory_order_acquire);  // pairs with context::create
}

Context& context_of(shmem_ctx_t ctx) {
    if (ctx == SHMEM_CTX_DEFAULT)
        return contexts->of_default;
    return *const_cast<Context*>(reinterpret_cast<const Context*>(ctx));
}

shmem_ctx_t handle_of(const Context& context) {
    return &context == &contexts->of_default ? SHMEM_CTX_DEFAULT : &context.abi;
}

}  // namespace heddle::context
