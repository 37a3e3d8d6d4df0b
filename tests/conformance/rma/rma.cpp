// Contiguous put and get, p and g, blocking and not: every type and size, counts around what the copy code treats
// specially, heap and static data, every PE to every PE; the bytes beside the target stay what they were.
#include "check.h"
#include "completion.h"
#include "tables.h"

#include <heddle/hot_path.h>
#include <cstdlib>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kCounts[] = {0, 1, 2, 3, 7, 16, 17};
constexpr size_t kBig[] = {1000, 65537};
constexpr size_t kMaxBytes = 16;        // of an element
constexpr size_t kGuard = 32;           // bytes that must stay, on both sides
constexpr size_t kSlot = 2048;          // of one writer: all of kCounts and their guards
constexpr unsigned char kFresh = 0xa5;  // what guards hold
constexpr size_t kMaxPes = 8;

unsigned char static_area[kMaxPes * kSlot] __attribute__((aligned(64)));
unsigned char* heap_area;
unsigned char* big_area;
constexpr size_t kBigBytes = 65537 * kMaxBytes + 4 * kGuard;

// Where count i of an element size lies in a slot: aligned to the element and to nothing more; odd for single bytes.
size_t place(size_t i, size_t bytes) {
    size_t at = kGuard + bytes;
    for (size_t k = 0; k < i; ++k) at += kCounts[k] * bytes + kGuard + bytes;
    return at;
}

// The address of an element-aligned place in a private buffer, one element off its start.
unsigned char* off(std::vector<unsigned char>& buffer, size_t bytes) {
    return buffer.data() + bytes;
}

void fill(void* to, size_t bytes, size_t row, size_t count, int from, int target) {
    random_for(row * 131 + count, static_cast<uint64_t>(from), static_cast<uint64_t>(target)).fill(to, bytes);
}

// Every PE puts every count to every PE; each checks what all wrote to it.
void test_put(const copy_row& row, size_t index, unsigned char* area) {
    subject = row.info.name;
    const size_t bytes = row.info.bytes;
    memset(area, kFresh, static_cast<size_t>(n_pes) * kSlot);
    barrier();
    std::vector<unsigned char> source(17 * kMaxBytes + 64), expected(kSlot);
    unsigned char* mine = area + static_cast<size_t>(pe) * kSlot;
    for (int target = 0; target < n_pes; ++target) {
        for (size_t i = 0; i < std::size(kCounts); ++i) {
            fill(off(source, bytes), kCounts[i] * bytes, index, i, pe, target);
            row.call(mine + place(i, bytes), off(source, bytes), kCounts[i], target);
            check_reached(row.info.name);
            complete(row.info);  // source may be reused from here on
        }
    }
    barrier();
    for (int writer = 0; writer < n_pes; ++writer) {
        memset(expected.data(), kFresh, kSlot);
        for (size_t i = 0; i < std::size(kCounts); ++i)
            fill(expected.data() + place(i, bytes), kCounts[i] * bytes, index, i, writer, pe);
        CHECK_BYTES("what a PE put", area + static_cast<size_t>(writer) * kSlot, expected.data(), kSlot);
    }
    barrier();
}

void test_get(const copy_row& row, size_t index, unsigned char* area) {
    subject = row.info.name;
    const size_t bytes = row.info.bytes;
    for (size_t i = 0; i < std::size(kCounts); ++i) fill(area + place(i, bytes), kCounts[i] * bytes, index, i, pe, -1);
    barrier();
    std::vector<unsigned char> got(kSlot), expected(kSlot);
    for (int target = 0; target < n_pes; ++target) {
        memset(got.data(), kFresh, kSlot);
        memset(expected.data(), kFresh, kSlot);
        for (size_t i = 0; i < std::size(kCounts); ++i) {
            fill(expected.data() + place(i, bytes), kCounts[i] * bytes, index, i, target, -1);
            row.call(got.data() + place(i, bytes), area + place(i, bytes), kCounts[i], target);
            check_reached(row.info.name);
        }
        complete(row.info);
        CHECK_BYTES("what a PE got", got.data(), expected.data(), kSlot);
    }
    barrier();
}

// A large count to the next PE, by one row of each size; the source is as odd as its elements allow.
void test_big(const copy_row& row, size_t index, size_t count, bool is_put) {
    subject = row.info.name;
    const size_t bytes = row.info.bytes, total = count * bytes;
    const int next = (pe + 1) % n_pes, previous = (pe + n_pes - 1) % n_pes;
    std::vector<unsigned char> mine(total + 2 * kMaxBytes), expected(total);
    unsigned char* target = big_area + kGuard + bytes;
    memset(big_area, kFresh, kGuard + bytes);
    memset(target + total, kFresh, kGuard);
    if (!is_put)
        fill(target, total, index, count, pe, 0);
    barrier();
    if (is_put) {
        fill(off(mine, bytes), total, index, count, pe, 0);
        row.call(target, off(mine, bytes), count, next);
    } else {
        row.call(off(mine, bytes), target, count, next);
    }
    if (row.info.completion == COMPLETE_AT_RETURN)
        shmem_ctx_quiet(conformance_ctx);
    complete(row.info);
    barrier();
    fill(expected.data(), total, index, count, is_put ? previous : next, 0);
    CHECK_BYTES("a large block", is_put ? target : off(mine, bytes), expected.data(), total);
    CHECK_UNTOUCHED("before a large block", big_area, kFresh, kGuard + bytes);
    CHECK_UNTOUCHED("behind a large block", target + total, kFresh, kGuard);
    barrier();
}

// What is large, and what is around the size from which on transfers under a request may be left to others.
std::vector<size_t> big_counts(const function_info& info) {
    std::vector<size_t> counts = {kBig[0], kBig[1]};
    const size_t border = HEDDLE_LARGE_BYTES / info.bytes;
    if (info.completion == COMPLETE_AFTER_REQUEST)
        counts.insert(counts.end(), {border - 1, border, border + 1});
    return counts;
}

// Values: zero, ones, the smallest and largest of signed types, NaNs with payloads, and random bits.
void make_value(unsigned char* value, const function_info& info, size_t number, Random& random) {
    const size_t bytes = info.bytes;
    memset(value, number == 1 ? 0xff : 0, kMaxBytes);
    if (number >= 2)
        random.fill(value, bytes);
    if (info.kind == 'f') {
        const float quiet = __builtin_nanf("0x12345");
        const double payload = __builtin_nan("0x123456789ab");
        const long double wide[] = {0.0L, -1.0L, __builtin_nanl("0x123456789abcd"), -__builtin_infl(), 1.1897e4932L};
        if (bytes == sizeof(long double))  // random bits are no value of this type
            memcpy(value, &wide[number % std::size(wide)], bytes);
        else if (number == 2 && bytes == sizeof quiet)
            memcpy(value, &quiet, bytes);
        else if (number == 2)
            memcpy(value, &payload, bytes);
    } else if (number == 2 || number == 3) {  // min and max of the signed type
        memset(value, number == 2 ? 0 : 0xff, bytes);
        value[bytes - 1] = number == 2 ? 0x80 : 0x7f;
    }
}
constexpr size_t kValues = 6;

// The bytes of a value that mean something: the 80-bit long double of x86 has six that do not.
size_t significant(const function_info& info) {
    return info.kind == 'f' && info.bytes == 16 && __LDBL_MANT_DIG__ == 64 ? 10 : info.bytes;
}

void test_values(const value_row& row, size_t index, unsigned char* area, bool is_p) {
    subject = row.info.name;
    const size_t bytes = row.info.bytes, step = 3 * kMaxBytes;
    unsigned char value[kMaxBytes] __attribute__((aligned(16)));
    memset(area, kFresh, static_cast<size_t>(n_pes) * kSlot);
    for (size_t number = 0; number < kValues && !is_p; ++number) {
        Random random = random_for(index, static_cast<uint64_t>(pe), number);
        make_value(value, row.info, number, random);
        memcpy(area + number * step + kMaxBytes, value, bytes);
    }
    barrier();
    for (int target = 0; target < n_pes; ++target) {
        for (size_t number = 0; number < kValues; ++number) {
            Random random = random_for(index, static_cast<uint64_t>(is_p ? pe : target), number);
            unsigned char got[kMaxBytes] __attribute__((aligned(16)));
            make_value(value, row.info, number, random);
            if (is_p)
                row.call(area + static_cast<size_t>(pe) * kSlot + number * step + kMaxBytes, value, target);
            else
                row.call(got, area + number * step + kMaxBytes, target);
            check_reached(row.info.name);
            if (!is_p)
                CHECK_BYTES("a value got", got, value, significant(row.info));
        }
    }
    barrier();
    for (int writer = 0; writer < n_pes && is_p; ++writer) {
        for (size_t number = 0; number < kValues; ++number) {
            Random random = random_for(index, static_cast<uint64_t>(writer), number);
            make_value(value, row.info, number, random);
            const unsigned char* at = area + static_cast<size_t>(writer) * kSlot + number * step;
            CHECK_UNTOUCHED("before a value", at, kFresh, kMaxBytes);
            CHECK_BYTES("a value put", at + kMaxBytes, value, significant(row.info));
            CHECK_UNTOUCHED("behind a value", at + kMaxBytes + bytes, kFresh, kMaxBytes);
        }
    }
    barrier();
}

// putmem and getmem at every offset and many lengths: bytes know no alignment.
void test_unaligned_bytes(unsigned char* area) {
    subject = "shmem_putmem, shmem_getmem";
    const int next = (pe + 1) % n_pes;
    for (size_t round = 0; round < 200; ++round) {
        Random random = random_for(77, static_cast<uint64_t>(pe), round);
        unsigned char source[256], expected[256], got[256];
        const size_t to = random.below(100), from = random.below(100), length = random.below(100);
        unsigned char* mine = area + static_cast<size_t>(pe) * kSlot;
        random.fill(source, sizeof source);
        memset(expected, kFresh, sizeof expected);
        shmem_putmem(mine, expected, sizeof expected, next);
        shmem_fence();
        shmem_putmem(mine + to, source + from, length, next);
        shmem_quiet();
        memcpy(expected + to, source + from, length);
        shmem_getmem(got, mine, sizeof got, next);
        CHECK_BYTES("all bytes", got, expected, sizeof got);
        memset(expected, 0, sizeof expected);
        memset(got, 0, sizeof got);
        memcpy(expected + from, source + from, length);
        shmem_getmem(got + from, mine + to, length, next);
        CHECK_BYTES("some bytes", got, expected, sizeof got);
    }
    barrier();
}

}  // namespace

int main() {
    start("rma");
    heap_area = static_cast<unsigned char*>(shmem_malloc(static_cast<size_t>(n_pes) * kSlot));
    big_area = static_cast<unsigned char*>(shmem_malloc(kBigBytes));
    CHECK(heap_area && big_area);
    CHECK_EQ(n_pes <= static_cast<int>(kMaxPes), true);
    for (unsigned char* area : {heap_area, static_area}) {
        for (size_t i = 0; i < put_rows_count; ++i)
            if (is_drawn(i))
                test_put(put_rows[i], i, area);
        for (size_t i = 0; i < get_rows_count; ++i)
            if (is_drawn(i))
                test_get(get_rows[i], i, area);
        for (size_t i = 0; i < p_rows_count; ++i)
            if (is_drawn(i))
                test_values(p_rows[i], i, area, true);
        for (size_t i = 0; i < g_rows_count; ++i)
            if (is_drawn(i))
                test_values(g_rows[i], i, area, false);
        test_unaligned_bytes(area);
    }
    const size_t first = seed % 7;  // one row in seven, another set each run
    for (size_t i = first; i < put_rows_count; i += 7)
        for (size_t count : big_counts(put_rows[i].info)) test_big(put_rows[i], i, count, true);
    for (size_t i = first; i < get_rows_count; i += 7)
        for (size_t count : big_counts(get_rows[i].info)) test_big(get_rows[i], i, count, false);
    return finish();
}
