// Contexts: created with every combination of options, many at once, used by several threads, destroyed and recycled;
// invalid options give SHMEM_CTX_INVALID. What an operation does does not depend on its context.
#include "check.h"
#include "tables.h"

#include <pthread.h>
#include <vector>

using namespace conformance;

namespace {

constexpr int kThreads = 4;
uint64_t counter;
uint64_t slots[8][kThreads];

void use(shmem_ctx_t ctx) {
    const int next = (pe + 1) % n_pes;
    shmem_ctx_uint64_atomic_add(ctx, &counter, 1, next);
    shmem_ctx_uint64_p(ctx, &slots[pe][0], 77, next);
    shmem_ctx_quiet(ctx);
    CHECK_EQ(shmem_ctx_uint64_g(ctx, &slots[pe][0], next), 77);
}

void options() {
    subject = "shmem_ctx_create";
    for (long option = 0; option < 8; ++option) {
        shmem_ctx_t ctx = SHMEM_CTX_INVALID;
        const long flags = (option & 1 ? SHMEM_CTX_PRIVATE : 0) | (option & 2 ? SHMEM_CTX_SERIALIZED : 0) |
                           (option & 4 ? SHMEM_CTX_NOSTORE : 0);
        CHECK_EQ(shmem_ctx_create(flags, &ctx), 0);
        CHECK(ctx != SHMEM_CTX_INVALID && ctx != SHMEM_CTX_DEFAULT);
        use(ctx);
        shmem_ctx_destroy(ctx);
    }
}

void no_context() {
    subject = "SHMEM_CTX_INVALID";
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    const int nobody = -1;  // nothing is looked at
    shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, &nobody, 1);
    shmem_ctx_session_start(SHMEM_CTX_INVALID, SHMEM_CTX_SESSION_BATCH, nullptr, 0);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
    shmem_team_t team = SHMEM_TEAM_WORLD;
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0);
    CHECK(ctx == SHMEM_CTX_INVALID);
}

void sessions() {
    subject = "sessions";
    shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);                    // none was started: no effect
    shmem_ctx_session_start(SHMEM_CTX_DEFAULT, ~0L, nullptr, 0);  // hints: no combination is an error
    use(SHMEM_CTX_DEFAULT);
    shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
    shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
}

void many() {
    subject = "many contexts";
    std::vector<shmem_ctx_t> all(200);
    for (shmem_ctx_t& ctx : all) CHECK_EQ(shmem_ctx_create(0, &ctx), 0);
    for (size_t i = 0; i < all.size(); ++i)
        for (size_t k = 0; k < i; ++k) CHECK(all[i] != all[k]);
    for (shmem_ctx_t ctx : all) use(ctx);
    for (size_t i = 0; i < all.size(); i += 2) shmem_ctx_destroy(all[i]);
    for (size_t i = 1; i < all.size(); i += 2) use(all[i]);
    for (size_t i = 1; i < all.size(); i += 2) shmem_ctx_destroy(all[i]);
}

void* thread_with_its_own(void* argument) {
    const auto number = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(argument));
    for (uint64_t round = 1; round <= 100; ++round) {
        shmem_ctx_t ctx;
        CHECK_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx), 0);
        shmem_ctx_uint64_put(ctx, &slots[pe][number], &round, 1, (pe + 1) % n_pes);
        shmem_ctx_fence(ctx);
        CHECK_EQ(shmem_ctx_uint64_atomic_fetch(ctx, &slots[pe][number], (pe + 1) % n_pes), round);
        shmem_ctx_destroy(ctx);
    }
    return nullptr;
}

}  // namespace

int main() {
    start("contexts");
    options();
    no_context();
    sessions();
    many();
    shmem_barrier_all();
    CHECK_EQ(counter, 8 + 1 + 300);
    pthread_t threads[kThreads];
    for (uintptr_t i = 0; i < kThreads; ++i)
        CHECK_EQ(pthread_create(&threads[i], nullptr, thread_with_its_own, reinterpret_cast<void*>(i)), 0);
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
    shmem_barrier_all();
    return finish();
}
