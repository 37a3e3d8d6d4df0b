// Sentences of the standard about data that moves (sentences.cpp): signals beside data of another kind, what barriers
// complete, plain stores, sources that are free again, progress of a PE that only computes, locks.
#include "check.h"
#include "sentences.h"
#include "tables.h"

#include <algorithm>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kWords = 9000;  // more than a network takes at once
uint64_t static_data[kWords], static_signal, static_word;
uint64_t *heap_data, *heap_signal;
int next, previous, last;

void fill(uint64_t* words, uint64_t round, int from) {
    for (size_t i = 0; i < kWords; ++i) words[i] = round * 1000 + static_cast<uint64_t>(from) * 17 + i;
}

void check_words(const uint64_t* words, uint64_t round, int from) {
    for (size_t i = 0; i < kWords; ++i)
        CHECK_EQ(__atomic_load_n(&words[i], __ATOMIC_RELAXED), round * 1000 + static_cast<uint64_t>(from) * 17 + i);
}

// Data in one kind of memory and its signal in the other, blocking and not, long enough to take a while.
void signals_of_another_kind() {
    subject = "data and signal of different kinds";
    std::vector<uint64_t> source(kWords);
    static_signal = *heap_signal = 0;
    shmem_barrier_all();
    for (uint64_t round = 1; round <= 4; ++round) {
        uint64_t* data = round % 2 ? heap_data : static_data;
        uint64_t* signal = round % 2 ? &static_signal : heap_signal;
        fill(source.data(), round, pe);
        if (round > 2) {
            shmem_uint64_put_signal_nbi(data, source.data(), kWords, signal, round, SHMEM_SIGNAL_SET, next);
            shmem_quiet();
        } else {
            shmem_uint64_put_signal(data, source.data(), kWords, signal, round, SHMEM_SIGNAL_SET, next);
        }
        std::fill(source.begin(), source.end(), 0);  // copied out
        CHECK_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, round), round);
        check_words(data, round, previous);
        shmem_barrier_all();
    }
}

// Additions to one signal by put_signal, its nbi form and signal_add of all PEs at once.
void signals_add_up() {
    subject = "additions to one signal";
    *heap_signal = 0;
    shmem_barrier_all();
    for (uint64_t i = 0; i < 50; ++i) {
        shmem_put64_signal(&heap_data[pe], &i, 1, heap_signal, 1, SHMEM_SIGNAL_ADD, 0);
        shmem_put64_signal_nbi(&heap_data[pe], &i, 1, heap_signal, 10, SHMEM_SIGNAL_ADD, 0);
        shmem_signal_add(heap_signal, 100, 0);
        shmem_quiet();
    }
    const auto all = static_cast<uint64_t>(111 * 50 * n_pes);
    if (pe == 0)
        CHECK_EQ(shmem_signal_wait_until(heap_signal, SHMEM_CMP_EQ, all), all);
    shmem_barrier_all();
}

// A barrier completes non-blocking gets and fetches of the default context; a quiet, likewise, and into private memory.
void fetches_are_complete() {
    subject = "what a barrier and a quiet complete";
    std::vector<uint64_t> got(kWords);
    fill(heap_data, 5, pe);
    static_word = 70 + static_cast<uint64_t>(pe);
    shmem_barrier_all();
    for (int way = 0; way < 3; ++way) {
        uint64_t fetched = 0, swapped = 0;
        std::fill(got.begin(), got.end(), 0);
        shmem_uint64_get_nbi(got.data(), heap_data, kWords, next);
        shmem_uint64_atomic_fetch_nbi(&fetched, &static_word, next);
        shmem_uint64_atomic_compare_swap_nbi(&swapped, &static_word, 1, 2, next);  // never equal
        if (way == 0)
            shmem_barrier_all();
        else if (way == 1)
            shmem_quiet();
        else
            shmem_pe_quiet(&next, 1);
        check_words(got.data(), 5, next);
        CHECK_EQ(fetched, 70 + next);
        CHECK_EQ(swapped, 70 + next);
        shmem_barrier_all();
    }
}

// Plain stores through shmem_ptr: complete behind each sync, ordered by a fence, complete behind a quiet.
void plain_stores() {
    subject = "stores through shmem_ptr";
    auto* theirs = static_cast<uint64_t*>(shmem_ptr(heap_data, next));
    const bool here = shmem_ptr(heap_data, previous) != nullptr;
    for (uint64_t round = 1; round <= 60; ++round) {
        for (size_t i = 0; theirs && i < 64; ++i) theirs[i] = round * 100 + i;
        if (round % 4 == 0)
            shmem_sync_all();
        else if (round % 4 == 1)
            CHECK_EQ(shmem_team_sync(SHMEM_TEAM_WORLD), 0);
        else if (round % 4 == 2)
            shmem_fence();
        else
            shmem_quiet();
        if (round % 4 > 1) {
            shmem_uint64_p(&static_word, round, next);
            shmem_uint64_wait_until(&static_word, SHMEM_CMP_EQ, round);
        }
        for (size_t i = 0; here && i < 64; ++i) CHECK_EQ(heap_data[i], round * 100 + i);
        shmem_barrier_all();
    }
}

// --- Collectives.

enum Collective { kBroadcast, kCollect, kFcollect, kAlltoall, kAlltoalls, kSum, kInscan, kCollectives };

void collective(int which, uint64_t* dest, const uint64_t* source, size_t count) {
    int status = -1;
    switch (which) {
        case kBroadcast:
            status = shmem_uint64_broadcast(SHMEM_TEAM_WORLD, dest, source, count, last);
            break;
        case kCollect:
            status = shmem_uint64_collect(SHMEM_TEAM_WORLD, dest, source, count);
            break;
        case kFcollect:
            status = shmem_uint64_fcollect(SHMEM_TEAM_WORLD, dest, source, count);
            break;
        case kAlltoall:
            status = shmem_uint64_alltoall(SHMEM_TEAM_WORLD, dest, source, count);
            break;
        case kAlltoalls:
            status = shmem_uint64_alltoalls(SHMEM_TEAM_WORLD, dest, source, 1, 1, count);
            break;
        case kSum:
            status = shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, dest, source, count);
            break;
        default:
            status = shmem_uint64_sum_inscan(SHMEM_TEAM_WORLD, dest, source, count);
    }
    CHECK_EQ(status, 0);
}

// What a collective of the constant 3 * round + (the member's number) in every element leaves in element i of dest.
uint64_t right(int which, uint64_t round, size_t i, size_t count) {
    const auto value = [&](uint64_t from) { return 3 * round + from; };
    const int members = which == kSum ? n_pes : pe + 1;
    uint64_t sum = 0;
    if (which == kBroadcast)
        return value(static_cast<uint64_t>(last));
    if (which < kSum)
        return value(i / count);
    for (int from = 0; from < members; ++from) sum += value(static_cast<uint64_t>(from));
    return sum;
}

// The source is filled with no synchronization before the call, and used anew at once behind it.
void sources_are_free_behind_a_collective() {
    const auto members = static_cast<size_t>(n_pes);
    auto* source = static_cast<uint64_t*>(shmem_malloc(members * 3000 * sizeof(uint64_t)));
    auto* dest = static_cast<uint64_t*>(shmem_malloc(members * 3000 * sizeof(uint64_t)));
    for (int which = 0; which < kCollectives; ++which) {
        subject = "the source of a collective";
        for (uint64_t round = 1; round <= 12; ++round) {
            const size_t count = round % 3 == 0 ? 3000 : round % 3 == 1 ? 3 : 100;
            std::fill(source, source + members * count, 3 * round + static_cast<uint64_t>(pe));
            collective(which, dest, source, count);
            std::fill(source, source + members * count, ~uint64_t{0});
            const size_t results = which == kBroadcast || which >= kSum ? count : members * count;
            for (size_t i = 0; i < results; ++i) CHECK_EQ(dest[i], right(which, round, i, count));
            shmem_sync_all();  // dest is ready again everywhere
        }
    }
    shmem_free(dest);
    shmem_free(source);
}

// --- Progress.

// PE 0 computes and calls nothing; the others put, get, add and wait for their results meanwhile. The flag that ends
// the computation is an object of PE 0's that it only looks at.
void a_pe_that_computes_is_reached() {
    subject = "a PE without calls";
    static uint64_t total, done;
    total = done = 0;
    fill(heap_data, 6, pe);
    shmem_barrier_all();
    if (pe == 0) {
        volatile double busy = 1;
        while (n_pes > 1 && __atomic_load_n(&done, __ATOMIC_ACQUIRE) != static_cast<uint64_t>(n_pes - 1))
            for (int i = 0; i < 1000; ++i) busy = busy * 1.000001;
    } else {
        std::vector<uint64_t> got(kWords);
        shmem_get64(got.data(), heap_data, kWords, 0);
        check_words(got.data(), 6, 0);
        shmem_put64(&static_data[pe * 100], got.data(), 100, 0);
        shmem_uint64_atomic_fetch_add(&total, 5, 0);
        shmem_quiet();
        CHECK_EQ(shmem_uint64_g(&static_data[pe * 100 + 99], 0), got[99]);
        shmem_uint64_atomic_inc(&done, 0);
        shmem_quiet();
    }
    if (pe == 0)
        CHECK_EQ(__atomic_load_n(&total, __ATOMIC_ACQUIRE), 5 * (n_pes - 1));
    shmem_barrier_all();
}

// What the holder put without waiting is there for the next one: clear_lock quiets the default context.
void locks_complete_what_was_put() {
    subject = "shmem_clear_lock";
    static long lock;
    std::vector<uint64_t> block(kWords);
    std::fill(heap_data, heap_data + kWords, 0);
    shmem_barrier_all();
    for (int times = 0; times < 5; ++times) {
        shmem_set_lock(&lock);
        shmem_get64(block.data(), heap_data, kWords, last);
        for (uint64_t value : block) CHECK_EQ(value, block[0]);
        for (uint64_t& value : block) ++value;
        shmem_put64_nbi(heap_data, block.data(), kWords, last);
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    CHECK_EQ(shmem_uint64_g(heap_data, last), 5 * n_pes);
    CHECK_EQ(shmem_uint64_g(&heap_data[kWords - 1], last), 5 * n_pes);
    shmem_barrier_all();
}

}  // namespace

void conformance::sentences_of_communication() {
    next = (pe + 1) % n_pes, previous = (pe + n_pes - 1) % n_pes, last = n_pes - 1;
    heap_data = static_cast<uint64_t*>(shmem_calloc(kWords, sizeof(uint64_t)));
    heap_signal = static_cast<uint64_t*>(shmem_calloc(1, sizeof(uint64_t)));
    CHECK(heap_data && heap_signal);
    signals_of_another_kind();
    signals_add_up();
    fetches_are_complete();
    plain_stores();
    sources_are_free_behind_a_collective();
    a_pe_that_computes_is_reached();
    locks_complete_what_was_put();
    shmem_free(heap_signal);
    shmem_free(heap_data);
}
