// Every atomic under contention: all PEs times 1, 2 and 4 threads on one variable. Sums come out right, tickets are all
// different, what is swapped in comes out exactly once, bits of one thread survive the others', words are never torn.
#include "check.h"
#include "tables.h"

#include <pthread.h>
#include <algorithm>
#include <vector>

using namespace conformance;

namespace {

constexpr uint64_t kMostRepeats = 100;
constexpr int kMaxThreads = 4;
constexpr int kMaxPes = 8;

uint64_t static_datum;
uint64_t* heap_datum;
uint64_t tickets[kMaxPes][kMaxThreads * kMostRepeats];  // on PE 0: what each PE's threads fetched

int threads;
uint64_t repeats;  // operations per thread and function

struct Worker {
    int number;  // in the PE
    const amo_row* row;
    uint64_t* datum;
    int owner;
    uint64_t fetched[kMostRepeats];

    uint64_t rank() const { return static_cast<uint64_t>(pe * threads + number); }
    uint64_t call(uint64_t value, uint64_t cond) {
        uint64_t old = 0;
        row->call(&old, datum, &value, &cond, owner);
        if (row->info.completion == COMPLETE_AFTER_QUIET)
            shmem_ctx_quiet(conformance_ctx), shmem_quiet();
        return old;
    }
};

uint64_t mask(const amo_row& row) {
    return row.info.bytes == 8 ? ~uint64_t{0} : 0xffffffffu;
}
uint64_t ranks() {
    return static_cast<uint64_t>(n_pes * threads);
}

// A word whose halves are the same: a torn one is seen. As a number: each (rank, i) has its own.
uint64_t token(const amo_row& row, uint64_t rank, uint64_t i) {
    const uint64_t half = rank * repeats + i + 1;
    return row.info.bytes == 8 ? half << 32 | half : half << 16 | half;
}
bool whole(const amo_row& row, uint64_t word) {
    return row.info.bytes == 8 ? (word >> 32) == (word & 0xffffffffu) : (word >> 16) == (word & 0xffffu);
}

void increment_by_compare_swap(Worker& worker) {
    uint64_t seen = 0;
    for (;;) {
        const uint64_t old = worker.call((seen + 1) & mask(*worker.row), seen);
        if (old == seen)
            return;
        seen = old;
    }
}

void put_token(Worker& worker, uint64_t i) {
    const uint64_t word = token(*worker.row, worker.rank(), i);
    if (worker.row->info.bytes == 8)
        shmem_uint64_p(worker.datum, word, worker.owner);
    else
        shmem_uint32_p(reinterpret_cast<uint32_t*>(worker.datum), static_cast<uint32_t>(word), worker.owner);
}

uint64_t fetch_word(const Worker& worker) {
    return worker.row->info.bytes == 8
               ? shmem_uint64_atomic_fetch(worker.datum, worker.owner)
               : shmem_uint32_atomic_fetch(reinterpret_cast<uint32_t*>(worker.datum), worker.owner);
}

void work(Worker& worker) {
    const amo_row& row = *worker.row;
    const uint64_t bit = uint64_t{1} << (worker.rank() % 32);
    for (uint64_t i = 0; i < repeats; ++i) {
        switch (row.op) {
            case AMO_FETCH:
                put_token(worker, i);
                CHECK(whole(row, worker.call(0, 0)));
                break;
            case AMO_SET:
                worker.call(token(row, worker.rank(), i), 0);
                CHECK(whole(row, fetch_word(worker)));
                break;
            case AMO_SWAP:
                worker.fetched[i] = worker.call(token(row, worker.rank(), i), 0);
                break;
            case AMO_COMPARE_SWAP:
                increment_by_compare_swap(worker);
                break;
            case AMO_INC:
            case AMO_ADD:
                worker.fetched[i] = worker.call(1, 0);
                break;
            case AMO_AND:
                worker.fetched[i] = worker.call(~bit, 0);
                break;
            case AMO_OR:
            case AMO_XOR:
                worker.fetched[i] = worker.call(bit, 0);
                break;
        }
    }
}

void* run(void* argument) {
    work(*static_cast<Worker*>(argument));
    return nullptr;
}

// Numbers fetched by all, brought together on PE 0 and sorted.
std::vector<uint64_t> gather(const std::vector<Worker>& workers) {
    uint64_t mine[kMaxThreads * kMostRepeats];
    const size_t count = static_cast<size_t>(threads) * repeats;
    for (size_t i = 0; i < count; ++i) mine[i] = workers[i / repeats].fetched[i % repeats];
    shmem_put64(tickets[pe], mine, count, 0);
    barrier();
    std::vector<uint64_t> all;
    for (int from = 0; from < n_pes && pe == 0; ++from) all.insert(all.end(), tickets[from], tickets[from] + count);
    std::sort(all.begin(), all.end());
    return all;
}

// Each token goes in once; so each comes out once, but the last, which is still there, and the 0 of the beginning.
void check_swapped(const amo_row& row, std::vector<uint64_t> out, uint64_t last) {
    out.push_back(last);
    std::sort(out.begin(), out.end());
    std::vector<uint64_t> in = {0};
    for (uint64_t rank = 0; rank < ranks(); ++rank)
        for (uint64_t i = 0; i < repeats; ++i) in.push_back(token(row, rank, i));
    std::sort(in.begin(), in.end());
    CHECK(in == out);
}

void check_result(const amo_row& row, const std::vector<Worker>& workers, uint64_t last) {
    const std::vector<uint64_t> all = gather(workers);
    const uint64_t bits = ranks() >= 32 ? 0xffffffffu : (uint64_t{1} << ranks()) - 1;
    if (pe != 0)
        return;
    switch (row.op) {
        case AMO_FETCH:
        case AMO_SET:
            CHECK(whole(row, last));
            break;
        case AMO_SWAP:
            check_swapped(row, all, last);
            break;
        case AMO_COMPARE_SWAP:
            CHECK_EQ(last, ranks() * repeats);
            break;
        case AMO_INC:
        case AMO_ADD:
            CHECK_EQ(last, ranks() * repeats);
            for (uint64_t i = 0; i < all.size() && row.fetches; ++i) CHECK_EQ(all[i], i);
            break;
        case AMO_AND:
            CHECK_EQ(last, mask(row) & ~bits);
            break;
        case AMO_OR:
            CHECK_EQ(last, bits);
            break;
        case AMO_XOR:  // an even number of times
            CHECK_EQ(last, 0);
            break;
    }
}

void contend(const amo_row& row, size_t index) {
    subject = row.info.name;
    const int owner = index % 2 ? n_pes - 1 : 0;
    uint64_t* datum = index % 3 ? heap_datum : &static_datum;
    const uint64_t first = row.op == AMO_AND ? mask(row) : row.op == AMO_FETCH ? token(row, 0, 0) : 0;
    memcpy(datum, &first, sizeof first);
    barrier();
    std::vector<Worker> workers(static_cast<size_t>(threads));
    std::vector<pthread_t> ids(static_cast<size_t>(threads));
    for (int t = 0; t < threads; ++t) {
        workers[static_cast<size_t>(t)] = {t, &row, datum, owner, {}};
        if (t > 0)
            CHECK_EQ(pthread_create(&ids[static_cast<size_t>(t)], nullptr, run, &workers[static_cast<size_t>(t)]), 0);
    }
    work(workers[0]);
    for (int t = 1; t < threads; ++t) pthread_join(ids[static_cast<size_t>(t)], nullptr);
    barrier();
    uint64_t last = 0;
    shmem_getmem(&last, datum, row.info.bytes, owner);
    check_result(row, workers, last);
    barrier();
}

}  // namespace

int main() {
    start("contention");
    heap_datum = static_cast<uint64_t*>(shmem_malloc(sizeof *heap_datum));
    repeats = number("HEDDLE_TEST_ROUNDS", kMostRepeats) / 2 * 2;  // even
    CHECK(heap_datum && n_pes <= kMaxPes && repeats <= kMostRepeats);
    for (int count : {1, 2, 4}) {
        threads = count;
        for (size_t i = static_cast<size_t>(count) % 3; i < amo_rows_count; i += 3)
            if (is_drawn(i))
                contend(amo_rows[i], i);
    }
    threads = 2;
    for (size_t i = 0; i < amo_rows_count; ++i)
        if (is_drawn(i))
            contend(amo_rows[i], i);
    return finish();
}
