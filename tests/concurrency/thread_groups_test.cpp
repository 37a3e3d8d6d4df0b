// Collectives by all threads of each PE, whose numbers differ between PEs, against what one thread gets.
#include "job.h"

#include <shmemx.h>

namespace heddle::test {
namespace {

// Inline, in bounce buffers, and in slices, of no round size.
constexpr size_t kMax = 12001;
constexpr size_t kCounts[] = {0, 1, 30, 257, kMax};

class ThreadGroupsTest : public JobTest {
  protected:
    // PE p has at least one thread, and not as many as its neighbour.
    int threads_of(int pe) const { return 1 + (n_threads() - 1 + pe) % 4; }

    template <class Body>
    void run_group(int pe, Body body) const {
        std::vector<std::thread> others;
        const int count = threads_of(pe);
        for (int thread = 1; thread < count; ++thread) others.push_back(thread_of_pe([=] { body(thread, count); }));
        body(0, count);
        for (std::thread& other : others) other.join();
    }
};

// Element i of what PE pe gives.
double given(int pe, size_t i) {
    return 1.0 / (1.0 + static_cast<double>(i % 97)) + 1e9 * pe;
}

void everything(shmem_team_t team, double* dest, double* source, int thread, int count) {
    const int size = shmem_team_n_pes(team), me = shmem_team_my_pe(team);
    const auto members = static_cast<size_t>(size);
    for (const size_t nelems : kCounts) {
        ASSERT_EQ(shmemx_team_sync_mt(team, thread, count), 0);
        ASSERT_EQ(shmemx_double_sum_reduce_mt(team, dest, source, nelems, thread, count), 0);
        for (size_t i = 0; i < nelems; ++i) {
            double sum = given(0, i);
            for (int pe = 1; pe < size; ++pe) sum += given(pe, i);
            ASSERT_EQ(dest[i], sum) << i << " of " << nelems;
        }
        ASSERT_EQ(shmemx_team_barrier_mt(team, thread, count), 0);
        ASSERT_EQ(shmemx_double_broadcast_mt(team, dest, source, nelems, size - 1, thread, count), 0);
        for (size_t i = 0; i < nelems; ++i) ASSERT_EQ(dest[i], given(size - 1, i));
        ASSERT_EQ(shmemx_team_sync_mt(team, thread, count), 0);
        ASSERT_EQ(shmemx_double_fcollect_mt(team, dest, source, nelems, thread, count), 0);
        for (size_t i = 0; i < nelems * members; ++i)
            ASSERT_EQ(dest[i], given(static_cast<int>(i / nelems), i % nelems));
        ASSERT_EQ(shmemx_team_sync_mt(team, thread, count), 0);
        const size_t mine = me % 2 == 0 ? nelems : nelems / 3;  // some in bounce buffers, some in slices
        ASSERT_EQ(shmemx_double_collect_mt(team, dest, source, mine, thread, count), 0);
        size_t at = 0;
        for (int pe = 0; pe < size; ++pe)
            for (size_t i = 0; i < (pe % 2 == 0 ? nelems : nelems / 3); ++i) ASSERT_EQ(dest[at++], given(pe, i));
        ASSERT_EQ(shmemx_team_sync_mt(team, thread, count), 0);
        const size_t block = nelems / members;
        ASSERT_EQ(shmemx_double_alltoall_mt(team, dest, source, block, thread, count), 0);
        for (size_t i = 0; i < block * members; ++i)
            ASSERT_EQ(dest[i], given(static_cast<int>(i / block), static_cast<size_t>(me) * block + i % block));
        ASSERT_EQ(shmemx_team_sync_mt(team, thread, count), 0);
        for (const bool inclusive : {true, false}) {
            const auto scan = inclusive ? shmemx_double_sum_inscan_mt : shmemx_double_sum_exscan_mt;
            ASSERT_EQ(scan(team, dest, source, nelems, thread, count), 0);
            for (size_t i = 0; i < nelems; ++i) {
                double sum = me + inclusive > 0 ? given(0, i) : 0;
                for (int pe = 1; pe < me + inclusive; ++pe) sum += given(pe, i);
                ASSERT_EQ(dest[i], sum) << i << " of " << nelems;
            }
            ASSERT_EQ(shmemx_team_sync_mt(team, thread, count), 0);
        }
        const size_t every_second = block / 2;
        ASSERT_EQ(shmemx_double_alltoalls_mt(team, dest, source, 1, 2, every_second, thread, count), 0);
        for (size_t i = 0; i < every_second * members; ++i) {
            const size_t of_all = static_cast<size_t>(me) * every_second + i % every_second;
            ASSERT_EQ(dest[i], given(static_cast<int>(i / every_second), 2 * of_all));
        }
        ASSERT_EQ(shmemx_team_sync_mt(team, thread, count), 0);
    }
}

TEST_P(ThreadGroupsTest, GetWhatOneThreadGets) {
    run_job([&](int pe) {
        double* dest = symmetric<double>(kMax * static_cast<size_t>(n_pes()));
        double* source = symmetric<double>(kMax);
        for (size_t i = 0; i < kMax; ++i) source[i] = given(pe, i);
        shmem_barrier_all();
        run_group(pe, [=](int thread, int count) { everything(SHMEM_TEAM_WORLD, dest, source, thread, count); });
        shmem_free(source);
        shmem_free(dest);
    });
}

// The source is complete when the last thread has come, and each thread uses its share of it again as soon as it has
// returned. By teams of all PEs and of this one alone, with what all threads share out.
TEST_P(ThreadGroupsTest, TakeTheSourceWhenAllHaveComeAndLetGoOfIt) {
    run_job([&](int pe) {
        const auto members = static_cast<size_t>(n_pes());
        double* dest = symmetric<double>(kMax * members);
        double* source = symmetric<double>(kMax);
        shmem_team_t alone;
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, pe, 1, 1, nullptr, 0, &alone), 0);
        run_group(pe, [=, this](int thread, int count) {
            double round = 0;
            // Fills this thread's share, runs collective(), takes the share back, and looks at the first `filled` of
            // dest, of which element i is round + right(i).
            const shmem_team_t world = SHMEM_TEAM_WORLD;
            const auto take = [&](size_t filled, auto collective, auto right) {
                ++round;
                const auto share = [&](double value) {
                    for (size_t i = static_cast<size_t>(thread); i < kMax; i += static_cast<size_t>(count))
                        source[i] = value;
                };
                share(round + pe);
                collective();
                share(-1);
                for (size_t i = 0; i < filled; ++i) ASSERT_EQ(dest[i], round + right(i));
                shmemx_team_sync_mt(world, thread, count);  // dest is ready on all
            };
            const auto last = [&](size_t) { return n_pes() - 1; };
            const auto own = [&](size_t) { return pe; };
            const size_t block = kMax / members;
            for (int i = 0; i < 4; ++i) {
                take(kMax, [&] { shmemx_double_max_reduce_mt(world, dest, source, kMax, thread, count); }, last);
                take(kMax, [&] { shmemx_double_max_reduce_mt(alone, dest, source, kMax, thread, count); }, own);
                take(
                    kMax, [&] { shmemx_double_broadcast_mt(world, dest, source, kMax, n_pes() - 1, thread, count); },
                    last);
                take(
                    kMax * members, [&] { shmemx_double_fcollect_mt(world, dest, source, kMax, thread, count); },
                    [&](size_t e) { return static_cast<int>(e / kMax); });
                take(
                    kMax * members, [&] { shmemx_double_collect_mt(world, dest, source, kMax, thread, count); },
                    [&](size_t e) { return static_cast<int>(e / kMax); });
                take(
                    block * members, [&] { shmemx_double_alltoall_mt(world, dest, source, block, thread, count); },
                    [&](size_t e) { return static_cast<int>(e / block); });
            }
        });
        shmem_barrier_all();
        shmem_team_destroy(alone);
        shmem_free(source);
        shmem_free(dest);
    });
}

HEDDLE_FOR_ALL_SHAPES(ThreadGroupsTest);

}  // namespace
}  // namespace heddle::test
