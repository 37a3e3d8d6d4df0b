#include "context/context.h"

#include <pthread.h>

#include <cstddef>
#include <new>

namespace heddle::context {

namespace {

struct alignas(64) Context {
    heddle_ctx abi;  // first: a shmem_ctx_t points here
    long options;
    bool alive;
    Context* next_free;
};
static_assert(offsetof(Context, abi) == 0 && sizeof(Context) == 64);

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
    const heddle_peer* peers = nullptr;
    const heddle_peer* nobody = nullptr;
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

}  // namespace

void start_contexts(const heddle_peer* peers, const heddle_peer* nobody) {
    if (!pool)
        pool = new Pool;
    pool->peers = peers;
    pool->nobody = nobody;
    pool->free = nullptr;
    for (Chunk* chunk = pool->chunks; chunk; chunk = chunk->next)
        for (Context& context : chunk->contexts) retire(&context);
}

shmem_ctx_t create(long options) {
    PoolLock lock;
    if (!pool->free && !grow())
        return SHMEM_CTX_INVALID;
    Context* context = pool->free;
    pool->free = context->next_free;
    context->options = options;
    context->alive = true;
    context->abi.peers = pool->peers;
    return &context->abi;
}

void destroy(shmem_ctx_t ctx) {
    PoolLock lock;
    retire(const_cast<Context*>(reinterpret_cast<const Context*>(ctx)));
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

}  // namespace heddle::context
