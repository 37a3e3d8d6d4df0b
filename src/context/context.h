// Contexts (section 9.5). Traffic on the node touches only a context's table of peers. A context therefore costs a
// pooled object of two cache lines, and no work that grows with the number of PEs. The pool grows to the largest number
// of contexts alive at once. Threads: any may create, destroy and use contexts, without a lock.
#pragma once

#include "base/members.h"
#include "base/pe_local.h"
#include "fabric/endpoint/stream_set.h"
#include "sync/pool.h"

#include <heddle/abi.h>
#include <heddle/request.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::context {

struct alignas(128) Context {
    heddle_ctx abi = {};  // first: a shmem_ctx_t points here, but for SHMEM_CTX_DEFAULT
    sync::PoolLink link;
    std::atomic<bool> alive{false};
    long options = 0;
    shmem_team_t team = SHMEM_TEAM_WORLD;
    base::Members members;  // what its PE numbers mean
    // Transfers on the context that have outlasted their call.
    std::atomic<uint32_t> outstanding{0};
    // Fences that left records under way in the stream set of their thread, where others have stream sets, too.
    std::atomic<uint64_t> fences{0};
    // The context's streams to the network, a set for each thread; made when first needed.
    fabric::StreamSetList stream_sets;
};
static_assert(sizeof(Context) == HEDDLE_CONTEXT_BYTES);

// How operations on the context use the rails of the network.
fabric::Spread spread_of(const Context& context);

// Advances when stream sets change hands, and when a Context::fences does. Every cached pointer to a context's stream
// set is then invalid.
inline std::atomic_ref<uint64_t> stream_sets_epoch() {
    return std::atomic_ref<uint64_t>(heddle_streams_epoch_1);
}

struct Contexts {
    sync::Pool<Context, 64> pool;
    Context of_default;
    const heddle_peer* nobody = nullptr;  // the table of start_contexts
    std::atomic<uint32_t> batching{0};    // contexts with a session that lets records gather
    std::atomic<uint64_t> destroyed{0};   // contexts, for who remembers a handle
};
extern HEDDLE_PE_LOCAL base::PePointer<Contexts> contexts;  // this PE's; lives as long as the process

// Sets up the pool of this PE of n_pes, and destroys the contexts of an earlier init. nobody: the table of peers of a
// destroyed context, which sends every operation to the slow path and its message.
void start_contexts(int n_pes, const heddle_peer* nobody);

// A context of the team for the options (SHMEM_CTX_SERIALIZED, PRIVATE, NOSTORE) and the members' PEs, whose table is
// peers; null when there is no memory.
shmem_ctx_t create(long options, shmem_team_t team, const base::Members& members, const heddle_peer* peers);

// Says whether records of the context may gather (StreamSetList::batches); true when that is new.
bool set_batching(Context& context, bool batches);

// Destroys ctx, which is alive and not the default context.
void destroy(shmem_ctx_t ctx);

// Destroys all contexts of the team.
void destroy_all_of(shmem_team_t team);

// True for the default context and for every context created and not destroyed. Any pointer is allowed.
bool is_alive(shmem_ctx_t ctx);

// The context of a handle that is alive, and the handle of a context.
Context& context_of(shmem_ctx_t ctx);
shmem_ctx_t handle_of(const Context& context);

}  // namespace heddle::context
