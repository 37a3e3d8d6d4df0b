// What the programs of this folder share: a job of PEs as threads, with further threads in each.
#pragma once

#include "support/pes_as_threads.h"

#include <shmem.h>

#include <gtest/gtest.h>
#include <cstdlib>
#include <vector>

namespace heddle::test {

// PEs and threads per PE of one job.
struct Shape {
    int n_pes;
    int n_threads;
};

inline const std::vector<Shape> kShapes = {{1, 1}, {1, 4}, {2, 1}, {2, 4}, {3, 2}, {5, 1}, {8, 1}, {8, 4}};

class JobTest : public testing::TestWithParam<Shape> {
  protected:
    int n_pes() const { return GetParam().n_pes; }
    int n_threads() const { return GetParam().n_threads; }

    // Runs body(pe) on every PE between init and finalize, on the PE's own thread.
    template <class Body>
    void run_job(Body body) const {
        setenv("SHMEM_SYMMETRIC_SIZE", "4M", 1);
        run_pes(n_pes(), [&](int pe) {
            shmem_init();
            ASSERT_EQ(shmem_my_pe(), pe);
            ASSERT_EQ(shmem_n_pes(), n_pes());
            body(pe);
            shmem_finalize();
        });
    }

    // Runs body(thread) on all threads of the calling PE, its own being thread 0.
    template <class Body>
    void run_threads(Body body) const {
        std::vector<std::thread> others;
        for (int thread = 1; thread < n_threads(); ++thread) others.push_back(thread_of_pe([=] { body(thread); }));
        body(0);
        for (std::thread& other : others) other.join();
    }
};

// count zeroed elements of symmetric memory.
template <class T>
T* symmetric(size_t count) {
    return static_cast<T*>(shmem_calloc(count, sizeof(T)));
}

#define HEDDLE_FOR_ALL_SHAPES(suite)                                                                         \
    INSTANTIATE_TEST_SUITE_P(Shapes, suite, testing::ValuesIn(kShapes), [](const auto& parameters) {         \
        return std::to_string(parameters.param.n_pes) + "pes" + std::to_string(parameters.param.n_threads) + \
               "threads";                                                                                    \
    })

}  // namespace heddle::test
