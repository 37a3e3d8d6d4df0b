// What runs at once with communication: three threads of each PE put, get, add and wait without a pause, on contexts of
// their own, with long transfers always under way, while the main thread queries, makes and destroys contexts and
// teams, allocates, and is in collectives. Then: threads in quiet at once, several in one wait, and threads that are
// gone before their work is done.
#include "check.h"

#include <heddle/hot_path.h>
#include <shmemx.h>
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kNoisy = 3, kLargeBytes = HEDDLE_LARGE_BYTES + 777, kSlots = 4;
unsigned char* heap;  // kSlots large blocks for each noisy thread
uint64_t counters[kNoisy], signals[kNoisy];
std::atomic<bool> stopping;
int next, previous;

unsigned char* block(size_t thread, size_t slot) {
    return heap + (thread * kSlots + slot) * kLargeBytes;
}

struct Noise {
    explicit Noise(size_t number) : thread(number), random(random_for(3, static_cast<uint64_t>(pe), number)) {}

    void run() {
        const long options[] = {SHMEMX_CTX_RELAXED, SHMEM_CTX_PRIVATE, 0};
        subject = "a thread beside the main one";
        CHECK_EQ(shmem_ctx_create(options[thread % 3], &ctx), 0);
        for (auto& source : sources) source.resize(kLargeBytes);
        while (!stopping.load(std::memory_order_relaxed)) {
            ++rounds;
            long_transfers();
            for (int times = 0; times < 20; ++times) short_ones();
        }
        for (shmemx_request_t& request : requests) shmemx_request_wait(&request);
        shmem_ctx_quiet(ctx);
        CHECK_EQ(shmem_ctx_uint64_atomic_fetch(ctx, &counters[thread], next), added);
        shmem_ctx_destroy(ctx);
    }

    // One of kSlots is complete, checked and sent again, while the others are under way.
    void long_transfers() {
        const size_t slot = rounds % kSlots;
        std::vector<unsigned char>& source = sources[slot];
        shmemx_request_wait(&requests[slot]);
        if (rounds > kSlots) {
            std::vector<unsigned char> got(kLargeBytes);
            shmem_ctx_getmem(ctx, got.data(), block(thread, slot), kLargeBytes, next);
            CHECK_BYTES("a long transfer", got.data(), source.data(), kLargeBytes);
        }
        random.fill(source.data(), 4096);
        memset(source.data() + 4096, static_cast<int>(rounds & 0xff), kLargeBytes - 4096);
        shmemx_ctx_putmem_signal_nbe(ctx, block(thread, slot), source.data(), kLargeBytes, &signals[thread], 1,
                                     SHMEM_SIGNAL_ADD, next, &requests[slot]);
    }

    void short_ones() {
        const uint64_t value = random.below(100);
        shmem_ctx_uint64_atomic_add(ctx, &counters[thread], value, next);
        added += value;
        if (chaos_run())  // Heddle keeps the order of one thread's atomics of a word, which the standard does not promise
            shmem_ctx_fence(ctx);
        const uint64_t seen = shmem_ctx_uint64_atomic_fetch(ctx, &counters[thread], next);
        CHECK_EQ(seen, added);
        if (value < 10)
            shmem_ctx_fence(ctx);
    }

    const size_t thread;
    Random random;
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    shmemx_request_t requests[kSlots] = {};
    std::vector<unsigned char> sources[kSlots];
    uint64_t rounds = 0, added = 0;
};

// Runs action, `times` times, beside the noise.
template <class Action>
void beside_noise(const char* name, int times, Action action) {
    subject = name;
    std::fill_n(counters, kNoisy, 0);
    std::fill_n(signals, kNoisy, 0);
    stopping = false;
    shmem_barrier_all();
    std::vector<Noise> noise;
    for (size_t i = 0; i < kNoisy; ++i) noise.emplace_back(i);
    std::vector<std::thread> threads;
    for (Noise& each : noise) threads.emplace_back([&each] { each.run(); });
    for (int i = 0; i < times; ++i) action(i);
    stopping = true;
    for (std::thread& thread : threads) thread.join();
    shmem_barrier_all();
    uint64_t sent = 0, of_previous = 0;
    static uint64_t all_sent;
    for (Noise& each : noise) sent += each.rounds;
    shmem_uint64_p(&all_sent, sent, next);
    shmem_barrier_all();
    for (uint64_t signal : signals) of_previous += signal;
    CHECK_EQ(of_previous, all_sent);
    shmem_barrier_all();
}

void query(int) {
    int provided = -1, major = 0, minor = 0, initialized = 0;
    char name[SHMEM_MAX_NAME_LEN];
    for (int i = 0; i < 1000; ++i) {
        CHECK_EQ(shmem_my_pe(), pe);
        CHECK_EQ(shmem_n_pes(), n_pes);
        CHECK_EQ(shmem_team_my_pe(SHMEM_TEAM_WORLD), pe);
        CHECK_EQ(shmem_pe_accessible(next), 1);
        CHECK_EQ(shmem_addr_accessible(heap, next), 1);
        CHECK(shmem_ptr(heap, pe) != nullptr);
    }
    shmem_query_thread(&provided);
    shmem_query_initialized(&initialized);
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    CHECK(initialized && major == 1 && *name);
}

void contexts(int i) {
    shmem_ctx_t several[20];
    for (shmem_ctx_t& ctx : several) CHECK_EQ(shmem_ctx_create(i % 2 ? SHMEMX_CTX_ORDERED : 0, &ctx), 0);
    for (shmem_ctx_t ctx : several) shmem_ctx_destroy(ctx);
}

void teams(int i) {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, nullptr, 0, &team), 0);
    CHECK_EQ(shmem_team_create_ctx(team, 0, &ctx), 0);
    CHECK_EQ(shmem_team_sync(team), 0);
    if (i % 2)
        shmem_ctx_destroy(ctx);
    shmem_team_destroy(team);
}

void allocate(int i) {
    const size_t bytes = 1000 + static_cast<size_t>(i) * 37;
    auto* mine = static_cast<unsigned char*>(shmem_malloc(bytes));
    void* zeroed = shmem_calloc(3, bytes);
    CHECK(mine && zeroed);
    memset(mine, i, bytes);
    shmem_barrier_all();
    unsigned char got = 0;
    shmem_getmem(&got, mine + bytes - 1, 1, next);
    CHECK_EQ(got, i & 0xff);
    shmem_barrier_all();
    shmem_free(zeroed);
    shmem_free(mine);
}

void collectives(int i) {
    static long dest[64], source[64];
    for (long k = 0; k < 64; ++k) source[k] = k + i + pe;
    shmem_barrier_all();
    CHECK_EQ(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 64), 0);
    for (long k = 0; k < 64; ++k) CHECK_EQ(dest[k], n_pes * (k + i) + n_pes * (n_pes - 1) / 2);
    shmem_sync_all();
}

// --- Several threads and their waits.

// One of two threads that are in a quiet at once, each on a context of its own.
void send_and_quiet(size_t thread) {
    shmem_ctx_t ctx;
    std::vector<unsigned char> source(kLargeBytes), got(kLargeBytes);
    CHECK_EQ(shmem_ctx_create(0, &ctx), 0);
    for (int times = 0; times < 50; ++times) {
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        memset(source.data(), times, kLargeBytes);
        for (size_t slot = 0; slot < kSlots; ++slot)
            shmemx_ctx_putmem_nbe(ctx, block(thread, slot), source.data(), kLargeBytes, next, &request);
        shmem_ctx_quiet(ctx);
        shmem_getmem(got.data(), block(thread, kSlots - 1), kLargeBytes, next);
        CHECK_BYTES("behind quiet", got.data(), source.data(), kLargeBytes);
        shmemx_request_free(&request);
    }
    shmem_ctx_destroy(ctx);
}

// Posts to a request and is gone; its sources belong to the main thread.
void post_and_leave(std::vector<unsigned char>* source, shmemx_request_t* request) {
    subject = "a thread that leaves";
    shmem_ctx_t ctx;
    CHECK_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx), 0);
    for (size_t slot = 0; slot < kSlots; ++slot)
        shmemx_putmem_nbe(block(0, slot), source->data(), kLargeBytes, next, request);
    shmem_ctx_destroy(ctx);
}

void several_waits(bool shared) {
    subject = shared ? "several threads wait for one request" : "a thread waits for the work of one that is gone";
    for (int times = 0; times < 50; ++times) {
        std::vector<unsigned char> source(kLargeBytes, static_cast<unsigned char>(times)), got(kLargeBytes);
        shmemx_request_t request;
        CHECK_EQ(shmemx_request_allocate(&request, shared ? SHMEMX_REQUEST_SHARED : SHMEMX_REQUEST_PRIVATE), 0);
        std::thread(post_and_leave, &source, &request).join();
        std::vector<std::thread> waiting;
        for (int i = 0; shared && i < 3; ++i) waiting.emplace_back([&] { shmemx_request_wait(&request); });
        if (shared && times % 2)
            while (!shmemx_request_test(&request)) continue;
        shmemx_request_wait(&request);
        shmem_getmem(got.data(), block(0, kSlots - 1), kLargeBytes, next);
        CHECK_BYTES("the work of a thread that is gone", got.data(), source.data(), kLargeBytes);
        for (std::thread& thread : waiting) thread.join();
        CHECK_EQ(request == SHMEMX_REQUEST_NULL, !shared);
        shmemx_request_free(&request);
    }
    shmem_barrier_all();
}

}  // namespace

int main() {
    start("concurrent_load");
    next = (pe + 1) % n_pes;
    previous = (pe + n_pes - 1) % n_pes;
    heap = static_cast<unsigned char*>(shmem_calloc(kNoisy * kSlots, kLargeBytes));
    CHECK(heap);
    beside_noise("queries", 20, query);
    beside_noise("contexts", 100, contexts);
    beside_noise("teams", 8, teams);
    beside_noise("allocations", 6, allocate);
    beside_noise("collectives", 10, collectives);
    subject = "two threads in quiet at once";
    std::thread other(send_and_quiet, 1);
    send_and_quiet(0);
    other.join();
    shmem_barrier_all();
    several_waits(false);
    several_waits(true);
    return finish();
}
