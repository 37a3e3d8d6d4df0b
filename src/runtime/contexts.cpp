// Contexts and their sessions, the interface: checks arguments, then calls src/context.

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "context/context.h"
#include "fabric/network.h"
#include "memory/symmetric.h"
#include "operations/check.h"
#include "operations/order.h"
#include "operations/remote.h"
#include "runtime/runtime.h"
#include "team/team.h"

#include <heddle/constants.h>

namespace heddle::runtime {

using base::fatal;

namespace {

bool options_are_known(const char* function, long options) {
    constexpr long kOrders = SHMEMX_CTX_ORDERED | SHMEMX_CTX_RELAXED;
    constexpr long kKnown = SHMEM_CTX_PRIVATE | SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE | kOrders;
    if (options & ~kKnown)
        base::complain(function, "options %#lx: the bits %#lx are unknown", options, options & ~kKnown);
    if ((options & kOrders) == kOrders)
        base::complain(function, "options %#lx: right would be one of SHMEMX_CTX_ORDERED and SHMEMX_CTX_RELAXED",
                       options);
    return (options & ~kKnown) == 0 && (options & kOrders) != kOrders;
}

int create_on(const char* function, team::Team* team, long options, shmem_ctx_t* ctx) {
    operations::require_pointer(function, "ctx", ctx);
    *ctx = SHMEM_CTX_INVALID;
    if (!options_are_known(function, options))
        return 1;
    const heddle_peer* peers = team::peers_of(team, !base::settings.observed);
    if (!peers) {
        base::complain(function, "no address space for the table of a team's PEs; right would be a higher ulimit -v");
        return 1;
    }
    if (options & SHMEMX_CTX_ORDERED)
        peers = memory::symmetric->nobody;  // operations take the slow path, which keeps the order (operations/check.h)
    const team::Members& members = team->members;
    *ctx = context::create(options, team->handle, members, peers);
    return *ctx == SHMEM_CTX_INVALID;
}

// The stream set that the calling thread sends through; where it has none, the newest of the context. Null: nothing was
// sent to another node.
const fabric::StreamSet* stream_set_of(const context::Context& context) {
    const fabric::StreamSet* const own = context.stream_sets.of(fabric::this_thread());
    // Acquire: pairs with Network::make_stream_set.
    return own ? own : context.stream_sets.first.load(std::memory_order_acquire);
}

// Of the context and what it sends with, without what is reserved and never touched.
size_t bytes_of(const context::Context& context) {
    size_t bytes = HEDDLE_CONTEXT_BYTES;
    // Acquire: pairs with Network::make_stream_set.
    const fabric::StreamSet* stream_set = context.stream_sets.first.load(std::memory_order_acquire);
    for (; stream_set; stream_set = stream_set->next) bytes += sizeof *stream_set + stream_set->producer.quota.lent();
    return bytes;
}

// Ends the PE unless ctx is a context.
void require_alive(const char* function, shmem_ctx_t ctx) {
    if (!context::is_alive(ctx))
        fatal(function, "ctx %p is no context: it was destroyed, or never created", static_cast<const void*>(ctx));
}

}  // namespace

int create_context(const char* function, long options, shmem_ctx_t* ctx) {
    operations::require_running(function);
    return create_on(function, team::find(SHMEM_TEAM_WORLD), options, ctx);
}

int create_team_context(const char* function, shmem_team_t handle, long options, shmem_ctx_t* ctx) {
    operations::require_running(function);
    team::Team* team = team::find(handle);
    if (team)
        return create_on(function, team, options, ctx);
    operations::require_pointer(function, "ctx", ctx);
    *ctx = SHMEM_CTX_INVALID;
    if (handle != SHMEM_TEAM_INVALID)
        fatal(function, "team %p is no team: it was destroyed, or never created", static_cast<const void*>(handle));
    return 1;
}

void destroy_context(const char* function, shmem_ctx_t ctx) {
    if (!operations::may_give_back(function) || ctx == SHMEM_CTX_INVALID)
        return;
    if (ctx == SHMEM_CTX_DEFAULT)
        fatal(function, "ctx is SHMEM_CTX_DEFAULT, which cannot be destroyed");
    operations::quiet(function, ctx);
    context::destroy(ctx);
}

int context_info(const char* function, shmem_ctx_t ctx, shmemx_ctx_info_t* info) {
    operations::require_running(function);
    operations::require_pointer(function, "info", info);
    *info = {};
    if (ctx == SHMEM_CTX_INVALID)
        return 1;
    require_alive(function, ctx);
    const context::Context& context = context::context_of(ctx);
    info->options = context.options;
    info->given = context.options;
    const fabric::StreamSet* const stream_set = stream_set_of(context);
    info->stream_set = stream_set ? static_cast<int>(stream_set->producer.stream_set) : -1;
    info->channel = stream_set ? stream_set->channel : -1;
    info->lock = stream_set && fabric::network->shares_channels(*stream_set);
    info->bytes = bytes_of(context);
    const fabric::Spread spread = context::spread_of(context);
    if (fabric::network) {
        info->channels = fabric::network->channels();
        info->rails = spread == fabric::Spread::kOneRail ? 1 : fabric::network->rails();
    }
    if (context.options & SHMEMX_CTX_ORDERED)
        info->order = info->rails > 1 ? SHMEMX_ORDER_REORDER : SHMEMX_ORDER_RAIL;
    return 0;
}

int context_team(const char* function, shmem_ctx_t ctx, shmem_team_t* team) {
    operations::require_running(function);
    operations::require_pointer(function, "team", team);
    *team = SHMEM_TEAM_INVALID;
    if (ctx == SHMEM_CTX_INVALID)
        return 1;
    require_alive(function, ctx);
    *team = context::context_of(ctx).team;
    return 0;
}

// A session is a hint. With BATCH a burst of short operations to another node leaves in full messages, and in one at
// the end of the session. Without it the first operation leaves by itself (fabric/endpoint/send_ring.h). The number of
// operations tells nothing that rings need, which grow by use. On the node an operation is complete when it returns.
void start_session(const char* function, shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t* config,
                   long config_mask) {
    operations::require_running(function);
    if (ctx == SHMEM_CTX_INVALID)
        return;
    require_alive(function, ctx);
    if (options & ~SHMEM_CTX_SESSION_BATCH)  // the specification makes no combination of hints an error
        HEDDLE_DEBUG(function, "options %#lx: the bits %#lx are unknown and ignored", options,
                     options & ~SHMEM_CTX_SESSION_BATCH);
    if (config_mask & ~SHMEM_CTX_SESSION_TOTAL_OPS)
        fatal(function, "config_mask %#lx: the bits %#lx are unknown", config_mask,
              config_mask & ~SHMEM_CTX_SESSION_TOTAL_OPS);
    if (config_mask & SHMEM_CTX_SESSION_TOTAL_OPS)
        operations::require_pointer(function, "config", config);
    if (options & SHMEM_CTX_SESSION_BATCH)
        operations::remote_batch(ctx, true);
}

// No effect without a session.
void stop_session(const char* function, shmem_ctx_t ctx) {
    operations::require_running(function);
    if (ctx == SHMEM_CTX_INVALID)
        return;
    require_alive(function, ctx);
    operations::remote_batch(ctx, false);
}

}  // namespace heddle::runtime
