// Requests as programs use them, with transfers long enough to be left to other threads: more at once than there is
// room for, puts with signals, gets, and every function that must complete, or order, what is outstanding. A ring: each
// PE writes to the next and checks what the previous one wrote.
#include "check.h"
#include "completion.h"

#include <heddle/hot_path.h>
#include <pthread.h>
#include <algorithm>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kMany = 80;  // more than the tasks of the engine
constexpr size_t kSlot = HEDDLE_LARGE_BYTES + HEDDLE_LARGE_BYTES / 4;
unsigned char* heap;  // kMany slots
uint64_t* signals;    // kMany
uint64_t flag;
std::vector<unsigned char> mine, expected;
uint64_t round_number;
int next, previous;

size_t bytes_of(size_t slot) {
    return HEDDLE_LARGE_BYTES + slot * 7919 % (HEDDLE_LARGE_BYTES / 4);
}
unsigned char* source(size_t slot) {
    return mine.data() + slot * kSlot;
}
unsigned char* target(size_t slot) {
    return heap + slot * kSlot;
}
void fill(void* to, size_t slot, int from) {
    random_for(round_number, static_cast<uint64_t>(from), slot).fill(to, bytes_of(slot));
}

// Begins a round on all PEs: new contents of the first `slots` sources, and nothing of it in the targets.
void begin_round(const char* name, size_t slots) {
    subject = name;
    ++round_number;
    for (size_t slot = 0; slot < slots; ++slot) {
        fill(source(slot), slot, pe);
        memset(target(slot), 0xee, bytes_of(slot));
    }
    std::fill_n(signals, kMany, 0);
    shmem_barrier_all();
}

void put(size_t slot, shmemx_request_t* request, shmem_ctx_t ctx = SHMEM_CTX_DEFAULT) {
    shmemx_ctx_putmem_nbe(ctx, target(slot), source(slot), bytes_of(slot), next, request);
}

void check_slot(const char* what, size_t slot, const void* got, int from) {
    fill(expected.data(), slot, from);
    CHECK_BYTES(what, got, expected.data(), bytes_of(slot));
}

void check_targets(size_t slots) {
    shmem_sync_all();  // completes nothing
    for (size_t slot = 0; slot < slots; ++slot) check_slot("what the previous PE put", slot, target(slot), previous);
    shmem_barrier_all();
}

// In each way of completing, many puts under one request, and under several.
void puts() {
    for (size_t way = 0; way < kWays; ++way) {
        const bool is_shared = way % 2 == 1;
        const size_t slots = way < 2 ? kMany : 7;
        begin_round("puts under one request", slots);
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        if (is_shared)
            CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
        for (size_t slot = 0; slot < slots; ++slot) put(slot, &request);
        complete_request(&request, is_shared, way);
        check_targets(slots);
        shmemx_request_free(&request);
    }
    begin_round("puts under several requests", kMany);
    shmemx_request_t requests[5] = {};
    for (size_t slot = 0; slot < kMany; ++slot) put(slot, &requests[slot % 5]);
    for (size_t i = 0; i < 5; ++i) complete_request(&requests[i], false, i + 1);
    check_targets(kMany);
}

// The data is there once the signal is, whatever else is outstanding.
void puts_with_signals(int sig_op) {
    begin_round(sig_op == SHMEM_SIGNAL_SET ? "signals that are set" : "signals that are added to", kMany);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (size_t slot = 0; slot < kMany; ++slot) {
        const size_t bytes = slot % 8 == 3 ? 100 + slot : bytes_of(slot);  // short ones between
        shmemx_putmem_signal_nbe(target(slot), source(slot), bytes, &signals[slot / 2 * 2], 3 + slot, sig_op, next,
                                 &request);
        if (slot % 2 == 1)
            continue;
        if (sig_op == SHMEM_SIGNAL_SET)
            shmemx_request_wait(&request);  // the next one sets the same
    }
    for (size_t slot = 0; slot < kMany; slot += 2) {
        const uint64_t last = sig_op == SHMEM_SIGNAL_SET ? 4 + slot : 7 + 2 * slot;
        // A waiter may sleep here while its own transfers wait for it: the others still come.
        CHECK_EQ(shmem_signal_wait_until(&signals[slot], SHMEM_CMP_EQ, last), last);
        CHECK_EQ(signals[slot + 1], 0);
        for (size_t i = slot; i < slot + 2; ++i) {
            fill(expected.data(), i, previous);
            CHECK_BYTES("data behind the signal", target(i), expected.data(), i % 8 == 3 ? 100 + i : bytes_of(i));
        }
    }
    shmemx_request_wait(&request);
    shmem_barrier_all();
}

void gets() {
    begin_round("gets", kMany);
    shmemx_request_t requests[3] = {};
    for (size_t slot = 0; slot < kMany; ++slot) fill(target(slot), slot, pe);
    shmem_barrier_all();
    for (size_t slot = 0; slot < kMany; ++slot)
        shmemx_getmem_nbe(source(slot), target(slot), bytes_of(slot), next, &requests[slot % 3]);
    shmemx_request_t whole = SHMEMX_REQUEST_NULL;
    shmemx_request_merge(&whole, 3, requests);
    shmemx_request_wait(&whole);
    for (size_t slot = 0; slot < kMany; ++slot) check_slot("what was got", slot, source(slot), next);
    shmem_barrier_all();
}

// --- What completes or orders, beside the request itself.

using Complete = void (*)(shmem_ctx_t ctx);
const struct {
    const char* name;
    bool own_context;
    Complete complete;
} kCompleting[] = {
    {"shmem_quiet", false, [](shmem_ctx_t) { shmem_quiet(); }},
    {"shmem_ctx_quiet", true, [](shmem_ctx_t ctx) { shmem_ctx_quiet(ctx); }},
    {"shmem_pe_quiet", false, [](shmem_ctx_t) { shmem_pe_quiet(&next, 1); }},
    {"shmem_barrier_all", false, [](shmem_ctx_t) { shmem_barrier_all(); }},
    {"shmemx_team_barrier_mt", false, [](shmem_ctx_t) { CHECK_EQ(shmemx_team_barrier_mt(SHMEM_TEAM_WORLD, 0, 1), 0); }},
    {"shmemx_ctx_quiet_test", true,
     [](shmem_ctx_t ctx) {
         while (!shmemx_ctx_quiet_test(ctx)) continue;
     }},
    {"shmem_ctx_destroy", true, [](shmem_ctx_t ctx) { shmem_ctx_destroy(ctx); }},
};

void what_completes() {
    for (const auto& by : kCompleting) {
        begin_round(by.name, 6);
        shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
        if (by.own_context)
            CHECK_EQ(shmem_ctx_create(0, &ctx), 0);
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        for (size_t slot = 0; slot < 6; ++slot) put(slot, &request, ctx);
        by.complete(ctx);
        check_targets(6);
        shmemx_request_wait(&request);
        CHECK(request == SHMEMX_REQUEST_NULL);
        if (by.own_context && by.complete != kCompleting[std::size(kCompleting) - 1].complete)
            shmem_ctx_destroy(ctx);
    }
}

// A team's contexts go with it, and what is outstanding on them is done before.
void team_destroy() {
    begin_round("shmem_team_destroy", 6);
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &team), 0);
    CHECK_EQ(shmem_team_create_ctx(team, 0, &ctx), 0);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (size_t slot = 0; slot < 6; ++slot) put(slot, &request, ctx);
    shmem_team_destroy(team);
    check_targets(6);
    shmemx_request_wait(&request);
}

// Sources may be written again, and the targets have what they held before.
void local_completion() {
    for (int by = 0; by < 2; ++by) {
        begin_round(by ? "shmemx_request_wait_local" : "shmemx_ctx_quiet_local", 9);
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        for (size_t slot = 0; slot < 9; ++slot) put(slot, &request);
        if (by)
            shmemx_request_wait_local(&request);
        else
            shmemx_ctx_quiet_local(SHMEM_CTX_DEFAULT);
        CHECK(request != SHMEMX_REQUEST_NULL);
        memset(mine.data(), 0x99, 9 * kSlot);
        shmemx_request_wait(&request);
        check_targets(9);
    }
}

// What is put behind a fence is seen after what was put before it.
void fences() {
    static int number = 0;
    for (const char* name :
         {"shmem_fence", "shmem_ctx_fence", "shmemx_request_fence", "shmemx_request_fence, shared"}) {
        begin_round(name, 3);
        const bool by_request = strncmp(name, "shmemx", 6) == 0, own = strcmp(name, "shmem_ctx_fence") == 0;
        shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        if (strstr(name, "shared"))
            CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
        if (own)
            CHECK_EQ(shmem_ctx_create(0, &ctx), 0);
        const uint64_t value = static_cast<uint64_t>(++number);
        for (size_t slot = 0; slot < 3; ++slot) put(slot, &request, ctx);
        if (by_request)
            shmemx_request_fence(&request);
        else
            shmem_ctx_fence(ctx);
        shmemx_ctx_uint64_atomic_set_nbe(ctx, &flag, value, next, &request);
        shmem_uint64_wait_until(&flag, SHMEM_CMP_GE, value);
        for (size_t slot = 0; slot < 3; ++slot) check_slot("data behind a fence", slot, target(slot), previous);
        shmemx_request_free(&request);
        if (own)
            shmem_ctx_destroy(ctx);
        shmem_barrier_all();
    }
}

// --- Several requests.

void any_and_some() {
    for (int by = 0; by < 3; ++by) {
        begin_round(by == 0 ? "shmemx_request_wait_any" : by == 1 ? "shmemx_request_test_any" : "wait_some", 20);
        shmemx_request_t requests[21] = {};
        bool seen[21] = {};
        size_t found = 0, indices[21];
        for (size_t slot = 0; slot < 20; ++slot) put(slot, &requests[slot + 1]);
        shmemx_putmem_nbe(target(20), source(20), 1, next, &requests[5]);  // one that is complete joins
        while (found < 20) {
            size_t count = 1;
            if (by == 2)
                count = shmemx_request_wait_some(21, requests, indices);
            else
                indices[0] = (by ? shmemx_request_test_any : shmemx_request_wait_any)(21, requests);
            if (by == 1 && indices[0] == SIZE_MAX)
                continue;
            CHECK(count >= 1 && count <= 20 - found);
            for (size_t i = 0; i < count; ++i) {
                CHECK(indices[i] >= 1 && indices[i] <= 20 && !seen[indices[i]]);
                seen[indices[i]] = true;
                CHECK(requests[indices[i]] == SHMEMX_REQUEST_NULL);
                unsigned char last = 0;  // complete is complete at the target
                const size_t slot = indices[i] - 1;
                shmem_getmem(&last, target(slot) + bytes_of(slot) - 1, 1, next);
                CHECK_EQ(last, source(slot)[bytes_of(slot) - 1]);
            }
            found += count;
        }
        CHECK_EQ(shmemx_request_wait_any(21, requests), SIZE_MAX);
        CHECK_EQ(shmemx_request_test_any(21, requests), SIZE_MAX);
        CHECK_EQ(shmemx_request_wait_some(21, requests, indices), 0);
        check_targets(20);
    }
}

// Merges as deep and as wide as the books of a request might have to bear.
void merges() {
    begin_round("a deep merge", 4);
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    for (size_t depth = 0; depth < 200; ++depth) {
        shmemx_request_t outer = SHMEMX_REQUEST_NULL;
        if (depth % 50 == 0)
            put(depth / 50, &request);
        shmemx_request_merge(&outer, 1, &request);
        CHECK(request == SHMEMX_REQUEST_NULL);
        request = outer;
    }
    shmemx_request_wait(&request);
    check_targets(4);
    begin_round("a wide merge", 60);
    std::vector<shmemx_request_t> parts(1000, SHMEMX_REQUEST_NULL);
    for (size_t i = 0; i < parts.size(); ++i) {
        if (i % 20 == 7)
            put(i / 20, &parts[i]);
        else if (i % 3)
            shmemx_putmem_nbe(target(60) + i, source(60) + i, 1, next, &parts[i]);
    }
    CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
    for (size_t slot = 50; slot < 60; ++slot) put(slot, &request);
    shmemx_request_merge(&request, parts.size(), parts.data());
    for (shmemx_request_t part : parts) CHECK(part == SHMEMX_REQUEST_NULL);
    shmemx_request_wait(&request);
    CHECK(request != SHMEMX_REQUEST_NULL);
    shmemx_request_free(&request);
    check_targets(60);
}

// --- begin and end: the calling thread's nbi operations join, those of other threads and the others do not.

void* post_beside(void* done) {
    shmem_putmem_nbi(target(3), source(3), bytes_of(3), next);
    shmem_quiet();
    *static_cast<bool*>(done) = true;
    return nullptr;
}

void capture() {
    begin_round("shmemx_request_begin", 6);
    for (int kind = 0; kind < 3; ++kind) {
        shmemx_request_t request = SHMEMX_REQUEST_NULL;
        if (kind > 0)
            CHECK_EQ(shmemx_request_allocate(&request, kind == 1 ? SHMEMX_REQUEST_PRIVATE : SHMEMX_REQUEST_SHARED), 0);
        long fetched = 0;
        bool done = false;
        pthread_t thread;
        shmemx_request_begin(&request);
        shmem_putmem_nbi(target(0), source(0), bytes_of(0), next);
        CHECK_EQ(pthread_create(&thread, nullptr, post_beside, &done), 0);
        shmem_long_put_nbi(reinterpret_cast<long*>(target(1)), reinterpret_cast<const long*>(source(1)),
                           bytes_of(1) / sizeof(long), next);
        shmem_long_put_nbi(reinterpret_cast<long*>(target(2)), reinterpret_cast<const long*>(source(2)), 5, next);
        shmem_long_atomic_fetch_nbi(&fetched, reinterpret_cast<const long*>(target(2)), next);
        shmem_putmem(target(4), source(4), bytes_of(4), next);  // complete locally when it returns
        shmemx_request_end(&request);
        pthread_join(thread, nullptr);
        CHECK(done && request != SHMEMX_REQUEST_NULL);
        shmemx_request_wait(&request);
        CHECK_EQ(request != SHMEMX_REQUEST_NULL, kind == 2);
        shmemx_request_free(&request);
        if (!chaos_run())  // nothing orders the fetch behind the put
            CHECK_EQ(memcmp(&fetched, source(2), sizeof fetched), 0);
        shmem_sync_all();
        for (size_t slot : {0, 3}) check_slot("what joined", slot, target(slot), previous);
        fill(expected.data(), 1, previous);
        CHECK_BYTES("whole longs", target(1), expected.data(), bytes_of(1) / sizeof(long) * sizeof(long));
        shmem_barrier_all();
    }
    begin_round("gets that join", 6);
    for (size_t slot = 0; slot < 6; ++slot) fill(target(slot), slot, pe);
    shmem_barrier_all();
    shmemx_request_t request = SHMEMX_REQUEST_NULL;
    shmemx_request_begin(&request);
    for (size_t slot = 0; slot < 6; ++slot) shmem_getmem_nbi(source(slot), target(slot), bytes_of(slot), next);
    shmemx_request_end(&request);
    shmemx_request_wait(&request);
    for (size_t slot = 0; slot < 6; ++slot) check_slot("what was got", slot, source(slot), next);
    shmem_barrier_all();
}

// --- Handles without anything in them.

void nothing() {
    subject = "requests without operations";
    shmemx_request_t request = SHMEMX_REQUEST_NULL, other = SHMEMX_REQUEST_NULL;
    shmemx_request_wait(&request);
    shmemx_request_wait_local(&request);
    shmemx_request_free(&request);
    shmemx_request_fence(&request);
    CHECK_EQ(shmemx_request_test(&request), 1);
    CHECK(request == SHMEMX_REQUEST_NULL);
    CHECK_EQ(shmemx_request_wait_any(0, nullptr), SIZE_MAX);
    CHECK_EQ(shmemx_request_test_any(0, nullptr), SIZE_MAX);
    CHECK_EQ(shmemx_request_wait_some(0, nullptr, nullptr), 0);
    CHECK_EQ(shmemx_request_wait_any(1, &request), SIZE_MAX);
    shmemx_request_merge(&request, 0, nullptr);
    CHECK(request != SHMEMX_REQUEST_NULL);  // a PRIVATE request
    CHECK_EQ(shmemx_request_test(&request), 1);
    CHECK(request == SHMEMX_REQUEST_NULL);
    shmemx_request_merge(&request, 1, &other);
    shmemx_request_wait(&request);
    CHECK(request == SHMEMX_REQUEST_NULL);
    shmemx_request_begin(&request);
    CHECK(request != SHMEMX_REQUEST_NULL);
    shmemx_request_end(&request);
    shmemx_request_free(&request);
    for (int i = 0; i < 100000; ++i) {
        CHECK_EQ(shmemx_request_allocate(&request, i % 2 ? SHMEMX_REQUEST_SHARED : SHMEMX_REQUEST_PRIVATE), 0);
        CHECK_EQ(shmemx_request_allocate(&other, SHMEMX_REQUEST_PRIVATE), 0);
        CHECK(request != other);
        shmemx_request_merge(&request, 1, &other);
        shmemx_request_free(&request);
    }
}

void allocate() {
    heap = static_cast<unsigned char*>(shmem_malloc(kMany * kSlot));
    signals = static_cast<uint64_t*>(shmem_malloc(kMany * sizeof *signals));
    CHECK(heap && signals);
}

// Requests of an earlier init are gone. Those of the next one may lie where they lay.
void inits() {
    subject = "requests of the next shmem_init";
    for (int i = 0; i < 40; ++i) {
        start_again();
        allocate();
        fill(target(0), 0, pe);
        shmem_barrier_all();
        shmemx_request_t request;
        CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_PRIVATE), 0);
        memset(mine.data(), 0, bytes_of(0));
        shmemx_getmem_nbe(mine.data(), target(0), bytes_of(0), next, &request);
        shmemx_request_wait(&request);
        fill(expected.data(), 0, next);
        CHECK(std::equal(mine.data(), mine.data() + bytes_of(0), expected.data()));
        shmem_barrier_all();
    }
}

}  // namespace

int main() {
    start("requests");
    next = (pe + 1) % n_pes;
    previous = (pe + n_pes - 1) % n_pes;
    mine.resize(kMany * kSlot);
    expected.resize(kSlot);
    allocate();
    puts();
    puts_with_signals(SHMEM_SIGNAL_SET);
    puts_with_signals(SHMEM_SIGNAL_ADD);
    gets();
    what_completes();
    team_destroy();
    local_completion();
    fences();
    any_and_some();
    merges();
    capture();
    nothing();
    inits();
    begin_round("shmem_finalize", kMany);  // completes what nobody waits for
    static shmemx_request_t forgotten;
    for (size_t slot = 0; slot < kMany; ++slot) put(slot, &forgotten);
    return finish();
}
