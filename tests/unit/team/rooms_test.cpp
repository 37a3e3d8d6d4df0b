// The rooms of a node: taken, left, taken again as new, used up; those of active sets are found again.
#include "unit/team/area.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <utility>

namespace heddle::team {
namespace {

constexpr int kRoomsOfTeams = 768, kRoomsOfActiveSets = 256;
const Members kOne = {0, 1, 1};

TEST(Rooms, AreUsedUpAndComeBack) {
    Area area(1);
    std::vector<int> taken;
    for (int room = take_room(kOne); room >= 0; room = take_room(kOne)) taken.push_back(room);
    ASSERT_EQ(taken.size(), static_cast<size_t>(kRoomsOfTeams));
    std::set<int> distinct(taken.begin(), taken.end());
    EXPECT_EQ(distinct.size(), taken.size());
    EXPECT_FALSE(distinct.count(kWorldRoom) || distinct.count(kSharedRoom));
    for (int i = 0; i < kRoomsOfActiveSets; ++i) EXPECT_FALSE(distinct.count(active_set_room({i, 1, 1}, 0)));
    for (const size_t i : {size_t{0}, size_t{5}, size_t{63}, size_t{64}, size_t{400}, taken.size() - 1}) {
        leave_room(taken[i], 1);
        EXPECT_EQ(take_room(kOne), taken[i]) << "the only free one";
        EXPECT_EQ(take_room(kOne), -1);
    }
    for (int room : taken) leave_room(room, 1);
    for (size_t i = 0; i < taken.size(); ++i) EXPECT_TRUE(distinct.erase(take_room(kOne)));
    EXPECT_EQ(take_room(kOne), -1);
}

TEST(Rooms, DoNotOverlap) {
    constexpr int kPes = 3;
    Area area(kPes);
    const Members all = {0, 1, kPes};
    const int first = take_room(all), second = take_room(all);
    const Room rooms_of[] = {room_at(kWorldRoom), room_at(kSharedRoom), room_at(active_set_room(all, 0)),
                             room_at(first), room_at(second)};
    std::vector<std::pair<const char*, const char*>> extents;
    for (const Room& room : rooms_of) {
        const char* end = room.mail_of(kPes, 0);
        EXPECT_LT(reinterpret_cast<const char*>(room.meeting), reinterpret_cast<const char*>(room.seats));
        EXPECT_LE(reinterpret_cast<const char*>(room.seats + kPes), room.mail_of(0, 0));
        EXPECT_EQ(room.mail_of(1, 0) - room.mail_of(0, 0), static_cast<ptrdiff_t>(2 * kMailBytes));
        EXPECT_EQ(room.mail_of(1, 7), room.mail_of(1, 5));
        EXPECT_NE(room.mail_of(1, 7), room.mail_of(1, 8));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(room.seats) % alignof(Seat), 0u);
        extents.emplace_back(reinterpret_cast<const char*>(room.meeting), end);
    }
    std::sort(extents.begin(), extents.end());
    for (size_t i = 1; i < extents.size(); ++i) EXPECT_LE(extents[i - 1].second, extents[i].first);
}

TEST(Rooms, AreAsNewWhenTheyAreTakenAgain) {
    constexpr int kPes = 2;
    const Members both = {0, 1, kPes};
    for (Way way : {Way::kCentral, Way::kDissemination, Way::kFlat}) {
        Area area(kPes);
        int first = -1;
        for (int life = 0; life < 3; ++life) {
            const int index = take_room(both);
            if (life == 0)
                first = index;
            EXPECT_EQ(index, first);
            std::array<std::atomic<bool>, kPes> here = {};
            area.run([&](int pe) {
                Place place = place_in(index, both, pe, way);
                if (pe == 0)
                    std::this_thread::sleep_for(std::chrono::milliseconds(2));
                here[static_cast<size_t>(pe)].store(true);
                meet(kTestCall, place);
                EXPECT_TRUE(here[0].load()) << "passed on what was left of an earlier team";
                for (int i = 0; i < 70; ++i) {
                    const uint32_t step = begin_telling(kTestCall, place);
                    tell(place, step);
                    hear(kTestCall, place, 1 - pe, step);
                }
                leave_room(index, kPes);
            });
        }
    }
}

TEST(Rooms, AreFreeWhenTheLastMemberHasLeft) {
    Area area(3);
    const Members three = {0, 1, 3};
    const int room = take_room(three);
    leave_room(room, 3);
    leave_room(room, 3);
    EXPECT_NE(take_room(three), room);
    leave_room(room, 3);
    EXPECT_EQ(take_room(three), room);
}

TEST(Rooms, OfThePredefinedTeamsAndOfActiveSetsAreNeverFreed) {
    Area area(1);
    const int of_set = active_set_room(kOne, 0);
    for (const int room : {kWorldRoom, kSharedRoom, of_set})
        for (int i = 0; i < 3; ++i) leave_room(room, 1);
    for (int i = 0; i < kRoomsOfTeams; ++i) {
        const int room = take_room(kOne);
        EXPECT_TRUE(room != kWorldRoom && room != kSharedRoom && room != of_set);
    }
    EXPECT_EQ(take_room(kOne), -1);
}

TEST(Rooms, TellTheirMembers) {
    Area area(8);
    const int room = take_room({7, -2, 3});
    EXPECT_EQ(head_of(room)->start.load(), 7);
    EXPECT_EQ(head_of(room)->stride.load(), -2);
    EXPECT_EQ(head_of(room)->size.load(), 3);
}

// No two PEs get the same room, whoever takes and leaves at the same time.
TEST(Rooms, AreTakenByOneAtATime) {
    constexpr int kPes = 4, kRounds = 100000, kHeld = 3;
    Area area(kPes);
    const auto owner = std::make_unique<std::atomic<int>[]>(2000);
    std::atomic<int> shared_by_two{0};
    area.run([&](int pe) {
        int held[kHeld];
        for (int round = 0; round < kRounds; ++round) {
            for (int& room : held) {
                room = take_room(kOne);
                if (owner[static_cast<size_t>(room)].exchange(pe + 1) != 0)
                    shared_by_two.fetch_add(1);
            }
            for (int room : held) {
                if (owner[static_cast<size_t>(room)].exchange(0) != pe + 1)
                    shared_by_two.fetch_add(1);
                leave_room(room, 1);
            }
        }
    });
    EXPECT_EQ(shared_by_two.load(), 0);
}

TEST(ActiveSets, FindTheirRoomAgain) {
    Area area(8);
    struct Set {
        Members members;
        int log_stride;
    };
    std::vector<Set> sets;
    for (int start : {0, 1, 5})
        for (int log_stride : {0, 1, 2})
            for (int size : {1, 2, 3}) sets.push_back({{start, 1 << log_stride, size}, log_stride});
    std::set<int> distinct;
    for (const Set& set : sets) {
        const int room = active_set_room(set.members, set.log_stride);
        ASSERT_GE(room, 0);
        EXPECT_TRUE(distinct.insert(room).second) << "another set has this room";
        EXPECT_EQ(active_set_room(set.members, set.log_stride), room);
        area.play(5);  // another PE finds it, too
        EXPECT_EQ(active_set_room(set.members, set.log_stride), room);
        area.play(0);
        EXPECT_EQ(head_of(room)->size.load(), set.members.size);
    }
}

TEST(ActiveSets, AreAtMost256) {
    Area area(1);
    std::set<int> distinct;
    for (int i = 0; i < kRoomsOfActiveSets; ++i) distinct.insert(active_set_room({i, 2, 3}, 1));
    EXPECT_EQ(distinct.size(), static_cast<size_t>(kRoomsOfActiveSets));
    EXPECT_FALSE(distinct.count(-1));
    EXPECT_EQ(active_set_room({0, 4, 2}, 2), -1);
    EXPECT_TRUE(distinct.count(active_set_room({7, 2, 3}, 1))) << "those that have one keep it";
}

// PEs that come to the same sets at the same time agree on the rooms.
TEST(ActiveSets, AreAgreedOn) {
    constexpr int kPes = 4, kSets = 200;
    Area area(kPes);
    std::array<std::array<int, kSets>, kPes> found = {};
    area.run([&](int pe) {
        for (int i = 0; i < kSets; ++i) {
            const int which = pe % 2 ? kSets - 1 - i : i;
            found[static_cast<size_t>(pe)][static_cast<size_t>(which)] = active_set_room({which, 1, 2}, 0);
        }
    });
    for (const auto& of_pe : found) EXPECT_EQ(of_pe, found[0]);
    EXPECT_EQ(std::set<int>(found[0].begin(), found[0].end()).size(), static_cast<size_t>(kSets));
}

}  // namespace
}  // namespace heddle::team
