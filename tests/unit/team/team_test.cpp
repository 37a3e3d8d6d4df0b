// Members, the handles of teams, and the tables of peers of their contexts. The splits and collectives above them:
// tests/conformance and tests/concurrency.
#include "support/pes_as_threads.h"

#include "base/settings.h"
#include "team/team.h"
#include "unit/fabric/networks.h"

#include <shmem.h>

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace heddle::team {
namespace {

const Members kOnePe = {0, 1, 1};

// Against the list of the members itself.
TEST(Members, NumbersGoBothWays) {
    for (int start = 0; start < 10; ++start) {
        for (int stride = -4; stride <= 4; ++stride) {
            for (int size = 1; size <= (stride == 0 ? 1 : 5); ++size) {
                const Members members = {start, stride, size};
                std::map<int, int> rank_of;
                for (int rank = 0; rank < size; ++rank) {
                    EXPECT_EQ(members.pe(rank), start + rank * stride);
                    rank_of[members.pe(rank)] = rank;
                }
                for (int pe = -30; pe < 40; ++pe)
                    EXPECT_EQ(members.rank(pe), rank_of.count(pe) ? rank_of[pe] : -1)
                        << "start " << start << " stride " << stride << " size " << size << " pe " << pe;
            }
        }
    }
}

TEST(Members, OfNobodyHasNoRank) {
    const Members nobody;
    for (int pe = -1; pe <= 1; ++pe) EXPECT_EQ(nobody.rank(pe), -1);
}

TEST(Members, OfTheLargestWorld) {
    const Members every_other = {4095, -2, 2048};
    EXPECT_EQ(every_other.pe(2047), 1);
    EXPECT_EQ(every_other.rank(1), 2047);
    EXPECT_EQ(every_other.rank(0), -1);
    EXPECT_EQ(every_other.rank(2147483647), -1);
}

// Runs body on one PE between init and finalize.
template <class Body>
void alone(Body body) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    test::run_pes(1, [&](int) {
        shmem_init();
        body();
        shmem_finalize();
    });
}

TEST(TeamPool, FindsPredefinedTeamsAndNoInvalidOne) {
    alone([] {
        EXPECT_EQ(find(SHMEM_TEAM_INVALID), nullptr);
        for (shmem_team_t handle : {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED}) {
            const Team* team = find(handle);
            ASSERT_NE(team, nullptr);
            EXPECT_EQ(team->handle, handle);
            EXPECT_EQ(team->members.size, 1);
            EXPECT_EQ(team->rank, 0);
        }
        EXPECT_NE(find(SHMEM_TEAM_WORLD), find(SHMEM_TEAM_SHARED));
        EXPECT_NE(find(SHMEM_TEAM_WORLD)->state.segment.index, find(SHMEM_TEAM_SHARED)->state.segment.index);
    });
}

TEST(TeamPool, HandlesOfDestroyedTeamsAreNone) {
    alone([] {
        Team* team = create(kOnePe, take_segment(kOnePe), 4);
        const shmem_team_t handle = team->handle;
        EXPECT_EQ(find(handle), team);
        EXPECT_EQ(team->num_contexts, 4);
        destroy(team);
        EXPECT_EQ(find(handle), nullptr);
    });
}

TEST(TeamPool, ARecycledTeamIsAsNew) {
    alone([] {
        Team* team = create(kOnePe, take_segment(kOnePe), 4);
        const shmem_team_t handle = team->handle;
        for (int i = 0; i < 40; ++i) barrier({"test", nullptr}, team->state);
        next_bounce(team->state);
        ASSERT_NE(peers_of(team, true), nullptr);
        destroy(team);
        Team* next = create(kOnePe, take_segment(kOnePe), 0);
        EXPECT_EQ(next->handle, handle) << "pooled objects are used again";
        EXPECT_EQ(next->state.count, 0u);
        EXPECT_EQ(next->state.all_done, 0u);
        EXPECT_EQ(next->state.bounces, 0u);
        EXPECT_EQ(next->num_contexts, 0);
        EXPECT_EQ(next->peers, nullptr);
    });
}

// Control messages between nodes are matched by the id.
TEST(TeamPoolDeathTest, TwoTeamsOverSeveralNodesWithOneIdEndThePe) {
    static const int nodes[] = {0, 1, 2};
    alone([] {
        start_teams(0, 3, nodes);
        ASSERT_NE(create({0, 1, 2}, kOwnSegment, 0, 77), nullptr);
        ASSERT_NE(create({0, 1, 3}, kOwnSegment, 0, 78), nullptr);
        EXPECT_EXIT(create({0, 2, 2}, kOwnSegment, 0, 77), testing::ExitedWithCode(1),
                    "two teams over several nodes have the id 0x4d");
        start_teams(0, 1);
    });
}

TEST(TeamPool, GrowsAndKeepsHandlesApart) {
    alone([] {
        std::set<shmem_team_t> handles;
        std::vector<Team*> made;
        for (int i = 0; i < 200; ++i) {
            made.push_back(create(kOnePe, take_segment(kOnePe), i));
            EXPECT_TRUE(handles.insert(made.back()->handle).second);
        }
        for (int i = 0; i < 200; ++i) {
            Team* team = made[static_cast<size_t>(i)];
            EXPECT_EQ(find(team->handle), team) << "growing moved it";
            EXPECT_EQ(team->num_contexts, i);
        }
        for (size_t i = 0; i < made.size(); i += 2) destroy(made[i]);
        for (size_t i = 0; i < made.size(); ++i) EXPECT_EQ(find(made[i]->handle) != nullptr, i % 2 == 1);
    });
}

// In a checked run a handle may be anything: one that was none ever, or points into a team's middle.
TEST(TeamPool, CheckedRunsKnowForeignHandles) {
    setenv("HEDDLE_CHECK", "1", 1);
    alone([] {
        Team* team = create(kOnePe, take_segment(kOnePe), 0);
        static const heddle_team foreign = {};
        const char* inside = reinterpret_cast<const char*>(team->handle) + 8;
        EXPECT_EQ(find(&foreign), nullptr);
        EXPECT_EQ(find(reinterpret_cast<shmem_team_t>(uintptr_t{0x1234})), nullptr);
        EXPECT_EQ(find(reinterpret_cast<shmem_team_t>(inside)), nullptr);
        EXPECT_EQ(find(team->handle), team);
    });
    unsetenv("HEDDLE_CHECK");
}

// Where a team ends, what its streams have sent is waited for. The waiting thread carries on operations of other teams,
// which look for those: in a checked run under the lock of the teams. A test that hangs is ended by ctest.
TEST(TeamPool, OtherTeamsAreFoundWhileAnEndedOneIsEmptied) {
    setenv("HEDDLE_CHECK", "1", 1);
    alone([] {
        std::vector<uint64_t> heap(64);
        std::string error;
        const std::unique_ptr<fabric::Network> network = fabric::open_network(0, heap, &error);
        ASSERT_TRUE(network) << error;
        static Team *ending, *other;
        static int finds;
        ending = create(kOnePe, take_segment(kOnePe), 0);
        other = create(kOnePe, take_segment(kOnePe), 0);
        ASSERT_TRUE(network->make_stream_set(ending->stream_sets, nullptr));
        ending->stream_sets.n_active = 1;  // something is not acknowledged
        finds = 0;
        progress::WaitPolicy policy;
        policy.has_network = true;
        policy.poll = [] {
            finds += find(other->handle) == other;
            ending->stream_sets.n_active = 0;
            return true;
        };
        progress::WaitPolicy* const before = progress::wait_policy;
        progress::wait_policy = &policy;
        fabric::network = network.get();
        destroy(ending);
        fabric::network = nullptr;
        progress::wait_policy = before;
        EXPECT_EQ(finds, 1);
        EXPECT_EQ(find(ending->handle), nullptr);
        EXPECT_EQ(ending->stream_sets.first.load(), nullptr);
    });
    unsetenv("HEDDLE_CHECK");
}

TEST(TeamPool, TeamsEndWithFinalize) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    test::run_pes(2, [](int) {
        for (int life = 0; life < 3; ++life) {
            shmem_init();
            shmem_team_t team;
            // more than there are team segments, were they not free again after each life
            for (int i = 0; i < 700; ++i)
                ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, nullptr, 0, &team), 0);
            EXPECT_NE(find(team), nullptr);
            shmem_finalize();
            EXPECT_EQ(find(team), nullptr);
        }
    });
}

TEST(TeamPool, ASplitWithoutRoomSaysSo) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    test::run_pes(2, [](int pe) {
        shmem_init();
        const Members both = {0, 1, 2};
        std::vector<int> taken;
        for (int segment; pe == 0 && (segment = take_segment(both)) != kNoSegment;) taken.push_back(segment);
        shmem_barrier_all();
        shmem_team_t row = SHMEM_TEAM_WORLD, column = SHMEM_TEAM_WORLD;
        EXPECT_NE(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, nullptr, 0, &row), 0);
        EXPECT_EQ(row, SHMEM_TEAM_INVALID);
        EXPECT_NE(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, nullptr, 0, &row, nullptr, 0, &column), 0);
        EXPECT_EQ(row, SHMEM_TEAM_INVALID) << "a row of one needs no room, but there is no column";
        EXPECT_EQ(column, SHMEM_TEAM_INVALID);
        EXPECT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, 1, nullptr, 0, &row), 0) << "one needs no room";
        for (int segment : taken) {
            leave_segment(segment, 2);
            leave_segment(segment, 2);
        }
        shmem_barrier_all();
        EXPECT_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, nullptr, 0, &row, nullptr, 0, &column), 0);
        shmem_finalize();
    });
}

TEST(ActiveSetTeams, AreFoundAgain) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    test::run_pes(6, [](int pe) {
        shmem_init();
        for (int log_stride : {0, 1, 2}) {
            for (int start : {0, 1}) {
                const Members members = {start, 1 << log_stride, 2};
                if (members.rank(pe) < 0)
                    continue;
                Team* team = find_active_set("test", start, log_stride, 2);
                ASSERT_NE(team, nullptr);
                EXPECT_EQ(find_active_set("test", start, log_stride, 2), team);
                EXPECT_EQ(team->rank, members.rank(pe));
                EXPECT_EQ(team->members.stride, 1 << log_stride);
                EXPECT_EQ(team->handle, SHMEM_TEAM_INVALID);
            }
        }
        shmem_finalize();
    });
}

TEST(ActiveSetTeams, OfOneKeepTheirStride) {
    alone([] {
        Team* first = find_active_set("test", 0, 0, 1);
        EXPECT_NE(find_active_set("test", 0, 3, 1), first);
        EXPECT_EQ(find_active_set("test", 0, 0, 1), first);
    });
}

TEST(PeersOfTeams, AreInTheTeamsOrder) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    test::run_pes(4, [](int) {
        shmem_init();
        const heddle_peer* world = peers_of(find(SHMEM_TEAM_WORLD), true);
        EXPECT_EQ(peers_of(find(SHMEM_TEAM_SHARED), true), world);
        shmem_team_t handle;
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 3, -2, 2, nullptr, 0, &handle), 0);
        if (Team* team = find(handle)) {
            const heddle_peer* peers = peers_of(team, true);
            EXPECT_EQ(peers_of(team, true), peers);
            EXPECT_EQ(peers[0].heap, world[3].heap);
            EXPECT_EQ(peers[1].heap, world[1].heap);
            EXPECT_EQ(peers[2].heap_size, 0u);
            EXPECT_EQ(peers[-1].heap_size, 0u);
            close_peer_tables();
            EXPECT_EQ(peers[0].heap_size, 0u);
            EXPECT_EQ(peers[1].heap_size, 0u);
            EXPECT_EQ(peers_of(team, true)[1].heap, world[1].heap) << "made anew when asked for";
        }
        shmem_finalize();
    });
}

TEST(PeersOfTeams, AreKeptForTheNextTeamAndHoldNothingOfTheLast) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    test::run_pes(3, [](int) {
        shmem_init();
        shmem_team_t large, small;
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 3, nullptr, 0, &large), 0);
        const heddle_peer* table = peers_of(find(large), true);
        EXPECT_NE(table[2].heap_size, 0u);
        shmem_team_destroy(large);
        for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(table[rank].heap_size, 0u);
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, nullptr, 0, &small), 0);
        if (Team* team = find(small)) {
            EXPECT_EQ(peers_of(team, true), table);
            EXPECT_EQ(table[2].heap_size, 0u) << "of the team before";
        }
        shmem_finalize();
    });
}

TEST(PeersOfTeams, InCheckedRunsHoldNothing) {
    setenv("HEDDLE_CHECK", "1", 1);
    alone([] {
        Team* team = create(kOnePe, take_segment(kOnePe), 0);
        EXPECT_EQ(peers_of(team, false)[0].heap_size, 0u);
    });
    unsetenv("HEDDLE_CHECK");
}

#ifdef __SANITIZE_THREAD__
constexpr int kTables = 10, kFar = 4095;  // ThreadSanitizer leaves little address space
#else
constexpr int kTables = 100, kFar = 1 << 19;
#endif

// Beyond the tables for every int, smaller ones: still every PE number near the team's is answered for.
TEST(PeersOfTeams, AreManyAtOnce) {
    alone([] {
        const heddle_peer* world = peers_of(find(SHMEM_TEAM_WORLD), true);
        std::set<const heddle_peer*> tables;
        for (int i = 0; i < kTables; ++i) {
            const heddle_peer* peers = peers_of(create(kOnePe, take_segment(kOnePe), 0), true);
            ASSERT_NE(peers, nullptr) << i;
            EXPECT_TRUE(tables.insert(peers).second);
            EXPECT_EQ(peers[0].heap, world[0].heap);
            for (int pe : {-kFar, -1, 1, kFar}) EXPECT_EQ(peers[pe].heap_size, 0u) << i;
        }
    });
}

}  // namespace
}  // namespace heddle::team
