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

const Members kOne = {0, 1, 1}, kTwo = {0, 1, 2};

#ifdef __SANITIZE_THREAD__
constexpr int kMostPes = 256;  // ThreadSanitizer leaves little address space
#else
constexpr int kMostPes = 4096;
#endif

TEST(Rooms, AreUsedUpAndComeBack) {
    Area area(2);
    std::vector<int> taken;
    for (int room; (room = take_room(kTwo)) != kNoRoom;) taken.push_back(room);
    ASSERT_EQ(taken.size(), static_cast<size_t>(kRoomsPerPe));
    EXPECT_EQ(active_set_room("test", kTwo, 0, 2), kNoRoom) << "of the same rooms";
    EXPECT_EQ(active_set_room("test", kTwo, 0, 2), kNoRoom) << "and so it stays";
    std::set<int> distinct(taken.begin(), taken.end());
    EXPECT_EQ(distinct.size(), taken.size());
    EXPECT_FALSE(distinct.count(kWorldRoom) || distinct.count(kSharedRoom));
    for (const size_t i : {size_t{0}, size_t{5}, size_t{63}, size_t{64}, size_t{400}, taken.size() - 1}) {
        leave_room(taken[i], 1);
        EXPECT_EQ(take_room(kTwo), taken[i]) << "the only free one";
        EXPECT_EQ(take_room(kTwo), kNoRoom);
    }
    for (int room : taken) leave_room(room, 1);
    for (size_t i = 0; i < taken.size(); ++i) EXPECT_TRUE(distinct.erase(take_room(kTwo)));
    EXPECT_EQ(take_room(kTwo), kNoRoom);
}

TEST(Rooms, OfOneMemberAreItsOwn) {
    for (const int n_pes : {1, 2, 7}) {
        Area area(n_pes);
        for (int i = 0; i < 3 * kRoomsPerPe; ++i) EXPECT_EQ(take_room(kOne), kOwnRoom);
        EXPECT_EQ(take_room({0, 1, 7}, 1), kOwnRoom) << "the others are on other nodes";
        EXPECT_EQ(active_set_room("test", kOne, 3, 1), kOwnRoom);
        leave_room(kOwnRoom, 1);
    }
}

// Each class has as many seats; what they are for is what the message says.
TEST(Rooms, AreEnoughInEachClass) {
    for (const int n_pes : {2, 3, 4, 5, 8, 9, 128, kMostPes}) {
        Area area(n_pes);
        const char* const end = reinterpret_cast<const char*>(rooms.whereabouts) + rooms_bytes(n_pes);
        int from = 2;
        for (int i = 0; i < rooms.n_classes; ++i) {
            const RoomClass& one = rooms.classes[i];
            EXPECT_LE(static_cast<long>(one.seats) * one.number, static_cast<long>(kRoomsPerPe) * n_pes);
            EXPECT_GT(static_cast<long>(one.seats) * (one.number + 1), static_cast<long>(kRoomsPerPe) * n_pes);
            for (const int size : {from, one.seats}) {
                const RoomLimit limit = room_limit(size);
                EXPECT_EQ(limit.from, from);
                EXPECT_EQ(limit.to, one.seats);
                EXPECT_EQ(limit.number, one.number);
            }
            const Room last = room_at(one.first + one.number - 1);
            EXPECT_LE(last.mail_of(one.seats, 0), i + 1 < rooms.n_classes ? rooms.classes[i + 1].begin : end);
            from = one.seats + 1;
        }
        EXPECT_EQ(from, n_pes + 1);
    }
}

TEST(Rooms, DoNotOverlap) {
    constexpr int kPes = 3;
    Area area(kPes);
    const Members all = {0, 1, kPes};
    const struct {
        Room room;
        int seats;
    } rooms_of[] = {{room_at(kWorldRoom), kPes},
                    {room_at(kSharedRoom), kPes},
                    {room_at(active_set_room("test", all, 0, kPes)), kPes},
                    {room_at(take_room(all)), kPes},
                    {room_at(take_room(all)), kPes},
                    {room_at(active_set_room("test", kTwo, 0, 2)), 2},
                    {room_at(take_room(kTwo)), 2}};
    std::vector<std::pair<const char*, const char*>> extents;
    for (const auto& [room, seats] : rooms_of) {
        const char* end = room.mail_of(seats, 0);
        EXPECT_LT(reinterpret_cast<const char*>(room.meeting), reinterpret_cast<const char*>(room.seats));
        EXPECT_LE(reinterpret_cast<const char*>(room.seats + seats), room.mail_of(0, 0));
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

TEST(Rooms, OfThePredefinedTeamsAreNeverFreed) {
    Area area(2);
    for (const int room : {kWorldRoom, kSharedRoom})
        for (int i = 0; i < 3; ++i) leave_room(room, 1);
    for (int room; (room = take_room(kTwo)) != kNoRoom;) EXPECT_TRUE(room != kWorldRoom && room != kSharedRoom);
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
    const auto owner = std::make_unique<std::atomic<int>[]>(4 * kRoomsPerPe);
    std::atomic<int> shared_by_two{0};
    area.run([&](int pe) {
        int held[kHeld];
        for (int round = 0; round < kRounds; ++round) {
            for (int& room : held) {
                room = take_room(kTwo);
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
            for (int size : {2, 3}) sets.push_back({{start, 1 << log_stride, size}, log_stride});
    std::set<int> distinct;
    for (const Set& set : sets) {
        const auto find = [&set] { return active_set_room("test", set.members, set.log_stride, set.members.size); };
        const int room = find();
        ASSERT_GE(room, 0);
        EXPECT_TRUE(distinct.insert(room).second) << "another set has this room";
        EXPECT_EQ(find(), room);
        area.play(5);  // another PE finds it, too
        EXPECT_EQ(find(), room);
        area.play(0);
        EXPECT_EQ(head_of(room)->size.load(), set.members.size);
    }
}

// Recursive halving by blocks and by strides, of as many PEs as a node can have, and the pairs of all neighbours.
TEST(ActiveSets, AreEnoughForRecursion) {
    for (const int n_pes : {128, kMostPes}) {
        Area area(n_pes);
        size_t sets = 0;
        std::set<int> distinct;
        const auto use = [&](int start, int log_stride, int size) {
            ++sets;
            distinct.insert(active_set_room("test", {start, 1 << log_stride, size}, log_stride, size));
        };
        for (int size = n_pes; size > 1; size /= 2)
            for (int start = 0; start < n_pes; start += size) use(start, 0, size);
        for (int log_stride = 1; 1 << log_stride < n_pes; ++log_stride)
            for (int start = 0; start < 1 << log_stride; ++start) use(start, log_stride, n_pes >> log_stride);
        for (int start = 1; start + 1 < n_pes; start += 2) use(start, 0, 2);
        EXPECT_EQ(distinct.size(), sets);
        EXPECT_FALSE(distinct.count(kNoRoom));
    }
}

// A room that a team has left is as new when an active set gets it.
TEST(ActiveSets, AreAsNewWhereTeamsWere) {
    Area area(2);
    const int of_team = take_room(kTwo);
    Seat* const seat = room_at(of_team).seats + 1;
    seat->entered = 77;
    leave_room(of_team, 2);
    leave_room(of_team, 2);
    ASSERT_EQ(active_set_room("test", kTwo, 0, 2), of_team);
    EXPECT_EQ(seat->entered.load(), 0u);
}

// PEs that come to the same sets at the same time agree on the rooms.
TEST(ActiveSets, AreAgreedOn) {
    constexpr int kPes = 4, kSets = 200;
    Area area(kPes);
    std::array<std::array<int, kSets>, kPes> found = {};
    area.run([&](int pe) {
        for (int i = 0; i < kSets; ++i) {
            const int which = pe % 2 ? kSets - 1 - i : i;
            found[static_cast<size_t>(pe)][static_cast<size_t>(which)] = active_set_room("test", {which, 1, 2}, 0, 2);
        }
    });
    for (const auto& of_pe : found) EXPECT_EQ(of_pe, found[0]);
    EXPECT_EQ(std::set<int>(found[0].begin(), found[0].end()).size(), static_cast<size_t>(kSets));
}

}  // namespace
}  // namespace heddle::team
