// Contexts (section 9.5). On the node traffic touches no context but its table of peers, so one costs a pooled object
// of two cache lines and no work that grows with the number of PEs. Recycled: the pool grows to the largest number
// alive at once. Any thread may create, destroy and use them, without a lock.
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
    heddle_ctx abi = {};  // first: a shmem_ctx_t points here, but for the default one
    sync::PoolLink link;
    std::atomic<bool> alive{false};
    long options = 0;
    shmem_team_t team = SHMEM_TEAM_WORLD;
    base::Members members;  // what its PE numbers mean
    // Operations that have outlasted their call.
    std::atomic<uint32_t> outstanding{0};
    // Its ways to the network, made as they are needed.
    std::atomic<fabric::StreamSet*> stream_sets{nullptr};
};
static_assert(sizeof(Context) == HEDDLE_CONTEXT_BYTES);

// How what is sent on it uses the rails of the network.
fabric::Spread spread_of(const Context& context);

// Moves when stream sets change hands: what was remembered of a context's stream sets is then void.
extern HEDDLE_PE_LOCAL std::atomic<uint32_t> stream_sets_epoch;

struct Contexts;
extern HEDDLE_PE_LOCAL base::PePointer<Contexts> contexts;  // this PE's; lives as long as the process

// Sets up the pool of this PE of n_pes. nobody: the table of a context which is not alive, so that operations on it
// take the slow path to their message. Contexts of an earlier init are gone.
void start_contexts(int n_pes, const heddle_peer* nobody);

// A context of the team for the options (SHMEM_CTX_SERIALIZED, PRIVATE, NOSTORE) and the members' PEs, whose table is
// peers; null when there is no memory.
shmem_ctx_t create(long options, shmem_team_t team, const base::Members& members, const heddle_peer* peers);

// Gives ctx, which is alive and not the default one, back.
void destroy(shmem_ctx_t ctx);

// Gives all contexts of the team back.
void destroy_all_of(shmem_team_t team);

// True for the default context and for those created and not destroyed. Any pointer may be asked about.
bool is_alive(shmem_ctx_t ctx);

// Of a handle that is alive; and the handle.
Context& context_of(shmem_ctx_t ctx);
shmem_ctx_t handle_of(const Context& context);

}  // namespace heddle::context
