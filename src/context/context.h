// Contexts (section 9.4). On the node traffic touches no context but its table of peers, so one costs a pooled object
// of a cache line and no work that grows with the number of PEs. Recycled: the pool grows to the largest number alive
// at once. Create and destroy from any thread, under one lock; using a context takes none.
#pragma once

#include <heddle/abi.h>

#include "base/pe_local.h"

namespace heddle::context {

struct Pool;
extern HEDDLE_PE_LOCAL Pool* pool;  // this PE's; lives as long as the process

// Sets up the pool of this PE. peers: the table that a context gets; nobody: that of one which is not alive, so that
// operations on it take the slow path to their message. Contexts of an earlier init are gone.
void start_contexts(const heddle_peer* peers, const heddle_peer* nobody);

// A context for the options (SHMEM_CTX_SERIALIZED, PRIVATE, NOSTORE), or null when there is no memory.
shmem_ctx_t create(long options);

// Gives ctx, which is alive and not the default one, back.
void destroy(shmem_ctx_t ctx);

// True for the default context and for those created and not destroyed. Any pointer may be asked about.
bool is_alive(shmem_ctx_t ctx);

}  // namespace heddle::context
