// On the node nothing takes a lock, at any thread level, and what is short makes no system call either: puts, gets,
// atomics, order, signals, waits that are over, contexts, requests. HEDDLE_TEST_LEVEL: the thread level, with 4 threads
// where it is SHMEM_THREAD_MULTIPLE. HEDDLE_TEST_CALLS=1 watches system calls, too; exits 77 where that cannot be had.
#include "check.h"
#include "lock_and_syscall_interposer.h"

#include <heddle/hot_path.h>
#include <pthread.h>
#include <shmemx.h>
#include <unistd.h>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kThreads = 4;
struct alignas(128) Words {
    unsigned char bytes[4096];
    uint64_t number, signal;
};
Words* words;  // of each thread of each PE
unsigned char* large;
std::atomic<size_t> ready;
size_t n_threads;
int next;

Words* mine(size_t thread) {
    return &words[static_cast<size_t>(pe) * kThreads + thread];
}

void copies(shmem_ctx_t ctx, Words* to, uint64_t i) {
    unsigned char buffer[4096] = {static_cast<unsigned char>(i)};
    for (size_t bytes : {1, 8, 100, 4096}) {
        shmem_ctx_putmem(ctx, to->bytes, buffer, bytes, next);
        shmem_ctx_putmem_nbi(ctx, to->bytes, buffer, bytes, next);
        shmem_ctx_fence(ctx);
        shmem_ctx_getmem(ctx, buffer, to->bytes, bytes, next);
        shmem_ctx_getmem_nbi(ctx, buffer, to->bytes, bytes, next);
    }
    shmem_ctx_uint64_p(ctx, &to->number, i, next);
    shmem_ctx_quiet(ctx);
    CHECK_EQ(shmem_ctx_uint64_g(ctx, &to->number, next), i);
}

void atomics_and_signals(shmem_ctx_t ctx, Words* to, Words* own, uint64_t i) {
    shmem_ctx_uint64_atomic_set(ctx, &to->number, i, next);
    CHECK_EQ(shmem_ctx_uint64_atomic_fetch_add(ctx, &to->number, 2, next), i);
    CHECK_EQ(shmem_ctx_uint64_atomic_compare_swap(ctx, &to->number, i + 2, i, next), i + 2);
    shmem_ctx_uint64_atomic_inc(ctx, &to->number, next);
    shmem_ctx_putmem_signal(ctx, to->bytes, own->bytes, 64, &to->signal, 1, SHMEM_SIGNAL_SET, next);
    shmem_signal_add(&to->signal, 1, next);
    const int self = pe;
    uint64_t* const signal = &own->signal;  // nobody makes it 0
    shmem_signal_set(signal, 1, self);
    CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_GE, 1) >= 1);
    CHECK(shmem_signal_fetch(signal) >= 1);
    shmem_uint64_wait_until(signal, SHMEM_CMP_NE, 0);
    CHECK_EQ(shmem_uint64_test(signal, SHMEM_CMP_NE, 0), 1);
    CHECK_EQ(shmem_uint64_wait_until_any(signal, 1, nullptr, SHMEM_CMP_NE, 0), 0);
}

void contexts() {
    shmem_ctx_t ctx[3];
    const long options[] = {0, SHMEMX_CTX_ORDERED, SHMEM_CTX_PRIVATE | SHMEMX_CTX_RELAXED};
    for (int k = 0; k < 3; ++k) CHECK_EQ(shmem_ctx_create(options[k], &ctx[k]), 0);
    shmemx_ctx_info_t info;
    CHECK_EQ(shmemx_ctx_info(ctx[1], &info), 0);
    CHECK_EQ(shmemx_ctx_quiet_test(ctx[2]), 1);
    shmemx_ctx_quiet_local(ctx[0]);
    for (shmem_ctx_t each : ctx) shmem_ctx_destroy(each);
}

void requests(shmem_ctx_t ctx, Words* to, uint64_t i) {
    shmemx_request_t shared, several[4] = {}, whole = SHMEMX_REQUEST_NULL;
    uint64_t fetched = 0;
    size_t indices[4];
    unsigned char buffer[256] = {};
    CHECK_EQ(shmemx_request_allocate(&shared, SHMEMX_REQUEST_SHARED), 0);
    CHECK_EQ(shmemx_request_allocate(&several[0], SHMEMX_REQUEST_PRIVATE), 0);
    for (shmemx_request_t& each : several) {
        shmemx_ctx_putmem_nbe(ctx, to->bytes, buffer, sizeof buffer, next, &each);
        shmemx_ctx_uint64_atomic_fetch_add_nbe(ctx, &fetched, &to->number, i, next, &each);
        shmemx_uint64_get_nbe(&fetched, &to->number, 1, next, &shared);
        shmemx_putmem_signal_nbe(to->bytes, buffer, 9, &to->signal, 1, SHMEM_SIGNAL_SET, next, &shared);
    }
    shmemx_request_begin(&whole);
    shmem_putmem_nbi(to->bytes, buffer, sizeof buffer, next);
    shmemx_request_end(&whole);
    shmemx_request_merge(&whole, 2, several);
    shmemx_request_fence(&whole);
    shmemx_request_wait_local(&whole);
    shmemx_request_wait(&whole);
    CHECK_EQ(shmemx_request_test(&several[2]), 1);
    CHECK_EQ(shmemx_request_wait_any(4, several), 3);
    CHECK_EQ(shmemx_request_wait_some(4, several, indices), 0);
    shmemx_request_wait(&shared);
    CHECK_EQ(shmemx_request_test(&shared), 1);
    shmemx_request_free(&shared);
}

void everything(size_t thread, shmem_ctx_t ctx, uint64_t times) {
    for (uint64_t i = 0; i < times; ++i) {
        copies(ctx, mine(thread), i);
        atomics_and_signals(ctx, mine(thread), mine(thread), i);
        contexts();
        requests(ctx, mine(thread), i);
    }
}

// Long transfers, and what other threads do for them: without a lock, but with system calls.
void long_transfers(size_t thread, shmem_ctx_t ctx) {
    std::vector<unsigned char> source(HEDDLE_LARGE_BYTES + 1, 7);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (int i = 0; i < 20; ++i) {
        shmemx_ctx_putmem_nbe(ctx, large + thread * source.size(), source.data(), source.size(), next, &request);
        if (i % 4 == 3)
            shmemx_request_wait(&request);
    }
    shmem_ctx_quiet(ctx);
    shmemx_request_free(&request);
}

// All threads begin what is watched when all have warmed up: pools have grown, tables are there.
void run_thread(size_t thread, bool watch_calls) {
    subject = "a watched thread";
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    if (thread > 0)
        CHECK_EQ(shmem_ctx_create(thread == 1 ? SHMEMX_CTX_ORDERED : 0, &ctx), 0);
    everything(thread, ctx, 50);
    if (watch_calls && !install_call_watch())
        _exit(77);
    ready.fetch_add(1);
    while (ready.load() < n_threads) continue;
    watching_calls = true;
    everything(thread, ctx, 500);
    watching_calls = false;
    if (!watch_calls)
        long_transfers(thread, ctx);
    if (thread > 0)
        shmem_ctx_destroy(ctx);
}

void the_watch_sees() {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    CHECK_EQ(locks_taken.exchange(0), 2);
}

void the_watch_sees_calls() {
    if (!install_call_watch())
        _exit(77);
    watching_calls = true;
    CHECK_EQ(getppid() > 0, true);
    watching_calls = false;
    CHECK_EQ(calls_made.exchange(0), 1);
}

void collectives() {
    static long dest[100], source[100];
    for (int i = 0; i < 20; ++i) {
        shmem_barrier_all();
        CHECK_EQ(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 1 + static_cast<size_t>(i)), 0);
        CHECK_EQ(shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 100, 0), 0);
    }
}

}  // namespace

int main() {
    start("no_locks");
    next = (pe + 1) % n_pes;
    const char *level = getenv("HEDDLE_TEST_LEVEL"), *calls = getenv("HEDDLE_TEST_CALLS");
    const bool multiple = !level || atoi(level) == SHMEM_THREAD_MULTIPLE, watch_calls = calls && *calls == '1';
    n_threads = multiple ? kThreads : 1;
    words = static_cast<Words*>(shmem_align(128, sizeof(Words) * kThreads * static_cast<size_t>(n_pes)));
    large = static_cast<unsigned char*>(shmem_malloc(kThreads * (HEDDLE_LARGE_BYTES + 1)));
    CHECK(words && large);
    memset(words, 0, sizeof(Words) * kThreads * static_cast<size_t>(n_pes));
    shmem_barrier_all();
    watching_locks = true;
    the_watch_sees();
    std::vector<std::thread> threads;
    if (watch_calls)
        threads.emplace_back(the_watch_sees_calls), threads.back().join(), threads.clear();
    for (size_t i = 1; i < n_threads; ++i) threads.emplace_back(run_thread, i, watch_calls);
    run_thread(0, watch_calls);
    for (std::thread& thread : threads) thread.join();
    collectives();
    watching_locks = false;
    subject = "locks and system calls";
    if (locks_taken != 0)
        fail(__FILE__, __LINE__, "%u locks were taken, the last by %s", locks_taken.load(), last_lock.load());
    if (calls_made != 0)
        fail(__FILE__, __LINE__, "%u system calls, the last number %ld", calls_made.load(), last_call.load());
    return finish();
}
