// Collectives that the threads of each PE post together to one SHARED request, under the policies of progress. Each
// thread fills its part of the source before it posts, and uses source and dest again when it has waited: memory is
// plain, so ThreadSanitizer reports whoever reads or writes before. No thread waits for another but by the request.
#include "job.h"

#include <shmemx.h>

#include <string>
#include <tuple>

namespace heddle::test {
namespace {

constexpr size_t kMax = 12001;  // longs: in shares of no round size
constexpr size_t kCounts[] = {1, 300, 4097, kMax};
constexpr int kCollectives = 5;
constexpr long kRounds = 4;

long value(int pe, long round, size_t i) {
    return round * 100000 + pe * 1000 + static_cast<long>(i % 500);
}

class PostedGroupsTest : public testing::TestWithParam<std::tuple<Shape, const char*>> {
  protected:
    void SetUp() override {
        setenv("SHMEM_SYMMETRIC_SIZE", "48M", 1);
        setenv("HEDDLE_COLLECTIVE_THREADS", "all", 1);
        setenv("HEDDLE_PROGRESS", std::get<1>(GetParam()), 1);
    }
    void TearDown() override {
        unsetenv("HEDDLE_PROGRESS");
        unsetenv("HEDDLE_COLLECTIVE_THREADS");
    }
    int n_pes() const { return std::get<0>(GetParam()).n_pes; }
    // PEs have different numbers of threads, one of them has one.
    int threads_of(int pe) const { return 1 + (std::get<0>(GetParam()).n_threads - 1 + pe) % 4; }

    // Runs body(thread, threads, memory, request) on all threads of all PEs; memory: symmetric, kLongs longs.
    static constexpr size_t kLongs = 160 * kMax;
    template <class Body>
    void run_job(Body body) {
        run_pes(n_pes(), [&](int pe) {
            shmem_init();
            long* const memory = symmetric<long>(kLongs);
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            ASSERT_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
            const int threads = threads_of(pe);
            std::vector<std::thread> others;
            for (int thread = 1; thread < threads; ++thread)
                others.push_back(thread_of_pe([&, thread] { body(thread, threads, memory, &request); }));
            body(0, threads, memory, &request);
            for (std::thread& other : others) other.join();
            shmemx_request_free(&request);
            shmem_barrier_all();
            shmem_free(memory);
            shmem_finalize();
        });
    }
};

// Collective `which` of a round, with a source and a dest of its own.
struct Posted {
    int which;
    long round;
    size_t nelems;
    long *source, *dest;

    void fill_part(int thread, int threads) const {
        const size_t blocks = which == 3 ? static_cast<size_t>(shmem_n_pes()) : 1;
        for (size_t i = static_cast<size_t>(thread); i < nelems * blocks; i += static_cast<size_t>(threads))
            source[i] = value(shmem_my_pe(), round, i);
    }
    void post(int thread, int threads, shmemx_request_t* request) const {
        const shmem_team_t world = SHMEM_TEAM_WORLD;
        const int root = static_cast<int>(round) % shmem_n_pes();
        int result;
        switch (which) {
            case 0:
                result = shmemx_long_sum_reduce_mt_nbe(world, dest, source, nelems, thread, threads, request);
                break;
            case 1:
                result = shmemx_long_broadcast_mt_nbe(world, dest, source, nelems, root, thread, threads, request);
                break;
            case 2:
                result = shmemx_long_fcollect_mt_nbe(world, dest, source, nelems, thread, threads, request);
                break;
            case 3:
                result = shmemx_long_alltoall_mt_nbe(world, dest, source, nelems, thread, threads, request);
                break;
            default:
                result = shmemx_long_sum_inscan_mt_nbe(world, dest, source, nelems, thread, threads, request);
        }
        ASSERT_EQ(result, 0);
    }
    void check() const {
        const int n = shmem_n_pes(), me = shmem_my_pe();
        for (size_t i = 0; i < nelems; ++i) {
            long right = 0;
            for (int pe = 0; pe < (which == 0 ? n : me + 1); ++pe) right += value(pe, round, i);
            if (which == 1)
                right = value(static_cast<int>(round) % n, round, i);
            if (which < 2 || which == 4) {
                ASSERT_EQ(dest[i], right) << "element " << i << " of " << which;
            }
            for (int pe = 0; pe < n && (which == 2 || which == 3); ++pe)
                ASSERT_EQ(dest[static_cast<size_t>(pe) * nelems + i],
                          value(pe, round, which == 3 ? static_cast<size_t>(me) * nelems + i : i));
        }
    }
};

std::vector<Posted> all_of(long round, long* memory) {
    std::vector<Posted> posts;
    const auto members = static_cast<size_t>(shmem_n_pes());
    size_t used = static_cast<size_t>(round) * 40 * kMax;
    for (int which = 0; which < kCollectives; ++which) {
        const size_t nelems = std::max<size_t>(1, kCounts[static_cast<size_t>(which + round) % 4] / members);
        posts.push_back({which, round, nelems, memory + used, memory + used + nelems * members});
        used += 2 * nelems * members;
    }
    return posts;
}

// A thread may be a round ahead of the others: its wait is for what it has posted, and theirs not for what they have
// not.
TEST_P(PostedGroupsTest, AreCompleteForThoseThatHavePosted) {
    run_job([&](int thread, int threads, long* memory, shmemx_request_t* request) {
        for (long round = 0; round < kRounds; ++round) {
            const std::vector<Posted> posts = all_of(round, memory);
            for (const Posted& post : posts) {
                post.fill_part(thread, threads);
                post.post(thread, threads, request);
            }
            if ((round + thread) % 2) {
                shmemx_request_wait(request);
            } else {
                while (!shmemx_request_test(request)) {
                }
            }
            for (const Posted& post : posts) {
                post.check();
                for (size_t i = static_cast<size_t>(thread); i < post.nelems; i += static_cast<size_t>(threads))
                    post.source[i] = -1;
            }
        }
    });
}

// One thread waits for all, and those that have posted are gone.
TEST_P(PostedGroupsTest, AreCompletedByOneThread) {
    run_pes(n_pes(), [&](int pe) {
        shmem_init();
        long* const memory = symmetric<long>(160 * kMax);
        for (long round = 0; round < kRounds; ++round) {
            shmemx_request_t request = SHMEMX_REQUEST_NULL;
            ASSERT_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
            const std::vector<Posted> posts = all_of(round, memory);
            const int threads = threads_of(pe);
            for (int thread = 0; thread < threads; ++thread)
                thread_of_pe([&] {
                    for (const Posted& post : posts) {
                        post.fill_part(thread, threads);
                        post.post(thread, threads, &request);
                    }
                }).join();
            shmemx_request_wait(&request);
            for (const Posted& post : posts) post.check();
            shmemx_request_free(&request);
        }
        shmem_barrier_all();
        shmem_free(memory);
        shmem_finalize();
    });
}

INSTANTIATE_TEST_SUITE_P(Shapes, PostedGroupsTest,
                         testing::Combine(testing::ValuesIn(std::vector<Shape>{{1, 4}, {2, 4}, {3, 2}, {8, 1}}),
                                          testing::Values("manual", "thread", "auto")),
                         [](const auto& parameters) {
                             const Shape& shape = std::get<0>(parameters.param);
                             return std::to_string(shape.n_pes) + "pes" + std::to_string(shape.n_threads) + "threads_" +
                                    std::get<1>(parameters.param);
                         });

}  // namespace
}  // namespace heddle::test
