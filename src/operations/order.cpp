#include "operations/order.h"

#include "context/context.h"

namespace heddle::operations {

namespace {

bool is_settled(const context::Context& context) {
    return context.outstanding.load(std::memory_order_acquire) == 0;  // pairs with the end of a transfer
}

}  // namespace

void settle(const char* function, shmem_ctx_t ctx) {
    const context::Context& context = context::context_of(ctx);
    progress::engine->wait_for(
        function, [&](const progress::Owners& owners) { return owners.context == &context; },
        [&] { return is_settled(context); });
}

void settle_all(const char* function) {
    progress::engine->wait_for(
        function, [](const progress::Owners&) { return true; }, [] { return progress::engine->outstanding() == 0; });
}

void pe_quiet(const char* function, shmem_ctx_t ctx, const int* target_pes, size_t npes) {
    require_ctx(function, ctx);
    if (npes > 0)
        require_pointer(function, "target_pes", target_pes);
    for (size_t i = 0; i < npes; ++i) require_target(function, ctx, target_pes[i]);
    settle_if_any(function, ctx);
    HEDDLE_FENCE(__ATOMIC_SEQ_CST);
}

void quiet_local(const char* function, shmem_ctx_t ctx) {
    require_ctx(function, ctx);
    settle_if_any(function, ctx);
}

int quiet_test(const char* function, shmem_ctx_t ctx) {
    require_ctx(function, ctx);
    const context::Context& context = context::context_of(ctx);
    if (!is_settled(context)) {
        progress::engine->help([&](const progress::Owners& owners) { return owners.context == &context; });
        if (!is_settled(context))
            return 0;
    }
    HEDDLE_FENCE(__ATOMIC_SEQ_CST);
    return 1;
}

}  // namespace heddle::operations
