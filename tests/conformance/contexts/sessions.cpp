// Sessions whose operations may gather (SHMEM_CTX_SESSION_BATCH): what gathers leaves before its thread waits, through
// whatever contexts, and at the end of a session without any further call. So no program stands still for a session.
#include "check.h"

#include <shmemx.h>
#include <thread>
#include <vector>

using namespace conformance;

namespace {

constexpr int kContexts = 4, kRounds = 200;
constexpr size_t kWords = size_t{kContexts} * (kRounds + 1);
long *asked, *answered;  // in the heap; a word of asked is put to once in a test, for nothing orders the puts
int other;

// PE 0 asks through contexts in turns, each in a session that stays open, and waits behind each question.
void ask_and_wait(const std::vector<shmem_ctx_t>& contexts) {
    subject = "a wait in a session";
    for (const shmem_ctx_t ctx : contexts) shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, nullptr, 0);
    for (long round = 1; round <= kRounds; ++round) {
        const auto first = static_cast<size_t>(round) % contexts.size();
        long* const mine = asked + static_cast<size_t>(round) * contexts.size();
        if (pe == 0) {
            shmem_ctx_long_p(contexts[first], mine, round, other);
            for (size_t i = 1; i < contexts.size(); ++i)  // these are used last
                shmem_ctx_long_p(contexts[(first + i) % contexts.size()], mine + i, round, other);
            shmem_long_wait_until(answered, SHMEM_CMP_EQ, round);
        } else if (pe == other) {
            shmem_long_wait_until(mine, SHMEM_CMP_EQ, round);
            shmem_ctx_long_p(contexts[first], answered, round, 0);
        }
    }
    for (const shmem_ctx_t ctx : contexts) shmem_ctx_quiet(ctx);  // a barrier completes the default context alone
    shmem_barrier_all();
    for (size_t i = contexts.size(); i < kWords && pe == other; ++i)
        CHECK_EQ(asked[i], static_cast<long>(i / contexts.size()));
    for (const shmem_ctx_t ctx : contexts) shmem_ctx_session_stop(ctx);
}

// The end of a session is enough: behind it PE 0 looks at its memory, and calls the library no more.
void stop_and_look() {
    subject = "a word behind a session";
    shmem_barrier_all();
    if (pe == 0) {
        shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, nullptr, 0);
        for (long i = 1; i <= kRounds; ++i) shmem_long_p(&asked[i], -i, other);
        shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
        if (getenv("HEDDLE_PROGRESS") == nullptr)  // otherwise the answer needs this PE's calls
            while (__atomic_load_n(answered, __ATOMIC_ACQUIRE) != -kRounds) continue;
    } else if (pe == other) {
        for (long i = kRounds; i > 0; --i) shmem_long_wait_until(&asked[i], SHMEM_CMP_EQ, -i);
        shmem_long_p(answered, -kRounds, 0);
    }
    shmem_barrier_all();
}

// Loops over calls that make progress, instead of waits: the answer comes only to what has left.
void ask_and_loop() {
    subject = "a loop in a session";
    for (int way = 0; way < 5; ++way) {
        const long value = 1000 + way;
        shmem_barrier_all();
        shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, nullptr, 0);
        shmemx_request_t requests[2] = {SHMEMX_REQUEST_NULL, SHMEMX_REQUEST_NULL};
        if (pe == 0) {
            shmem_long_p(asked, value, other);
            if (way == 0)
                while (__atomic_load_n(answered, __ATOMIC_ACQUIRE) != value) shmemx_progress();
            else if (way == 1)
                while (!shmem_long_test(answered, SHMEM_CMP_EQ, value)) continue;
        } else if (pe == other) {
            shmem_long_wait_until(asked, SHMEM_CMP_EQ, value);
            shmem_long_p(answered, value, 0);
            shmem_quiet();
        }
        if (way >= 2) {
            CHECK_EQ(shmemx_team_sync_nbe(SHMEM_TEAM_WORLD, &requests[0]), 0);
            if (way == 2)
                while (!shmemx_request_test(&requests[0])) continue;
            else if (way == 3)
                while (shmemx_request_test_any(2, requests) != 0) continue;
            else
                shmemx_request_wait(&requests[0]);
        }
        shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
    }
    shmem_barrier_all();
}

// Threads post on one context whose sessions begin and end meanwhile; quiets of others complete what gathers.
void threads_and_quiets() {
    subject = "sessions that begin and end while others post";
    constexpr int kThreads = 3;
    long* const sums = static_cast<long*>(shmem_calloc(kThreads, sizeof *sums));
    const auto post = [sums](int number) {
        for (long i = 0; i < kRounds; ++i) {
            shmem_long_atomic_add(&sums[number], 1, other);
            if (i % 8 == number)
                shmem_quiet();
            if (i % 16 == 0)
                CHECK(shmem_long_atomic_fetch(&sums[number], other) >= i);
        }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads && pe == 0; ++i) threads.emplace_back(post, i);
    for (int i = 0; i < kRounds && pe == 0; ++i) {
        shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, nullptr, 0);
        if (i % 4 == 0)
            shmem_quiet();
        std::this_thread::yield();
        shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
    }
    for (std::thread& thread : threads) thread.join();
    shmem_barrier_all();
    for (int i = 0; i < kThreads && pe == other; ++i) CHECK_EQ(sums[i], kRounds);
}

}  // namespace

int main() {
    start("sessions");
    other = n_pes - 1;
    asked = static_cast<long*>(shmem_calloc(kWords, sizeof *asked));
    answered = static_cast<long*>(shmem_calloc(1, sizeof *answered));
    std::vector<shmem_ctx_t> contexts(kContexts);
    for (shmem_ctx_t& ctx : contexts) CHECK_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx), 0);
    if (n_pes > 1) {
        ask_and_wait(contexts);
        stop_and_look();
        ask_and_loop();
        const char* const level = getenv("HEDDLE_TEST_LEVEL");
        if (level && atoi(level) == SHMEM_THREAD_MULTIPLE)
            threads_and_quiets();
    }
    for (const shmem_ctx_t ctx : contexts) shmem_ctx_destroy(ctx);
    return finish();
}
