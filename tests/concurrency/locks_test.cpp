// Locks by PEs and threads mixed. What a lock protects is plain memory here, so that ThreadSanitizer reports a hole.
#include "job.h"

namespace heddle::test {
namespace {

using LocksTest = JobTest;

constexpr int kTurns = 60;

TEST_P(LocksTest, OneHolderAtATime) {
    run_job([&](int) {
        long* lock = symmetric<long>(1);
        long* counter = symmetric<long>(1);
        long* shared = static_cast<long*>(shmem_ptr(counter, 0));
        run_threads([&](int) {
            for (int i = 0; i < kTurns; ++i) {
                shmem_set_lock(lock);
                *shared += 1;
                shmem_clear_lock(lock);
            }
        });
        shmem_barrier_all();
        EXPECT_EQ(*shared, static_cast<long>(kTurns) * n_pes() * n_threads());
        EXPECT_EQ(*lock, 0);
        shmem_barrier_all();
        shmem_free(counter);
        shmem_free(lock);
    });
}

TEST_P(LocksTest, TestLockTakesOnlyWhatIsFree) {
    run_job([&](int) {
        long* lock = symmetric<long>(1);
        long* counter = symmetric<long>(1);
        long* shared = static_cast<long*>(shmem_ptr(counter, 0));
        run_threads([&](int) {
            for (int taken = 0; taken < kTurns / 4;) {
                if (shmem_test_lock(lock) != 0) {
                    std::this_thread::yield();
                    continue;
                }
                *shared += 1;
                ++taken;
                shmem_clear_lock(lock);
            }
        });
        shmem_barrier_all();
        EXPECT_EQ(*shared, static_cast<long>(kTurns / 4) * n_pes() * n_threads());
        shmem_barrier_all();
        shmem_free(counter);
        shmem_free(lock);
    });
}

// Each lock has a home of its own; two held at once, always in the same order.
TEST_P(LocksTest, SeveralLocksAtOnce) {
    run_job([&](int) {
        constexpr size_t kLocks = 5;
        long* locks = symmetric<long>(kLocks);
        long* counters = symmetric<long>(kLocks);
        long* shared = static_cast<long*>(shmem_ptr(counters, n_pes() - 1));
        run_threads([&](int thread) {
            for (int i = 0; i < kTurns / 2; ++i) {
                const size_t first = static_cast<size_t>(i + thread) % (kLocks - 1), second = first + 1;
                shmem_set_lock(locks + first);
                shmem_set_lock(locks + second);
                shared[first] += 1;
                shared[second] += 1;
                shmem_clear_lock(locks + second);
                shmem_clear_lock(locks + first);
            }
        });
        shmem_barrier_all();
        long sum = 0;
        for (size_t i = 0; i < kLocks; ++i) sum += shared[i];
        EXPECT_EQ(sum, 2L * (kTurns / 2) * n_pes() * n_threads());
        shmem_barrier_all();
        shmem_free(counters);
        shmem_free(locks);
    });
}

HEDDLE_FOR_ALL_SHAPES(LocksTest);

}  // namespace
}  // namespace heddle::test
