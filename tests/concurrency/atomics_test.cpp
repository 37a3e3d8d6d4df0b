// Atomics from all threads of all PEs on the same data: none is lost, every old value is seen once, waits end.
#include "job.h"

#include <algorithm>

namespace heddle::test {
namespace {

constexpr int kTimes = 400;

class AtomicsTest : public JobTest {
  protected:
    long everybody() const { return static_cast<long>(n_pes()) * n_threads(); }
};

TEST_P(AtomicsTest, NoAdditionIsLost) {
    run_job([&](int) {
        long* sums = symmetric<long>(8);
        unsigned* small = symmetric<unsigned>(8);
        run_threads([&](int) {
            for (int i = 0; i < kTimes; ++i) {
                const int to = i % n_pes();
                shmem_long_atomic_inc(sums, to);
                shmem_long_atomic_add(sums, 2, to);
                shmem_uint_atomic_fetch_add(small, 1, to);
            }
        });
        shmem_barrier_all();
        long total = 0, small_total = 0;
        for (int pe = 0; pe < n_pes(); ++pe) {
            total += shmem_long_atomic_fetch(sums, pe);
            small_total += shmem_uint_g(small, pe);
        }
        ASSERT_EQ(total, 3 * kTimes * everybody());
        ASSERT_EQ(small_total, kTimes * everybody());
        shmem_free(small);
        shmem_free(sums);
    });
}

TEST_P(AtomicsTest, EveryTicketIsDrawnOnce) {
    run_job([&](int) {
        const size_t tickets = static_cast<size_t>(kTimes * everybody());
        long* next = symmetric<long>(1);
        int* drawn = symmetric<int>(tickets);
        run_threads([&](int) {
            for (int i = 0; i < kTimes; ++i) {
                const long ticket = shmem_long_atomic_fetch_inc(next, 0);
                shmem_int_atomic_inc(drawn + ticket, 0);
            }
        });
        shmem_barrier_all();
        if (shmem_my_pe() == 0) {
            ASSERT_TRUE(std::all_of(drawn, drawn + tickets, [](int times) { return times == 1; }));
        }
        shmem_free(drawn);
        shmem_free(next);
    });
}

TEST_P(AtomicsTest, CompareSwapSwapAndBits) {
    run_job([&](int pe) {
        unsigned long *counter = symmetric<unsigned long>(1), *bits = symmetric<unsigned long>(1);
        long* token = symmetric<long>(1);
        const unsigned long all = (1ul << everybody()) - 1;
        run_threads([&](int thread) {
            for (int i = 0; i < kTimes / 4; ++i) {
                unsigned long seen = shmem_ulong_atomic_fetch(counter, 0);
                for (;;) {
                    const unsigned long found = shmem_ulong_atomic_compare_swap(counter, seen, seen + 1, 0);
                    if (found == seen)
                        break;
                    seen = found;
                }
            }
            const unsigned long mine = 1ul << (pe * n_threads() + thread);
            shmem_ulong_atomic_or(bits, mine, 0);
            ASSERT_TRUE(shmem_ulong_atomic_fetch_xor(bits, mine, 0) & mine);
            ASSERT_FALSE(shmem_ulong_atomic_fetch_and(bits, ~mine, 0) & mine);
            shmem_ulong_atomic_xor(bits, mine, 0);
            shmem_long_atomic_swap(token, pe + 1, 0);
        });
        shmem_barrier_all();
        ASSERT_EQ(shmem_ulong_g(counter, 0), static_cast<unsigned long>(kTimes / 4 * everybody()));
        ASSERT_EQ(shmem_ulong_g(bits, 0), all);
        ASSERT_TRUE(shmem_long_g(token, 0) >= 1 && shmem_long_g(token, 0) <= n_pes());
        shmem_free(token);
        shmem_free(bits);
        shmem_free(counter);
    });
}

// Each thread waits for a set of flags that the others raise, in all three forms.
TEST_P(AtomicsTest, WaitsOnSetsEnd) {
    run_job([&](int pe) {
        const size_t count = static_cast<size_t>(everybody());
        long* flags = symmetric<long>(count);
        run_threads([&](int thread) {
            const size_t mine = static_cast<size_t>(pe * n_threads() + thread);
            for (int to = 0; to < n_pes(); ++to) shmem_long_atomic_set(flags + mine, 7, to);
            std::vector<size_t> found(count);
            ASSERT_LT(shmem_long_wait_until_any(flags, count, nullptr, SHMEM_CMP_EQ, 7), count);
            ASSERT_GE(shmem_long_wait_until_some(flags, count, found.data(), nullptr, SHMEM_CMP_NE, 0), 1u);
            shmem_long_wait_until_all(flags, count, nullptr, SHMEM_CMP_GT, 6);
            ASSERT_TRUE(shmem_long_test_all(flags, count, nullptr, SHMEM_CMP_EQ, 7));
        });
        shmem_free(flags);
    });
}

HEDDLE_FOR_ALL_SHAPES(AtomicsTest);

}  // namespace
}  // namespace heddle::test
