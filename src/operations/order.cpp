#include "operations/order.h"

#include "base/counters.h"
#include "base/tsan.h"
#include "context/context.h"
#include "fabric/network.h"
#include "operations/observer.h"
#include "operations/remote.h"

namespace heddle::operations {

namespace {

bool is_settled(const context::Context& context) {
    return context.outstanding.load(std::memory_order_acquire) == 0;  // pairs with operations::finish
}

// The observer, which has been told that what was issued on ctx is to be complete; null: there is none.
Observer* tell_of_quiet(const char* function, shmem_ctx_t ctx, const int* pes = nullptr, size_t npes = 0) {
    Observer* const told = find_observer();
    if (told)
        told->complete(function, ctx, pes, npes);
    return told;
}

void settle_transfers(const char* function, const context::Context& context) {
    progress::engine->wait_for(
        function, [&](const progress::Owners& owners) { return owners.context == &context; },
        [&] { return is_settled(context); });
}

}  // namespace

bool find_ctx_slowly(const char* function, shmem_ctx_t ctx) {
    require_running(function);
    if (ctx == SHMEM_CTX_INVALID)
        return false;
    require_target(function, ctx, 0);
    return true;
}

void settle(const char* function, shmem_ctx_t ctx) {
    base::counters->remote_quiets.add_cheaply();
    tsan::release();
    const ObservedWait observed(tell_of_quiet(function, ctx), Observer::Wait::kQuiet, {function}, ctx);
    settle_transfers(function, context::context_of(ctx));
    if (fabric::network)
        remote_quiet(function, ctx);
}

void settle_all(const char* function) {
    tsan::release();
    const ObservedWait observed(tell_of_quiet(function, nullptr), Observer::Wait::kQuiet, {function});
    progress::engine->wait_for(
        function, [](const progress::Owners&) { return true; }, [] { return progress::engine->outstanding() == 0; });
    if (fabric::network)
        remote_quiet_all(function);
}

namespace {

void order_all(const char* function, shmem_ctx_t ctx) {
    settle_transfers(function, context::context_of(ctx));
    if (fabric::network)
        remote_fence(function, ctx);
}

[[gnu::cold, gnu::noinline]] void order_observed(Observer& told, const char* function, shmem_ctx_t ctx) {
    told.order(function, ctx);
    const ObservedWait observed(&told, Observer::Wait::kFence, {function}, ctx);
    order_all(function, ctx);
}

}  // namespace

void settle_order(const char* function, shmem_ctx_t ctx) {
    base::counters->remote_fences.add_cheaply();
    tsan::release();
    if (Observer* const told = find_observer())
        return order_observed(*told, function, ctx);
    order_all(function, ctx);
}

void pe_quiet(const char* function, shmem_ctx_t ctx, const int* target_pes, size_t npes) {
    if (!find_ctx(function, ctx))
        return;
    if (npes > 0)
        require_pointer(function, "target_pes", target_pes);
    for (size_t i = 0; i < npes; ++i) require_target(function, ctx, target_pes[i]);
    if (any_outstanding()) {
        base::counters->remote_quiets.add_cheaply();
        tsan::release();
        const ObservedWait observed(tell_of_quiet(function, ctx, target_pes, npes), Observer::Wait::kQuiet, {function},
                                    ctx);
        settle_transfers(function, context::context_of(ctx));
        if (fabric::network)
            remote_quiet_to(function, ctx, target_pes, npes);
    }
    HEDDLE_FENCE(__ATOMIC_SEQ_CST);  // as in quiet
}

void quiet_local(const char* function, shmem_ctx_t ctx) {
    if (!find_ctx(function, ctx) || !any_outstanding())
        return;
    const ObservedWait observed(tell_of_quiet(function, ctx), Observer::Wait::kQuiet, {function}, ctx);
    settle_transfers(function, context::context_of(ctx));
    if (fabric::network)
        remote_quiet_local(function, ctx);
}

int quiet_test(const char* function, shmem_ctx_t ctx) {
    if (!find_ctx(function, ctx))
        return 1;
    if (Observer* const told = find_observer(); told && !told->is_complete(ctx))
        return 0;
    const context::Context& context = context::context_of(ctx);
    if (!is_settled(context)) {
        progress::engine->help([&](const progress::Owners& owners) { return owners.context == &context; });
        if (!is_settled(context))
            return 0;
    }
    if (fabric::network && !is_remote_quiet(ctx))
        return 0;
    tsan::acquire(progress::engine);
    tsan::release();
    HEDDLE_FENCE(__ATOMIC_SEQ_CST);  // as in quiet
    return 1;
}

}  // namespace heddle::operations
