// Contexts (section 9.5). On the node traffic touches no context but its table of peers, so one costs a pooled object
// of a cache line and no work that grows with the number of PEs. Recycled: the pool grows to the largest number alive
// at once. Create and destroy from any thread, under one lock; using a context takes none.
#pragma once

#include "base/pe_local.h"

#include <heddle/abi.h>

#include <cstddef>
#include <cstdint>

namespace heddle::context {

// What a context belongs to: its team, and the PEs start, start + stride, ... of the world that its PE numbers mean.
struct Numbering {
    shmem_team_t team = SHMEM_TEAM_WORLD;
    int start = 0;
    int stride = 1;
    int size = 0;
};

// A session (section 9.7): hints of the program. On the node, where an operation is complete when it returns, there is
// nothing to batch; a network's lane reads them.
struct Session {
    long options = 0;  // SHMEM_CTX_SESSION_...
    size_t total_ops = SIZE_MAX;
    bool open = false;
};

struct Pool;
extern HEDDLE_PE_LOCAL Pool* pool;  // this PE's; lives as long as the process

// Sets up the pool of this PE of n_pes. nobody: the table of a context which is not alive, so that operations on it
// take the slow path to their message. Contexts of an earlier init are gone.
void start_contexts(int n_pes, const heddle_peer* nobody);

// A context for the options (SHMEM_CTX_SERIALIZED, PRIVATE, NOSTORE) and the numbering's PEs, whose table is peers;
// null when there is no memory.
shmem_ctx_t create(long options, const Numbering& numbering, const heddle_peer* peers);

// Gives ctx, which is alive and not the default one, back.
void destroy(shmem_ctx_t ctx);

// Gives all contexts of the team back.
void destroy_all_of(shmem_team_t team);

// True for the default context and for those created and not destroyed. Any pointer may be asked about.
bool is_alive(shmem_ctx_t ctx);

// Of a context that is alive.
Numbering numbering_of(shmem_ctx_t ctx);
Session& session_of(shmem_ctx_t ctx);

}  // namespace heddle::context
