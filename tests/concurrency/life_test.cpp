// Init, the memory collectives, barriers and finalize while other PEs do the same; and what a barrier orders.
#include "job.h"

#include <cstring>

namespace heddle::test {
namespace {

class LifeTest : public JobTest {};

TEST_P(LifeTest, BarrierOrdersPutsOfAllThreads) {
    run_job([&](int pe) {
        const size_t threads = static_cast<size_t>(n_threads()), pes = static_cast<size_t>(n_pes());
        long* table = symmetric<long>(pes * threads);
        for (long round = 1; round <= 30; ++round) {
            run_threads([&](int thread) {
                for (int to = 0; to < n_pes(); ++to) {
                    const long value = round * 100000 + pe * 100 + thread;
                    shmem_long_put(table + static_cast<size_t>(pe) * threads + static_cast<size_t>(thread), &value, 1,
                                   to);
                }
            });
            shmem_barrier_all();
            for (size_t from = 0; from < pes; ++from)
                for (size_t thread = 0; thread < threads; ++thread)
                    ASSERT_EQ(table[from * threads + thread], round * 100000 + static_cast<long>(from * 100 + thread));
            shmem_barrier_all();
        }
        shmem_free(table);
    });
}

TEST_P(LifeTest, MallocReallocFreeAgreeOnAllPes) {
    run_job([&](int pe) {
        for (size_t round = 1; round <= 20; ++round) {
            const size_t bytes = round * 1000;
            char* first = static_cast<char*>(shmem_malloc(bytes));
            char* aligned = static_cast<char*>(shmem_align(4096, 100));
            long* zeroed = symmetric<long>(round);
            ASSERT_TRUE(first && aligned && zeroed);
            ASSERT_EQ(reinterpret_cast<uintptr_t>(aligned) % 4096, 0u);
            ASSERT_EQ(zeroed[round - 1], 0);
            const char mine = static_cast<char>(pe + 1), to = static_cast<char>((pe + 1) % n_pes());
            shmem_char_p(first + bytes - 1, mine, to);
            shmem_barrier_all();
            first = static_cast<char*>(shmem_realloc(first, 2 * bytes));
            ASSERT_EQ(first[bytes - 1], static_cast<char>((pe + n_pes() - 1) % n_pes() + 1));
            shmem_free(zeroed);
            shmem_free(aligned);
            shmem_free(first);
        }
    });
}

// The heap reads as zero again and nothing is left over.
TEST_P(LifeTest, InitAndFinalizeRepeat) {
    setenv("SHMEM_SYMMETRIC_SIZE", "4M", 1);
    run_pes(n_pes(), [&](int pe) {
        for (int life = 0; life < 3; ++life) {
            int provided = -1;
            ASSERT_EQ(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
            ASSERT_EQ(provided, SHMEM_THREAD_MULTIPLE);
            long* value = static_cast<long*>(shmem_malloc(sizeof(long)));
            if (life > 0) {
                ASSERT_EQ(*value, 0);
            }
            shmem_barrier_all();
            shmem_long_p(value, pe + 1, (pe + 1) % n_pes());
            shmem_barrier_all();
            ASSERT_EQ(*value, (pe + n_pes() - 1) % n_pes() + 1);
            shmem_barrier_all();
            int initialized = 0;
            shmem_query_initialized(&initialized);
            ASSERT_EQ(initialized, 1);
            shmem_finalize();
            shmem_query_initialized(&initialized);
            ASSERT_EQ(initialized, 0);
        }
    });
}

TEST_P(LifeTest, CheckedRunsTakeTheSlowPathAndAgree) {
    setenv("HEDDLE_CHECK", "1", 1);
    run_job([&](int pe) {
        long* cells = symmetric<long>(64);
        run_threads([&](int thread) {
            for (int i = 0; i < 50; ++i) shmem_long_atomic_add(cells + thread, 1, (pe + 1) % n_pes());
        });
        shmem_barrier_all();
        for (int thread = 0; thread < n_threads(); ++thread) ASSERT_EQ(cells[thread], 50);
        shmem_free(cells);
    });
    unsetenv("HEDDLE_CHECK");
}

HEDDLE_FOR_ALL_SHAPES(LifeTest);

}  // namespace
}  // namespace heddle::test
