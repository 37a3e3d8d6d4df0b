#include "context/context.h"

#include <pthread.h>

#include <cstddef>
#include <new>

namespace heddle::context {

namespace {

struct alignas(64) Context {
    heddle_ctx abi = {};  // first: a shmem_ctx_t points here
    Numbering numbering;
    Session session;
    long options = 0;
    Context* next_free = nullptr;
    bool alive = false;
};
static_assert(offsetof(Context, abi) == 0 && sizeof(Context) == 128);

struct Chunk {
    static constexpr int kContexts = 64;
    Context contexts[kContexts];
    Chunk* next;
};

}  // namespace

struct Pool {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    Chunk* chunks = nullptr;
    Context* free = nullptr;
    const heddle_peer* nobody = nullptr;
    Numbering world;  // of the default context
    Session default_session;
};

HEDDLE_PE_LOCAL Pool* pool = nullptr;

namespace {

class PoolLock {
  public:
    PoolLock() { pthread_mutex_lock(&pool->lock); }
    ~PoolLock() { pthread_mutex_unlock(&pool->lock); }
    PoolLock(const PoolLock&) = delete;
    PoolLock& operator=(const PoolLock&) = delete;
};

void retire(Context* context) {
    context->alive = false;
    context->abi.peers = pool->nobody;
    context->next_free = pool->free;
    pool->free = context;
}

bool grow() {
    auto* chunk = new (std::nothrow) Chunk;
    if (!chunk)
        return false;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    for (Context& context : chunk->contexts) retire(&context);
    return true;
}

// The context behind a handle that is alive and not the default one.
Context& context_of(shmem_ctx_t ctx) {
    return *const_cast<Context*>(reinterpret_cast<const Context*>(ctx));
}

}  // namespace

void start_contexts(int n_pes, const heddle_peer* nobody) {
    if (!pool)
        pool = new Pool;
    pool->nobody = nobody;
    pool->world = {SHMEM_TEAM_WORLD, 0, 1, n_pes};
    pool->default_session = {};
    pool->free = nullptr;
    for (Chunk* chunk = pool->chunks; chunk; chunk = chunk->next)
        for (Context& context : chunk->contexts) retire(&context);
}

shmem_ctx_t create(long options, const Numbering& numbering, const heddle_peer* peers) {
    PoolLock lock;
    if (!pool->free && !grow())
        return SHMEM_CTX_INVALID;
    Context* context = pool->free;
    pool->free = context->next_free;
    context->options = options;
    context->numbering = numbering;
    context->session = {};
    context->alive = true;
    context->abi.peers = peers;
    return &context->abi;
}

void destroy(shmem_ctx_t ctx) {
    PoolLock lock;
    retire(&context_of(ctx));
}

void destroy_all_of(shmem_team_t team) {
    PoolLock lock;
    for (Chunk* chunk = pool->chunks; chunk; chunk = chunk->next)
        for (Context& context : chunk->contexts)
            if (context.alive && context.numbering.team == team)
                retire(&context);
}

bool is_alive(shmem_ctx_t ctx) {
    if (ctx == SHMEM_CTX_DEFAULT)
        return true;
    PoolLock lock;
    for (Chunk* chunk = pool->chunks; chunk; chunk = chunk->next) {
        const auto* first = reinterpret_cast<const char*>(chunk->contexts);
        const size_t offset = static_cast<size_t>(reinterpret_cast<const char*>(ctx) - first);
        if (offset < sizeof chunk->contexts && offset % sizeof(Context) == 0)
            return chunk->contexts[offset / sizeof(Context)].alive;
    }
    return false;
}

Numbering numbering_of(shmem_ctx_t ctx) {
    return ctx == SHMEM_CTX_DEFAULT ? pool->world : context_of(ctx).numbering;
}

Session& session_of(shmem_ctx_t ctx) {
    return ctx == SHMEM_CTX_DEFAULT ? pool->default_session : context_of(ctx).session;
}

}  // namespace heddle::context
