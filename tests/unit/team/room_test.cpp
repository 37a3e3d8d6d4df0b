// All ways to meet at several numbers of PEs: nobody leaves before all have come, and stores ahead of it are
// seen behind it.
#include "support/pes_as_threads.h"

#include <shmem.h>

#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

namespace heddle::test {
namespace {

class RoomTest : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(RoomTest, NoPePassesEarly) {
    const auto [algorithm, n_pes] = GetParam();
    const int rounds = n_pes > 4 ? 150 : 600;
    setenv("HEDDLE_BARRIER", algorithm, 1);
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    const auto arrived = std::make_unique<std::atomic<int>[]>(static_cast<size_t>(n_pes));
    std::atomic<int> early{0}, stale{0};
    run_pes(n_pes, [&](int pe) {
        shmem_init();
        long* slots = static_cast<long*>(shmem_calloc(static_cast<size_t>(shmem_n_pes()), sizeof(long)));
        for (int round = 1; round <= rounds; ++round) {
            // Relaxed, so that what orders it is the barrier alone.
            arrived[static_cast<size_t>(pe)].store(round, std::memory_order_relaxed);
            shmem_long_p(slots + pe, round, (pe + 1) % shmem_n_pes());
            round % 2 ? shmem_barrier_all() : shmem_sync_all();
            for (int other = 0; other < shmem_n_pes(); ++other)
                if (arrived[static_cast<size_t>(other)].load(std::memory_order_relaxed) < round)
                    early.fetch_add(1);
            const int left = (pe + shmem_n_pes() - 1) % shmem_n_pes();
            if (slots[left] < round)
                stale.fetch_add(1);
            shmem_barrier_all();
        }
        shmem_free(slots);
        shmem_finalize();
    });
    EXPECT_EQ(early.load(), 0);
    EXPECT_EQ(stale.load(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, RoomTest,
                         testing::Combine(testing::Values("central", "dissemination", "flat"),
                                          testing::Values(1, 2, 3, 4, 7, 8, 16)),
                         [](const auto& parameters) {
                             return std::string(std::get<0>(parameters.param)) +
                                    std::to_string(std::get<1>(parameters.param));
                         });

TEST(Room, GoesOnAfterFinalizeAndInit) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    for (const char* algorithm : {"central", "dissemination", "flat"}) {
        setenv("HEDDLE_BARRIER", algorithm, 1);
        run_pes(3, [](int) {
            for (int life = 0; life < 3; ++life) {
                shmem_init();
                for (int i = 0; i < 5; ++i) shmem_barrier_all();
                shmem_finalize();
            }
        });
    }
}

}  // namespace
}  // namespace heddle::test
