// Members, handles and rooms. The splits and collectives above them: tests/conformance and tests/concurrency.
#include "support/pes_as_threads.h"

#include "team/team.h"

#include <shmem.h>

#include <gtest/gtest.h>
#include <cstdlib>
#include <set>
#include <vector>

namespace heddle::team {
namespace {

TEST(Members, NumbersGoBothWays) {
    for (const Members& members : {Members{0, 1, 8}, Members{3, 2, 4}, Members{9, -3, 4}, Members{5, 1, 1}}) {
        std::set<int> inside;
        for (int rank = 0; rank < members.size; ++rank) {
            EXPECT_EQ(members.rank(members.pe(rank)), rank);
            inside.insert(members.pe(rank));
        }
        for (int pe = -2; pe < 14; ++pe)
            if (!inside.count(pe)) {
                EXPECT_EQ(members.rank(pe), -1)
                    << "start " << members.start << " stride " << members.stride << " pe " << pe;
            }
    }
}

class RoomsTest : public testing::Test {
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

TEST_F(RoomsTest, EndAndComeBack) {
    alone([] {
        const Members one = {0, 1, 1};
        std::vector<int> taken;
        for (int room = take_room(one); room >= 0; room = take_room(one)) taken.push_back(room);
        EXPECT_EQ(taken.size(), 768u);
        EXPECT_EQ(std::set<int>(taken.begin(), taken.end()).size(), taken.size());
        Room used = room_at(taken[5]);
        used.seats[0].posts[1].gate.open(77);
        leave_room(taken[5], 1);
        EXPECT_EQ(take_room(one), taken[5]);
        EXPECT_FALSE(used.seats[0].posts[1].gate.reached(1)) << "a room is as new when it is taken again";
        for (int room : taken) leave_room(room, 1);
    });
}

TEST_F(RoomsTest, AreFreeWhenTheLastMemberHasLeft) {
    alone([] {
        const Members three = {0, 1, 3};
        const int room = take_room(three);
        leave_room(room, 3);
        leave_room(room, 3);
        const int other = take_room(three);
        EXPECT_NE(other, room);
        leave_room(room, 3);
        EXPECT_EQ(take_room(three), room);
    });
}

TEST_F(RoomsTest, OfActiveSetsStay) {
    alone([] {
        const int first = active_set_room({0, 1, 1}, 0);
        EXPECT_EQ(active_set_room({0, 1, 1}, 0), first);
        std::set<int> rooms = {first};
        for (int i = 1; i < 256; ++i) rooms.insert(active_set_room({i, 2, 3}, 1));
        EXPECT_EQ(rooms.size(), 256u);
        EXPECT_EQ(active_set_room({0, 4, 2}, 2), -1);
        EXPECT_EQ(active_set_room({7, 2, 3}, 1), active_set_room({7, 2, 3}, 1));
    });
}

TEST_F(RoomsTest, HandlesOfDestroyedTeamsAreNone) {
    alone([] {
        EXPECT_EQ(find(SHMEM_TEAM_INVALID), nullptr);
        EXPECT_EQ(find(SHMEM_TEAM_WORLD)->members.size, 1);
        const Members one = {0, 1, 1};
        Team* team = create(one, take_room(one), 4);
        const shmem_team_t handle = team->handle;
        EXPECT_EQ(find(handle), team);
        EXPECT_EQ(team->num_contexts, 4);
        destroy(team);
        EXPECT_EQ(find(handle), nullptr);
        EXPECT_EQ(create(one, take_room(one), 0)->handle, handle) << "pooled objects are used again";
    });
}

TEST(PeersOfTeams, AreInTheTeamsOrder) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    test::run_pes(4, [](int) {
        shmem_init();
        shmem_team_t handle;
        ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 3, -2, 2, nullptr, 0, &handle), 0);
        if (Team* team = find(handle)) {
            const heddle_peer* peers = peers_of(team, true);
            const heddle_peer* world = peers_of(find(SHMEM_TEAM_WORLD), true);
            EXPECT_EQ(peers[0].heap, world[3].heap);
            EXPECT_EQ(peers[1].heap, world[1].heap);
            EXPECT_EQ(peers[2].heap_size, 0u);
            EXPECT_EQ(peers[-1].heap_size, 0u);
            close_peer_tables();
            EXPECT_EQ(peers[0].heap_size, 0u);
        }
        shmem_finalize();
    });
}

}  // namespace
}  // namespace heddle::team
