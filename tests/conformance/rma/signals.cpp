// put_signal in every form, signal_set, signal_add, signal_fetch and signal_wait_until: the data is there once the
// signal is, SET replaces and ADD adds, nothing else changes. A ring: each PE sends to the next and checks what it got.
#include "check.h"
#include "completion.h"
#include "tables.h"

#include <vector>

using namespace conformance;

namespace {

constexpr size_t kCounts[] = {0, 1, 2, 3, 7, 17};
constexpr size_t kLong = 5000;
constexpr size_t kMaxBytes = 16;
constexpr unsigned char kFresh = 0x3c;

unsigned char static_data[kLong * kMaxBytes] __attribute__((aligned(64)));
unsigned char* heap_data;
uint64_t static_signals[3];  // the middle one is used
uint64_t* heap_signals;
uint64_t acknowledged;  // rounds whose data my successor has checked

int next, previous;

// One message to the next PE and one from the previous one; `round` is the number of all messages so far.
void exchange(const put_signal_row& row, unsigned char* data, uint64_t* signal, size_t count, int sig_op,
              uint64_t& round) {
    const size_t bytes = count * row.info.bytes;
    std::vector<unsigned char> mine(bytes + 1), expected(bytes + 1);
    const uint64_t before = round++;
    random_for(round, static_cast<uint64_t>(pe)).fill(mine.data(), bytes);
    random_for(round, static_cast<uint64_t>(previous)).fill(expected.data(), bytes);
    row.call(data, mine.data(), count, signal, sig_op == SHMEM_SIGNAL_ADD ? 1 : round, sig_op, next);
    check_reached(row.info.name);
    CHECK_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_GE, round), round);
    if (bytes > 0)  // the end is what would come last
        CHECK_EQ(data[bytes - 1], expected[bytes - 1]);
    CHECK_EQ(shmem_signal_fetch(signal), before + 1);
    CHECK_BYTES("data behind the signal", data, expected.data(), bytes);
    CHECK_UNTOUCHED("behind the data", data + bytes, kFresh, 16);
    memset(data, kFresh, bytes);
    complete(row.info);
    shmem_uint64_p(&acknowledged, round, previous);
    shmem_uint64_wait_until(&acknowledged, SHMEM_CMP_GE, round);
}

void test_put_signal(unsigned char* data, uint64_t* signals) {
    memset(data, kFresh, kLong * kMaxBytes);
    uint64_t round = 0;
    acknowledged = 0;
    signals[0] = signals[2] = 0x77;
    signals[1] = 0;
    barrier();
    for (size_t i = 0; i < put_signal_rows_count; ++i) {
        if (!is_drawn(i))
            continue;
        subject = put_signal_rows[i].info.name;
        const size_t count = kCounts[i % std::size(kCounts)];
        exchange(put_signal_rows[i], data, &signals[1], count, SHMEM_SIGNAL_SET, round);
        exchange(put_signal_rows[i], data, &signals[1], kCounts[(i + 1) % std::size(kCounts)], SHMEM_SIGNAL_ADD, round);
    }
    for (size_t i = seed % 11; i < put_signal_rows_count; i += 11) {
        subject = put_signal_rows[i].info.name;
        for (int times = 0; times < 10; ++times)
            exchange(put_signal_rows[i], data, &signals[1], kLong - 1, times % 2, round);
    }
    CHECK_EQ(signals[0], 0x77);
    CHECK_EQ(signals[2], 0x77);
    barrier();
}

// Zero elements with every form of a null pointer: only the signal moves.
void test_signal_alone() {
    heap_signals[1] = 5;
    barrier();
    shmem_putmem_signal(heap_data, nullptr, 0, &heap_signals[1], 7, SHMEM_SIGNAL_ADD, next);
    CHECK_EQ(shmem_signal_wait_until(&heap_signals[1], SHMEM_CMP_NE, 5), 12);
    barrier();
}

void test_signal_operations(uint64_t* signals) {
    for (size_t i = 0; i < signal_rows_count; ++i) {
        if (!is_drawn(i))
            continue;
        const signal_row& row = signal_rows[i];
        subject = row.info.name;
        const uint64_t first = UINT64_MAX - 2;
        memset(signals, 0x11, 3 * sizeof *signals);
        signals[1] = first;
        barrier();
        row.call(&signals[1], 5, next);
        check_reached(row.info.name);
        const uint64_t right = row.adds ? first + 5 : 5;  // adding wraps
        CHECK_EQ(shmem_signal_wait_until(&signals[1], SHMEM_CMP_NE, first), right);
        CHECK_EQ(shmem_signal_fetch(&signals[1]), right);
        CHECK_EQ(signals[0], 0x1111111111111111u);
        CHECK_EQ(signals[2], 0x1111111111111111u);
        barrier();
    }
    subject = "shmem_signal_add";
    signals[1] = 0;
    barrier();
    for (int times = 0; times < 100; ++times) shmem_signal_add(&signals[1], 3, 0);
    barrier();
    if (pe == 0)
        CHECK_EQ(shmem_signal_fetch(&signals[1]), 300 * n_pes);
    barrier();
}

// signal_wait_until compares as unsigned, in all six ways, and returns what satisfied it.
void test_comparisons() {
    subject = "shmem_signal_wait_until";
    uint64_t* signal = &heap_signals[1];
    *signal = UINT64_MAX - 1;
    CHECK_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, UINT64_MAX - 1), UINT64_MAX - 1);
    CHECK_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_NE, 0), UINT64_MAX - 1);
    CHECK_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_GT, 1), UINT64_MAX - 1);
    CHECK_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_GE, UINT64_MAX - 1), UINT64_MAX - 1);
    CHECK_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_LT, UINT64_MAX), UINT64_MAX - 1);
    CHECK_EQ(shmem_signal_wait_until(signal, SHMEM_CMP_LE, UINT64_MAX - 1), UINT64_MAX - 1);
    barrier();
}

}  // namespace

int main() {
    start("signals");
    next = (pe + 1) % n_pes;
    previous = (pe + n_pes - 1) % n_pes;
    heap_data = static_cast<unsigned char*>(shmem_malloc(kLong * kMaxBytes));
    heap_signals = static_cast<uint64_t*>(shmem_malloc(3 * sizeof *heap_signals));
    CHECK(heap_data && heap_signals);
    test_put_signal(heap_data, heap_signals);
    test_put_signal(static_data, static_signals);
    test_signal_alone();
    test_signal_operations(heap_signals);
    test_signal_operations(static_signals);
    test_comparisons();
    return finish();
}
