// Contexts made, used and destroyed by several threads of several PEs at once, on the world and on teams.
#include "job.h"

namespace heddle::test {
namespace {

constexpr int kRounds = 80;

class ContextsTest : public JobTest {
  protected:
    // Runs body(thread, team, partner, cell): partner is the next PE's number in the team, cell a symmetric long of
    // this thread.
    template <class Body>
    void on_a_reversed_team(Body body) {
        run_job([&](int) {
            long* cells = symmetric<long>(static_cast<size_t>(n_threads()));
            shmem_team_t team;
            ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes() - 1, -1, n_pes(), nullptr, 0, &team), 0);
            const int partner = (shmem_team_my_pe(team) + 1) % n_pes();
            run_threads([&](int thread) { body(thread, team, partner, cells + thread); });
            shmem_barrier_all();
            shmem_team_destroy(team);
            shmem_free(cells);
        });
    }
};

TEST_P(ContextsTest, ComeAndGoOnATeam) {
    on_a_reversed_team([&](int, shmem_team_t team, int partner, long* cell) {
        for (long round = 1; round <= kRounds; ++round) {
            const long options = round % 3 == 0 ? SHMEM_CTX_PRIVATE : round % 3 == 1 ? SHMEM_CTX_SERIALIZED : 0;
            shmem_ctx_t ctx, other;
            ASSERT_EQ(shmem_team_create_ctx(team, options, &ctx), 0);
            ASSERT_EQ(shmem_ctx_create(options, &other), 0);
            ASSERT_TRUE(ctx != SHMEM_CTX_INVALID && other != SHMEM_CTX_INVALID && ctx != other);
            shmem_team_t told;
            ASSERT_EQ(shmem_ctx_get_team(ctx, &told), 0);
            ASSERT_EQ(told, team);
            // Only this thread's namesake on the PE before writes there.
            shmem_ctx_long_p(ctx, cell, round, partner);
            shmem_ctx_quiet(ctx);
            ASSERT_EQ(shmem_ctx_long_g(ctx, cell, partner), round);
            const int partner_in_world = shmem_team_translate_pe(team, partner, SHMEM_TEAM_WORLD);
            ASSERT_EQ(shmem_ctx_long_g(other, cell, partner_in_world), round);
            shmem_ctx_destroy(other);
            shmem_ctx_destroy(ctx);
        }
    });
}

// Many at once, destroyed in another order than they were made in.
TEST_P(ContextsTest, ManyAreAliveAtOnce) {
    on_a_reversed_team([&](int, shmem_team_t team, int partner, long* cell) {
        std::vector<shmem_ctx_t> made(100);
        for (shmem_ctx_t& ctx : made) ASSERT_EQ(shmem_team_create_ctx(team, 0, &ctx), 0);
        for (shmem_ctx_t ctx : made) shmem_ctx_long_atomic_add(ctx, cell, 1, partner);
        for (size_t i = 0; i < made.size(); i += 2) shmem_ctx_destroy(made[i]);
        for (size_t i = 1; i < made.size(); i += 2) {
            shmem_ctx_long_atomic_add(made[i], cell, 1, partner);
            shmem_ctx_destroy(made[i]);
        }
        ASSERT_EQ(shmem_long_atomic_fetch(cell, shmem_team_translate_pe(team, partner, SHMEM_TEAM_WORLD)), 150);
    });
}

// A context that all threads of a PE share.
TEST_P(ContextsTest, AreSharedByThreads) {
    run_job([&](int) {
        long* sum = symmetric<long>(1);
        shmem_team_t team;
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes(), nullptr, 0, &team), 0);
        shmem_ctx_t ctx;
        ASSERT_EQ(shmem_team_create_ctx(team, 0, &ctx), 0);
        run_threads([&](int) {
            for (int i = 0; i < kRounds; ++i) {
                shmem_ctx_long_atomic_inc(ctx, sum, 0);
                if (i % 16 == 0)
                    shmem_ctx_quiet(ctx);
            }
        });
        shmem_barrier_all();
        ASSERT_EQ(shmem_long_g(sum, 0), static_cast<long>(kRounds) * n_pes() * n_threads());
        shmem_team_destroy(team);
        shmem_free(sum);
    });
}

HEDDLE_FOR_ALL_SHAPES(ContextsTest);

}  // namespace
}  // namespace heddle::test
