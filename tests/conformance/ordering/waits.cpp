// wait_until and test: one, all, any, some, and their vector forms. First against a model, with the answer already
// there: random values at the type's limits, random comparisons, statuses and set sizes. Then that no element which
// holds is passed over for ever. Then as waits for what the previous PE stores, in random order.
#include "check.h"
#include "tables.h"

#include <pthread.h>
#include <algorithm>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kMaxElements = 17;
constexpr size_t kRounds = 40;      // per test function and region
constexpr size_t kWaitRounds = 10;  // per wait function and region
constexpr size_t kNone = SIZE_MAX;

unsigned char static_ivars[kMaxElements * 8 + 8] __attribute__((aligned(64)));
unsigned char* heap_ivars;

// A value of the row's type, as the number it is; compared as that type compares.
struct Value {
    uint64_t bits;
    bool is_signed;
    size_t bytes;

    int64_t as_signed() const { return static_cast<int64_t>(bits << (64 - 8 * bytes)) >> (64 - 8 * bytes); }
    bool less(const Value& other) const { return is_signed ? as_signed() < other.as_signed() : bits < other.bits; }
};

bool compare(const Value& a, int cmp, const Value& b) {
    switch (cmp) {
        case SHMEM_CMP_EQ:
            return a.bits == b.bits;
        case SHMEM_CMP_NE:
            return a.bits != b.bits;
        case SHMEM_CMP_GT:
            return b.less(a);
        case SHMEM_CMP_GE:
            return !a.less(b);
        case SHMEM_CMP_LT:
            return a.less(b);
        case SHMEM_CMP_LE:
            return !b.less(a);
    }
    return false;
}

// Few values, so that all comparisons come true and false: limits, -1, 0, 1.
Value random_value(const function_info& info, Random& random) {
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * info.bytes);
    const uint64_t values[] = {0, 1, mask, mask >> 1, (mask >> 1) + 1, 2};
    return {values[random.below(std::size(values))], info.kind == 'i', info.bytes};
}

// One call: the set as the function gets it, and as the model sees it.
struct Case {
    size_t nelems;
    int cmp;
    std::vector<Value> values, with;
    std::vector<int> status;  // empty: NULL is passed
    size_t set_size = 0;
    std::vector<size_t> holding;  // in the set, and true

    Case(const wait_row& row, Random& random) {
        nelems = row.set == WAIT_ONE ? 1 : random.below(3) ? random.below(5) : random.below(kMaxElements + 1);
        cmp = row.is_ne ? SHMEM_CMP_NE : 1 + static_cast<int>(random.below(6));
        const Value common = random_value(row.info, random);
        for (size_t i = 0; i < nelems; ++i) {
            values.push_back(random_value(row.info, random));
            with.push_back(row.vector ? random_value(row.info, random) : common);
        }
        if (with.empty())
            with.push_back(common);
        if (row.set != WAIT_ONE && random.below(2))
            for (size_t i = 0; i < nelems; ++i) status.push_back(random.below(2) ? 0 : random.below(2) ? 1 : -7);
        if (!random.below(8))
            std::fill(status.begin(), status.end(), 1);
        for (size_t i = 0; i < nelems; ++i) {
            if (!status.empty() && status[i] != 0)
                continue;
            ++set_size;
            if (compare(values[i], cmp, with[i]))
                holding.push_back(i);
        }
    }

    // Makes every element of the set hold, so that a wait ends.
    bool ends(const wait_row& row) const {
        if (row.tests)
            return true;
        return row.set == WAIT_ONE || row.set == WAIT_ALL ? holding.size() == set_size
                                                          : !holding.empty() || set_size == 0;
    }
};

size_t call(const wait_row& row, unsigned char* ivars, const Case& what, size_t* indices) {
    unsigned char with[kMaxElements * 8];
    for (size_t i = 0; i < what.with.size(); ++i) memcpy(with + i * row.info.bytes, &what.with[i].bits, row.info.bytes);
    const size_t result = row.call(what.nelems == 0 ? nullptr : ivars, what.nelems, indices,
                                   what.status.empty() ? nullptr : what.status.data(), what.cmp, with);
    check_reached(row.info.name);
    return result;
}

void check_answer(const wait_row& row, const Case& what, size_t result, const size_t* indices) {
    switch (row.set) {
        case WAIT_ONE:
        case WAIT_ALL:
            CHECK_EQ(result, row.tests ? what.holding.size() == what.set_size : 0);
            break;
        case WAIT_ANY:
            if (what.holding.empty())
                CHECK_EQ(result, kNone);
            else
                CHECK(std::find(what.holding.begin(), what.holding.end(), result) != what.holding.end());
            break;
        case WAIT_SOME:
            CHECK_EQ(result, what.holding.size());
            std::vector<size_t> found(indices, indices + result);
            std::sort(found.begin(), found.end());
            CHECK(found == what.holding);
            for (size_t i = result; i < kMaxElements; ++i) CHECK_EQ(indices[i], 99);
    }
}

void test_model(const wait_row& row, size_t index, unsigned char* ivars) {
    subject = row.info.name;
    Random random = random_for(index, static_cast<uint64_t>(pe), 5);
    for (size_t round = 0; round < kRounds;) {
        const Case what(row, random);
        if (!what.ends(row))
            continue;
        ++round;
        size_t indices[kMaxElements];
        std::fill(indices, indices + kMaxElements, 99);
        for (size_t i = 0; i < what.nelems; ++i)
            memcpy(ivars + i * row.info.bytes, &what.values[i].bits, row.info.bytes);
        const size_t result = call(row, ivars, what, indices);
        check_answer(row, what, result, indices);
    }
}

// The previous PE sets my elements to 1 in random order; I wait until each of them has been reported, each once.
void store_to_next(const wait_row& row, unsigned char* ivars, size_t nelems, Random& random) {
    std::vector<size_t> order(nelems);
    for (size_t i = 0; i < nelems; ++i) order[i] = i;
    for (size_t i = nelems; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (size_t i : order) {
        unsigned char* target = ivars + i * row.info.bytes;
        if (row.info.bytes == 8)
            shmem_uint64_p(reinterpret_cast<uint64_t*>(target), 1, (pe + 1) % n_pes);
        else if (row.info.bytes == 2)
            shmem_uint16_p(reinterpret_cast<uint16_t*>(target), 1, (pe + 1) % n_pes);
        else
            shmem_uint32_atomic_set(reinterpret_cast<uint32_t*>(target), 1, (pe + 1) % n_pes);
    }
}

void wait_for_all_elements(const wait_row& row, unsigned char* ivars, size_t nelems) {
    std::vector<int> status(nelems, 0);
    std::vector<unsigned char> with(nelems * row.info.bytes, 0);
    size_t indices[kMaxElements], left = nelems;
    if (row.set == WAIT_ONE) {
        for (size_t i = 0; i < nelems; ++i)
            row.call(ivars + i * row.info.bytes, 1, nullptr, nullptr, SHMEM_CMP_NE, with.data());
    } else if (row.set == WAIT_ALL) {
        row.call(ivars, nelems, nullptr, nullptr, SHMEM_CMP_NE, with.data());
    }
    while (left > 0 && (row.set == WAIT_ANY || row.set == WAIT_SOME)) {
        size_t found = row.call(ivars, nelems, indices, status.data(), SHMEM_CMP_GT, with.data());
        if (row.set == WAIT_ANY)
            indices[0] = found, found = 1;
        CHECK(found >= 1 && found <= left);
        for (size_t k = 0; k < found; ++k) {
            CHECK(indices[k] < nelems);
            CHECK_EQ(status[indices[k]]++, 0);
        }
        left -= found;
    }
    for (size_t i = 0; i < nelems; ++i) CHECK_EQ(ivars[i * row.info.bytes], 1);
}

void test_wait(const wait_row& row, size_t index, unsigned char* ivars) {
    subject = row.info.name;
    Random random = random_for(index, static_cast<uint64_t>(pe), 6), shared = random_for(index, 0, 7);
    for (size_t round = 0; round < kWaitRounds; ++round) {
        const size_t nelems = 1 + shared.below(kMaxElements);
        memset(ivars, 0, kMaxElements * 8);
        shmem_barrier_all();
        store_to_next(row, ivars, nelems, random);
        wait_for_all_elements(row, ivars, nelems);
        shmem_barrier_all();
    }
}

// ---- Fairness: a series of calls returns each element that holds, whatever other calls come in between.
constexpr size_t kMostCalls = 50000;  // far beyond chance: each call returns each element with 1 / 8n at the least

// A set in which all elements hold that are not left out.
struct Holding {
    std::vector<int> status;

    Holding(size_t nelems, std::initializer_list<size_t> left_out) : status(nelems, 0) {
        for (size_t i : left_out) status[i] = 1;
    }
    size_t find(const wait_row& row, unsigned char* ivars) const {
        unsigned char with[kMaxElements * 8] = {};
        const size_t found = row.call(ivars, status.size(), nullptr, status.data(), SHMEM_CMP_EQ, with);
        CHECK(found < status.size());
        CHECK_EQ(status[found], 0);
        return found;
    }
};

// Each element of the first set is returned, while every other set is asked `times` times between two calls.
void check_each_comes(const wait_row& row, unsigned char* ivars, const std::vector<Holding>& sets, size_t times) {
    std::vector<bool> came(sets[0].status.size());
    size_t left = static_cast<size_t>(std::count(sets[0].status.begin(), sets[0].status.end(), 0));
    for (size_t calls = 0; left > 0; ++calls) {
        CHECK(calls < kMostCalls);
        const size_t found = sets[0].find(row, ivars);
        left -= came[found] ? 0 : 1;
        came[found] = true;
        for (size_t other = 1; other < sets.size(); ++other)
            for (size_t i = 0; i < times; ++i) sets[other].find(row, ivars + kMaxElements * row.info.bytes);
    }
}

void test_fairness(const wait_row& row) {
    subject = row.info.name;
    unsigned char* const ivars = heap_ivars;
    memset(ivars, 0, 2 * kMaxElements * 8);
    const Holding all(kMaxElements, {}), two(2, {}), last_of_two(2, {0}), some(9, {0, 2, 5}), third(3, {0, 1});
    check_each_comes(row, ivars, {all}, 0);
    check_each_comes(row, ivars, {some}, 0);
    // What one counter for all sets, or "behind what was found last" alone, would starve.
    for (const size_t times : {1, 2, 3, 7, 8}) {
        check_each_comes(row, ivars, {two, two}, times);
        check_each_comes(row, ivars, {two, last_of_two}, times);
        check_each_comes(row, ivars, {some, third, last_of_two}, times);
    }
}

// Every call comes from a thread that makes no other.
void test_fairness_of_threads() {
    subject = "shmem_int_test_any";
    static int ivars[3];
    bool came[3] = {};
    for (size_t left = 3, threads = 0; left > 0; ++threads) {
        CHECK(threads < 3000);
        size_t found = 0;
        pthread_t thread;
        CHECK_EQ(pthread_create(
                     &thread, nullptr,
                     [](void* result) -> void* {
                         *static_cast<size_t*>(result) = shmem_int_test_any(ivars, 3, nullptr, SHMEM_CMP_EQ, 0);
                         return nullptr;
                     },
                     &found),
                 0);
        pthread_join(thread, nullptr);
        CHECK(found < 3);
        left -= came[found] ? 0 : 1;
        came[found] = true;
    }
}

}  // namespace

int main() {
    start("waits");
    heap_ivars = static_cast<unsigned char*>(shmem_malloc(2 * kMaxElements * 8));
    CHECK(heap_ivars);
    for (size_t i = 0; i < wait_rows_count; ++i) {
        if (!is_drawn(i))
            continue;
        test_model(wait_rows[i], i, heap_ivars);
        test_model(wait_rows[i], i, static_ivars);
    }
    for (size_t i = 0; i < wait_rows_count; ++i)
        if (is_drawn(i))
            if (wait_rows[i].set == WAIT_ANY)
                test_fairness(wait_rows[i]);
    test_fairness_of_threads();
    shmem_barrier_all();
    for (size_t i = 0; i < wait_rows_count; ++i)
        if (is_drawn(i))
            if (!wait_rows[i].tests)
                test_wait(wait_rows[i], i, i % 2 ? heap_ivars : static_ivars);
    return finish();
}
