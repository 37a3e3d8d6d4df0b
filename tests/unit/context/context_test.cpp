// The pool of contexts: which handles are alive, what a new one begins with, the PEs that its numbers mean, sessions.
#include "context/context.h"

#include "base/error.h"
#include "support/pes_as_threads.h"

#include <shmem.h>

#include <gtest/gtest.h>
#include <climits>
#include <cstdlib>
#include <set>
#include <vector>

namespace heddle::context {
namespace {

const heddle_peer kNobody[1] = {}, kSome[4] = {}, kOthers[4] = {};
const heddle_team kTeam = {}, kOtherTeam = {};

class ContextTest : public testing::Test {
  protected:
    void SetUp() override { start_contexts(4, kNobody); }
    void TearDown() override { start_contexts(4, kNobody); }

    static shmem_ctx_t make(shmem_team_t team = &kTeam, const heddle_peer* peers = kSome) {
        return create(0, team, {3, -2, 2}, peers);
    }
};

TEST_F(ContextTest, IsAliveFromCreateToDestroy) {
    EXPECT_TRUE(is_alive(SHMEM_CTX_DEFAULT));
    EXPECT_FALSE(is_alive(SHMEM_CTX_INVALID));
    const shmem_ctx_t ctx = make();
    ASSERT_NE(ctx, SHMEM_CTX_INVALID);
    EXPECT_TRUE(is_alive(ctx));
    EXPECT_EQ(ctx->peers, kSome);
    destroy(ctx);
    EXPECT_FALSE(is_alive(ctx));
    EXPECT_EQ(ctx->peers, kNobody) << "an operation on it must find nobody";
    EXPECT_TRUE(is_alive(SHMEM_CTX_DEFAULT));
}

TEST_F(ContextTest, AnyPointerMayBeAskedAbout) {
    const shmem_ctx_t ctx = make();
    const auto* bytes = reinterpret_cast<const char*>(ctx);
    const heddle_ctx foreign = {};
    EXPECT_FALSE(is_alive(&foreign));
    for (const uintptr_t number : {uintptr_t{1}, uintptr_t{64}, UINTPTR_MAX, UINTPTR_MAX / 2})
        EXPECT_FALSE(is_alive(reinterpret_cast<shmem_ctx_t>(number)));
    for (int offset : {1, 8, 64, -8}) EXPECT_FALSE(is_alive(reinterpret_cast<shmem_ctx_t>(bytes + offset)));
    // A neighbour in the pool that nobody has created.
    EXPECT_FALSE(is_alive(reinterpret_cast<shmem_ctx_t>(bytes - 128)));
}

TEST_F(ContextTest, PoolGrowsAndKeepsHandlesApart) {
    std::set<shmem_ctx_t> made;
    for (int i = 0; i < 500; ++i) EXPECT_TRUE(made.insert(make()).second);
    for (shmem_ctx_t ctx : made) {
        EXPECT_TRUE(is_alive(ctx));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(ctx) % 64, 0u) << "shares a cache line";
    }
    size_t left = made.size();
    for (shmem_ctx_t ctx : made) {
        destroy(ctx);
        EXPECT_FALSE(is_alive(ctx));
        size_t alive = 0;
        if (--left % 100 == 0) {
            for (shmem_ctx_t other : made) alive += is_alive(other);
            EXPECT_EQ(alive, left);
        }
    }
    for (int i = 0; i < 500; ++i) EXPECT_FALSE(made.insert(make()).second) << "the pool grew without need";
}

TEST_F(ContextTest, KnowsWhatItsNumbersMean) {
    EXPECT_EQ(context_of(SHMEM_CTX_DEFAULT).team, SHMEM_TEAM_WORLD);
    const base::Members world = context_of(SHMEM_CTX_DEFAULT).members;
    EXPECT_EQ(world.start, 0);
    EXPECT_EQ(world.stride, 1);
    EXPECT_EQ(world.size, 4);
    const shmem_ctx_t ctx = make(&kOtherTeam);
    EXPECT_EQ(context_of(ctx).team, &kOtherTeam);
    const base::Members members = context_of(ctx).members;
    EXPECT_EQ(members.start, 3);
    EXPECT_EQ(members.stride, -2);
    EXPECT_EQ(members.size, 2);
}

TEST_F(ContextTest, ARecycledOneIsAsNew) {
    const shmem_ctx_t ctx = create(SHMEM_CTX_PRIVATE, &kTeam, {1, 1, 1}, kSome);
    destroy(ctx);
    const shmem_ctx_t next = create(0, &kOtherTeam, {2, 1, 2}, kOthers);
    EXPECT_EQ(next, ctx);
    EXPECT_EQ(next->peers, kOthers);
    EXPECT_EQ(context_of(next).team, &kOtherTeam);
    EXPECT_EQ(context_of(next).members.start, 2);
}

TEST_F(ContextTest, EndsWithItsTeam) {
    std::vector<shmem_ctx_t> of_team, of_other;
    for (int i = 0; i < 100; ++i) {
        of_team.push_back(make(&kTeam));
        of_other.push_back(make(&kOtherTeam));
    }
    destroy(of_team[50]);
    destroy_all_of(&kTeam);
    for (shmem_ctx_t ctx : of_team) {
        EXPECT_FALSE(is_alive(ctx));
        EXPECT_EQ(ctx->peers, kNobody);
    }
    for (shmem_ctx_t ctx : of_other) EXPECT_TRUE(is_alive(ctx));
    // Each went back once: 100 new ones are 100 different ones, and none of those still alive.
    std::set<shmem_ctx_t> made(of_other.begin(), of_other.end());
    for (int i = 0; i < 150; ++i) EXPECT_TRUE(made.insert(make()).second);
    destroy_all_of(&kTeam);
    destroy_all_of(&kTeam);
    for (shmem_ctx_t ctx : of_other) EXPECT_TRUE(is_alive(ctx));
}

TEST_F(ContextTest, ThoseOfAnEarlierInitAreGone) {
    std::vector<shmem_ctx_t> made;
    for (int i = 0; i < 100; ++i) made.push_back(make());
    static const heddle_peer kNobodyElse[1] = {};
    start_contexts(7, kNobodyElse);
    for (shmem_ctx_t ctx : made) {
        EXPECT_FALSE(is_alive(ctx));
        EXPECT_EQ(ctx->peers, kNobodyElse);
    }
    EXPECT_EQ(context_of(SHMEM_CTX_DEFAULT).members.size, 7);
    std::set<shmem_ctx_t> again;
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(again.insert(make()).second) << "twice in the pool";
}

// What a program sees.
class TeamContextTest : public testing::Test {
  protected:
    template <class Body>
    void alone(Body body) {
        setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
        test::run_pes(1, [&](int) {
            shmem_init();
            body();
            shmem_finalize();
        });
    }
};

TEST_F(TeamContextTest, ContextsOfATeamHaveItsNumbering) {
    alone([] {
        shmem_team_t team;
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, nullptr, 0, &team), 0);
        for (shmem_team_t of : {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, team}) {
            shmem_ctx_t ctx;
            ASSERT_EQ(shmem_team_create_ctx(of, 0, &ctx), 0);
            EXPECT_EQ(context_of(ctx).team, of);
            EXPECT_EQ(context_of(ctx).members.size, 1);
            shmem_team_t told;
            EXPECT_EQ(shmem_ctx_get_team(ctx, &told), 0);
            EXPECT_EQ(told, of);
        }
        shmem_team_destroy(team);
    });
}

}  // namespace
}  // namespace heddle::context
