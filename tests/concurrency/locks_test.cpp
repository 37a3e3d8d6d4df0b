// Locks by PEs and threads mixed. What a lock protects is plain memory here, so that ThreadSanitizer reports a hole
// (racy.cpp shows that it does). Twice: with waits that spin first, and with waits that sleep at once.
#include "job.h"

#include <string>
#include <tuple>

namespace heddle::test {
namespace {

constexpr int kTurns = 60;

class LocksTest : public testing::TestWithParam<std::tuple<Shape, bool>> {
  protected:
    int n_pes() const { return std::get<0>(GetParam()).n_pes; }
    int n_threads() const { return std::get<0>(GetParam()).n_threads; }
    long everybody() const { return static_cast<long>(n_pes()) * n_threads(); }

    // Runs body(thread, locks, shared) on all threads of all PEs; looks at the sum of the cells in shared, which PE
    // `home` holds, and at the locks, which must be free again.
    template <class Body>
    void run_job(size_t count, int home, long right, Body body) const {
        setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
        if (std::get<1>(GetParam())) {
            setenv("HEDDLE_SPIN_US", "0", 1);
            setenv("HEDDLE_YIELD_US", "0", 1);
        }
        run_pes(n_pes(), [&](int) {
            shmem_init();
            long* locks = symmetric<long>(count);
            long* cells = symmetric<long>(count);
            long* shared = static_cast<long*>(shmem_ptr(cells, home));
            std::vector<std::thread> others;
            for (int thread = 1; thread < n_threads(); ++thread)
                others.push_back(thread_of_pe([=] { body(thread, locks, shared); }));
            body(0, locks, shared);
            for (std::thread& other : others) other.join();
            shmem_barrier_all();
            long sum = 0;
            for (size_t i = 0; i < count; ++i) {
                sum += shared[i];
                EXPECT_EQ(locks[i], 0) << "a free lock is zero everywhere";
            }
            EXPECT_EQ(sum, right);
            shmem_barrier_all();
            shmem_free(cells);
            shmem_free(locks);
            shmem_finalize();
        });
    }
};

TEST_P(LocksTest, OneHolderAtATime) {
    run_job(1, 0, kTurns * everybody(), [](int, long* lock, long* shared) {
        for (int i = 0; i < kTurns; ++i) {
            shmem_set_lock(lock);
            *shared += 1;
            if (i % 8 == 0)
                std::this_thread::yield();
            shmem_clear_lock(lock);
        }
    });
}

TEST_P(LocksTest, TestLockTakesOnlyWhatIsFree) {
    run_job(1, 0, kTurns / 4 * everybody(), [](int, long* lock, long* shared) {
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
}

// Some wait in the queue while others look whether it is empty.
TEST_P(LocksTest, SetAndTestMixed) {
    run_job(1, n_pes() - 1, kTurns * everybody(), [](int thread, long* lock, long* shared) {
        for (int i = 0; i < kTurns; ++i) {
            if ((i + thread) % 3 != 0 || shmem_test_lock(lock) != 0)
                shmem_set_lock(lock);
            ASSERT_EQ(shmem_test_lock(lock), 1) << "it is held, by this very thread";
            *shared += 1;
            shmem_clear_lock(lock);
        }
    });
}

// Each lock has a home of its own; two held at once, always in the same order.
TEST_P(LocksTest, SeveralLocksAtOnce) {
    constexpr size_t kLocks = 5;
    run_job(kLocks, n_pes() - 1, 2L * (kTurns / 2) * everybody(), [](int thread, long* locks, long* shared) {
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
}

INSTANTIATE_TEST_SUITE_P(Shapes, LocksTest, testing::Combine(testing::ValuesIn(kShapes), testing::Bool()),
                         [](const auto& parameters) {
                             const Shape& shape = std::get<0>(parameters.param);
                             return std::to_string(shape.n_pes) + "pes" + std::to_string(shape.n_threads) + "threads" +
                                    (std::get<1>(parameters.param) ? "_sleeping" : "");
                         });

// First come, first served: PE 0 holds it until all others, one after the other, wait for it.
TEST(Locks, AreServedInOrder) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    constexpr int kPes = 5;
    run_pes(kPes, [](int pe) {
        shmem_init();
        long* lock = symmetric<long>(2);
        long* order = static_cast<long*>(shmem_ptr(symmetric<long>(kPes + 1), 0));
        for (int round = 0; round < 3; ++round) {
            if (pe == 0)
                shmem_set_lock(lock);
            shmem_barrier_all();
            // The last PE in the queue, plus one, is the lower half of the long on the lock's home: any PE's may be it.
            const auto last_in_queue = [&] {
                for (int home = 0; home < kPes; ++home)
                    if (const unsigned tail = shmem_uint_atomic_fetch(reinterpret_cast<unsigned*>(lock), home))
                        return static_cast<int>(tail) - 1;
                return -1;
            };
            const auto await_last = [&](int other) {
                while (last_in_queue() != other) std::this_thread::yield();
            };
            const int before = pe == kPes - 1 ? 0 : pe + 1;  // in the queue: 0, 4, 3, 2, 1
            if (pe == 0)
                await_last(1);
            else
                await_last(before);
            if (pe != 0)
                shmem_set_lock(lock);
            if (pe != 0)
                order[++order[0]] = pe;
            shmem_clear_lock(lock);
            shmem_barrier_all();
            for (int i = 1; i < kPes; ++i) ASSERT_EQ(order[i], kPes - i);
            shmem_barrier_all();
            if (pe == 0)
                order[0] = 0;
            shmem_barrier_all();
        }
        shmem_finalize();
    });
}

}  // namespace
}  // namespace heddle::test
