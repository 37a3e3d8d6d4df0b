// The team segments of a node: taken, left, taken again as new, used up; those of active sets are found again.
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
constexpr int kMaxPes = 256;  // ThreadSanitizer leaves little address space
#else
constexpr int kMaxPes = 4096;
#endif

TEST(TeamSegments, AreUsedUpAndComeBack) {
    Area area(2);
    std::vector<int> taken;
    for (int segment; (segment = take_segment(kTwo)) != kNoSegment;) taken.push_back(segment);
    ASSERT_EQ(taken.size(), static_cast<size_t>(kSegmentsPerPe));
    EXPECT_EQ(active_set_segment("test", kTwo, 0, 2), kNoSegment) << "of the same segments";
    EXPECT_EQ(active_set_segment("test", kTwo, 0, 2), kNoSegment) << "and so it stays";
    std::set<int> distinct(taken.begin(), taken.end());
    EXPECT_EQ(distinct.size(), taken.size());
    EXPECT_FALSE(distinct.count(kWorldSegment) || distinct.count(kSharedSegment));
    for (const size_t i : {size_t{0}, size_t{5}, size_t{63}, size_t{64}, size_t{400}, taken.size() - 1}) {
        leave_segment(taken[i], 1);
        EXPECT_EQ(take_segment(kTwo), taken[i]) << "the only free one";
        EXPECT_EQ(take_segment(kTwo), kNoSegment);
    }
    for (int segment : taken) leave_segment(segment, 1);
    for (size_t i = 0; i < taken.size(); ++i) EXPECT_TRUE(distinct.erase(take_segment(kTwo)));
    EXPECT_EQ(take_segment(kTwo), kNoSegment);
}

TEST(TeamSegments, OfOneMemberAreItsOwn) {
    for (const int n_pes : {1, 2, 7}) {
        Area area(n_pes);
        for (int i = 0; i < 3 * kSegmentsPerPe; ++i) EXPECT_EQ(take_segment(kOne), kOwnSegment);
        EXPECT_EQ(take_segment({0, 1, 7}, 1), kOwnSegment) << "the others are on other nodes";
        EXPECT_EQ(active_set_segment("test", kOne, 3, 1), kOwnSegment);
        leave_segment(kOwnSegment, 1);
    }
}

// Each class has as many member slots; what they are for is what the message says.
TEST(TeamSegments, AreEnoughInEachClass) {
    for (const int n_pes : {2, 3, 4, 5, 8, 9, 128, kMaxPes}) {
        Area area(n_pes);
        const char* const end = reinterpret_cast<const char*>(team_segments.wait_records) + team_segments_bytes(n_pes);
        int from = 2;
        for (int i = 0; i < team_segments.n_classes; ++i) {
            const SegmentClass& one = team_segments.classes[i];
            EXPECT_LE(static_cast<long>(one.member_slots) * one.number, static_cast<long>(kSegmentsPerPe) * n_pes);
            EXPECT_GT(static_cast<long>(one.member_slots) * (one.number + 1),
                      static_cast<long>(kSegmentsPerPe) * n_pes);
            for (const int size : {from, one.member_slots}) {
                const SegmentLimit limit = segment_limit(size);
                EXPECT_EQ(limit.from, from);
                EXPECT_EQ(limit.to, one.member_slots);
                EXPECT_EQ(limit.number, one.number);
            }
            const TeamSegment last = segment_at(one.first + one.number - 1);
            EXPECT_LE(last.bounce_of(one.member_slots, 0),
                      i + 1 < team_segments.n_classes ? team_segments.classes[i + 1].begin : end);
            from = one.member_slots + 1;
        }
        EXPECT_EQ(from, n_pes + 1);
    }
}

// An instance is a segment beside its team's; a team that takes the segment again finds it as new, whatever its size.
TEST(TeamSegments, HaveInstancesThatAreTakenWithThem) {
    constexpr int kPes = 4;
    const Members four = {0, 1, kPes}, three = {0, 1, 3};
    Area area(kPes);
    std::set<char*> places;
    for (const int index : {kWorldSegment, kSharedSegment, take_segment(kTwo), take_segment(four)}) {
        EXPECT_TRUE(places.insert(reinterpret_cast<char*>(segment_at(index).member_slots)).second);
        for (int instance = 1; instance < kInstances; ++instance) {
            const TeamSegment there = instance_segment_at(index, instance);
            EXPECT_NE(there.index, index);
            EXPECT_EQ(segment_at(there.index).member_slots, there.member_slots);
            EXPECT_TRUE(places.insert(reinterpret_cast<char*>(there.member_slots)).second);
            EXPECT_EQ(there.bounce_of(1, 1) - there.bounce, static_cast<ptrdiff_t>(3 * kBounceBytes));
        }
    }
    const int index = take_segment(four);
    const auto dirty = [&](int instance, int member) {
        instance_segment_at(index, instance).member_slots[member].inline_slots[1].event_count.advance_to(9);
        instance_segment_at(index, instance).central_barrier->released.advance_to(9);
    };
    const auto leave = [&](int members) {
        for (int i = 0; i < members; ++i) leave_segment(index, members);
    };
    dirty(1, 0), dirty(kInstances - 1, kPes - 1);
    leave(kPes);
    ASSERT_EQ(take_segment(three), index);  // uses no instance, and leaves the fourth member's slot as it was
    leave(3);
    ASSERT_EQ(take_segment(four), index);
    for (int instance = 1; instance < kInstances; ++instance) {
        const TeamSegment there = instance_segment_at(index, instance);
        EXPECT_FALSE(there.central_barrier->released.reached(1));
        for (int member = 0; member < kPes; ++member)
            EXPECT_FALSE(there.member_slots[member].inline_slots[1].event_count.reached(1))
                << instance << " " << member;
    }
}

TEST(TeamSegments, DoNotOverlap) {
    constexpr int kPes = 3;
    Area area(kPes);
    const Members all = {0, 1, kPes};
    const struct {
        TeamSegment segment;
        int member_slots;
    } segments_of[] = {{segment_at(kWorldSegment), kPes},
                       {segment_at(kSharedSegment), kPes},
                       {segment_at(active_set_segment("test", all, 0, kPes)), kPes},
                       {segment_at(take_segment(all)), kPes},
                       {segment_at(take_segment(all)), kPes},
                       {segment_at(active_set_segment("test", kTwo, 0, 2)), 2},
                       {segment_at(take_segment(kTwo)), 2}};
    std::vector<std::pair<const char*, const char*>> extents;
    for (const auto& [segment, member_slots] : segments_of) {
        const char* end = segment.bounce_of(member_slots, 0);
        EXPECT_LT(reinterpret_cast<const char*>(segment.central_barrier),
                  reinterpret_cast<const char*>(segment.member_slots));
        EXPECT_LE(reinterpret_cast<const char*>(segment.member_slots + member_slots), segment.bounce_of(0, 0));
        EXPECT_EQ(segment.bounce_of(1, 0) - segment.bounce_of(0, 0), static_cast<ptrdiff_t>(2 * kBounceBytes));
        EXPECT_EQ(segment.bounce_of(1, 7), segment.bounce_of(1, 5));
        EXPECT_NE(segment.bounce_of(1, 7), segment.bounce_of(1, 8));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(segment.member_slots) % alignof(MemberSlot), 0u);
        extents.emplace_back(reinterpret_cast<const char*>(segment.central_barrier), end);
    }
    std::sort(extents.begin(), extents.end());
    for (size_t i = 1; i < extents.size(); ++i) EXPECT_LE(extents[i - 1].second, extents[i].first);
}

TEST(TeamSegments, AreAsNewWhenTheyAreTakenAgain) {
    constexpr int kPes = 2;
    const Members both = {0, 1, kPes};
    for (BarrierAlgorithm barrier_algorithm :
         {BarrierAlgorithm::kCentral, BarrierAlgorithm::kDissemination, BarrierAlgorithm::kFlat}) {
        Area area(kPes);
        int first = -1;
        for (int life = 0; life < 3; ++life) {
            const int index = take_segment(both);
            if (life == 0)
                first = index;
            EXPECT_EQ(index, first);
            std::array<std::atomic<bool>, kPes> here = {};
            area.run([&](int pe) {
                MemberState state = place_in(index, both, pe, barrier_algorithm);
                if (pe == 0)
                    std::this_thread::sleep_for(std::chrono::milliseconds(2));
                here[static_cast<size_t>(pe)].store(true);
                barrier(kTestCall, state);
                EXPECT_TRUE(here[0].load()) << "passed on what was left of an earlier team";
                for (int i = 0; i < 70; ++i) {
                    const uint32_t step = begin_publish(kTestCall, state);
                    publish(state, step);
                    await(kTestCall, state, 1 - pe, step);
                }
                leave_segment(index, kPes);
            });
        }
    }
}

TEST(TeamSegments, AreFreeWhenTheLastMemberHasLeft) {
    Area area(3);
    const Members three = {0, 1, 3};
    const int segment = take_segment(three);
    leave_segment(segment, 3);
    leave_segment(segment, 3);
    EXPECT_NE(take_segment(three), segment);
    leave_segment(segment, 3);
    EXPECT_EQ(take_segment(three), segment);
}

TEST(TeamSegments, OfThePredefinedTeamsAreNeverFreed) {
    Area area(2);
    for (const int segment : {kWorldSegment, kSharedSegment})
        for (int i = 0; i < 3; ++i) leave_segment(segment, 1);
    for (int segment; (segment = take_segment(kTwo)) != kNoSegment;)
        EXPECT_TRUE(segment != kWorldSegment && segment != kSharedSegment);
}

TEST(TeamSegments, TellTheirMembers) {
    Area area(8);
    const int segment = take_segment({7, -2, 3});
    EXPECT_EQ(head_of(segment)->start.load(), 7);
    EXPECT_EQ(head_of(segment)->stride.load(), -2);
    EXPECT_EQ(head_of(segment)->size.load(), 3);
}

// No two PEs get the same team segment, whoever takes and leaves at the same time.
TEST(TeamSegments, AreTakenByOneAtATime) {
    constexpr int kPes = 4, kRounds = 100000, kHeld = 3;
    Area area(kPes);
    const auto owner = std::make_unique<std::atomic<int>[]>(4 * kSegmentsPerPe);
    std::atomic<int> shared_by_two{0};
    area.run([&](int pe) {
        int held[kHeld];
        for (int round = 0; round < kRounds; ++round) {
            for (int& segment : held) {
                segment = take_segment(kTwo);
                if (owner[static_cast<size_t>(segment)].exchange(pe + 1) != 0)
                    shared_by_two.fetch_add(1);
            }
            for (int segment : held) {
                if (owner[static_cast<size_t>(segment)].exchange(0) != pe + 1)
                    shared_by_two.fetch_add(1);
                leave_segment(segment, 1);
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
        const auto find = [&set] { return active_set_segment("test", set.members, set.log_stride, set.members.size); };
        const int segment = find();
        ASSERT_GE(segment, 0);
        EXPECT_TRUE(distinct.insert(segment).second) << "another set has this segment";
        EXPECT_EQ(find(), segment);
        area.play(5);  // another PE finds it, too
        EXPECT_EQ(find(), segment);
        area.play(0);
        EXPECT_EQ(head_of(segment)->size.load(), set.members.size);
    }
}

// Recursive halving by blocks and by strides, of as many PEs as a node can have, and the pairs of all neighbours.
TEST(ActiveSets, AreEnoughForRecursion) {
    for (const int n_pes : {128, kMaxPes}) {
        Area area(n_pes);
        size_t sets = 0;
        std::set<int> distinct;
        const auto use = [&](int start, int log_stride, int size) {
            ++sets;
            distinct.insert(active_set_segment("test", {start, 1 << log_stride, size}, log_stride, size));
        };
        for (int size = n_pes; size > 1; size /= 2)
            for (int start = 0; start < n_pes; start += size) use(start, 0, size);
        for (int log_stride = 1; 1 << log_stride < n_pes; ++log_stride)
            for (int start = 0; start < 1 << log_stride; ++start) use(start, log_stride, n_pes >> log_stride);
        for (int start = 1; start + 1 < n_pes; start += 2) use(start, 0, 2);
        EXPECT_EQ(distinct.size(), sets);
        EXPECT_FALSE(distinct.count(kNoSegment));
    }
}

// A team segment that a team has left is as new when an active set gets it.
TEST(ActiveSets, AreAsNewWhereTeamsWere) {
    Area area(2);
    const int of_team = take_segment(kTwo);
    MemberSlot* const member_slot = segment_at(of_team).member_slots + 1;
    member_slot->entered = 77;
    leave_segment(of_team, 2);
    leave_segment(of_team, 2);
    ASSERT_EQ(active_set_segment("test", kTwo, 0, 2), of_team);
    EXPECT_EQ(member_slot->entered.load(), 0u);
}

// PEs that come to the same sets at the same time agree on the team segments.
TEST(ActiveSets, AreAgreedOn) {
    constexpr int kPes = 4, kSets = 200;
    Area area(kPes);
    std::array<std::array<int, kSets>, kPes> found = {};
    area.run([&](int pe) {
        for (int i = 0; i < kSets; ++i) {
            const int which = pe % 2 ? kSets - 1 - i : i;
            found[static_cast<size_t>(pe)][static_cast<size_t>(which)] =
                active_set_segment("test", {which, 1, 2}, 0, 2);
        }
    });
    for (const auto& of_pe : found) EXPECT_EQ(of_pe, found[0]);
    EXPECT_EQ(std::set<int>(found[0].begin(), found[0].end()).size(), static_cast<size_t>(kSets));
}

}  // namespace
}  // namespace heddle::team
