// How members of a team segment go through their steps: in every way to meet and at several numbers of PEs nobody
// leaves a barrier before all have come, what was stored before it is seen behind it, and every inline data and control
// message is read as it was written, however far the others are ahead or behind.
#include "support/pes_as_threads.h"
#include "unit/team/area.h"

#include <shmem.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>

namespace heddle::team {
namespace {

constexpr BarrierAlgorithm kWays[] = {BarrierAlgorithm::kCentral, BarrierAlgorithm::kDissemination,
                                      BarrierAlgorithm::kFlat};
constexpr const char* kWords[] = {"auto", "central", "dissemination", "flat"};  // as HEDDLE_BARRIER has them
const auto kAllWays = testing::Combine(testing::ValuesIn(kWays), testing::Values(1, 2, 3, 4, 7, 8, 16));

std::string name_of(const testing::TestParamInfo<std::tuple<BarrierAlgorithm, int>>& info) {
    return std::string(kWords[static_cast<int>(std::get<0>(info.param))]) + std::to_string(std::get<1>(info.param));
}

// Any number from a few, always the same.
uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t x = a * 0x9e3779b97f4a7c15 + b * 0xbf58476d1ce4e5b9 + c * 0x94d049bb133111eb;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    return x ^ x >> 32;
}

// What a member of a team segment does, step by step: which step comes is the same for all members, the rest their own
// affair.
class Walk {
  public:
    Walk(MemberState& state, uint64_t seed, std::atomic<uint32_t>* arrived)
        : place_(state), seed_(seed), arrived_(arrived), me_(static_cast<uint64_t>(state.rank)) {}

    void steps(uint32_t number) {
        for (uint32_t i = 0; i < number; ++i) {
            // Long rows of publish steps, so that inline slots come round again, between barriers of three kinds.
            const uint64_t kind = mix(seed_, i, 1) % 64;
            lag(i);
            if (kind == 0)
                central_barrier(i);
            else if (kind <= 2)
                meeting_with_notes(i);
            else if (kind <= 4)
                meeting_with_letters(i);
            else
                published(i);
        }
    }

  private:
    uint64_t of(uint32_t i, uint64_t member, uint64_t what) const { return mix(seed_ + what, i, member + 7); }

    void lag(uint32_t i) const {
        const uint64_t draw = of(i, me_, 100) % 256;
        if (draw == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(300));
        else if (draw < 24)
            std::this_thread::yield();
    }

    void write(char* to, size_t bytes, uint32_t i) const {
        for (size_t at = 0; at + 8 <= bytes; at += 8) {
            const uint64_t word = of(i, me_, 200 + at);
            memcpy(to + at, &word, 8);
        }
    }
    void expect_written(const char* from, size_t bytes, uint32_t i, int member) const {
        for (size_t at = 0; at + 8 <= bytes; at += 8) {
            uint64_t word;
            memcpy(&word, from + at, 8);
            ASSERT_EQ(word, of(i, static_cast<uint64_t>(member), 200 + at))
                << "step " << i << " of rank " << member << " at " << at << ", seed " << seed_;
        }
    }

    void arrive(uint32_t i) {
        // Relaxed, so that the barrier alone orders it.
        arrived_[me_].store(i + 1, std::memory_order_relaxed);
        barrier(kTestCall, place_);
        for (int member = 0; member < place_.size(); ++member)
            ASSERT_GE(arrived_[member].load(std::memory_order_relaxed), i + 1) << "rank " << member << " had not come";
        ASSERT_EQ(place_.all_done, place_.count - 1);
    }

    void central_barrier(uint32_t i) { arrive(i); }

    void meeting_with_notes(uint32_t i) {
        write(next_inline_data(place_), kInlineBytes, i);
        const uint32_t step = place_.count + 1;
        arrive(i);
        for (int member = 0; member < place_.size(); ++member)
            expect_written(place_.inline_data(member, step), kInlineBytes, i, member);
    }

    void meeting_with_letters(uint32_t i) {
        const size_t bytes = of(i, 0, 300) % 16 == 0 ? kBounceBytes : 512;
        write(next_bounce(place_), bytes, i);
        arrive(i);
        for (int member = 0; member < place_.size(); ++member) expect_written(place_.bounced(member), bytes, i, member);
    }

    // Some tell, and each hears some of these.
    void published(uint32_t i) {
        const auto tells = [&](uint64_t member) { return of(i, member, 400) % 3 != 0; };
        const uint32_t step = begin_publish(kTestCall, place_);
        ASSERT_LT(step - place_.all_done, kDepth) << "the post may still be read";
        if (tells(me_)) {
            write(place_.inline_data(place_.rank, step), kInlineBytes, i);
            publish(place_, step);
        }
        for (int member = 0; member < place_.size(); ++member) {
            if (!tells(static_cast<uint64_t>(member)) || of(i, me_, 500 + static_cast<uint64_t>(member)) % 2 == 0)
                continue;
            await(kTestCall, place_, member, step);
            expect_written(place_.inline_data(member, step), kInlineBytes, i, member);
        }
    }

    MemberState& place_;
    uint64_t seed_;
    std::atomic<uint32_t>* arrived_;
    uint64_t me_;
};

// Opens all event counts of a team segment to count, as if that many steps had gone by.
void age(const TeamSegment& segment, int members, uint32_t count) {
    segment.central_barrier->released.advance_to(count);
    for (int rank = 0; rank < members; ++rank) {
        for (InlineSlot& post : segment.member_slots[rank].inline_slots) post.event_count.advance_to(count);
        for (PaddedEventCount& round : segment.member_slots[rank].rounds) round.event_count.advance_to(count);
    }
}

class RoomTest : public testing::TestWithParam<std::tuple<BarrierAlgorithm, int>> {
  protected:
    void walk(uint32_t number, uint32_t first_count) {
        const auto [barrier_algorithm, n_pes] = GetParam();
        const uint64_t seed = static_cast<uint64_t>(n_pes) * 10 + static_cast<uint64_t>(barrier_algorithm);
        Area area(n_pes);
        const Members members = {0, 1, n_pes};
        const int index = n_pes > 1 ? take_segment(members) : kWorldSegment;  // of the area, as all have it
        ASSERT_GE(index, 0);
        age(segment_at(index), n_pes, first_count);
        std::array<std::atomic<uint32_t>, 16> arrived = {};
        area.run([&, of_way = barrier_algorithm](int pe) {
            MemberState state = place_in(index, members, members.rank(pe), of_way, first_count);
            Walk(state, seed, arrived.data()).steps(number);
        });
    }
};

TEST_P(RoomTest, NotesAndLettersArriveAsTheyWereWritten) {
    walk(std::get<1>(GetParam()) > 4 ? 1500 : 8000, 0);
}

TEST_P(RoomTest, StepsMayWrapAround) {
    walk(600, 0xfffffea0);
}

INSTANTIATE_TEST_SUITE_P(All, RoomTest, kAllWays, name_of);

// The same seen by a program: plain stores, barrier_all and sync_all.
class ProgramTest : public testing::TestWithParam<std::tuple<BarrierAlgorithm, int>> {};

TEST_P(ProgramTest, NoPePassesEarly) {
    const auto [barrier_algorithm, n_pes] = GetParam();
    const int rounds = n_pes > 4 ? 100 : 400;
    setenv("HEDDLE_BARRIER", kWords[static_cast<int>(barrier_algorithm)], 1);
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    const auto arrived = std::make_unique<std::atomic<int>[]>(static_cast<size_t>(n_pes));
    std::atomic<int> early{0}, stale{0};
    test::run_pes(n_pes, [&](int pe) {
        shmem_init();
        long* slots = static_cast<long*>(shmem_calloc(static_cast<size_t>(shmem_n_pes()), sizeof(long)));
        for (int round = 1; round <= rounds; ++round) {
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

INSTANTIATE_TEST_SUITE_P(All, ProgramTest, kAllWays, name_of);

TEST(Program, GoesOnAfterFinalizeAndInit) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    for (BarrierAlgorithm barrier_algorithm : kWays) {
        setenv("HEDDLE_BARRIER", kWords[static_cast<int>(barrier_algorithm)], 1);
        test::run_pes(3, [](int) {
            for (int life = 0; life < 3; ++life) {
                shmem_init();
                for (int i = 0; i < 5; ++i) shmem_barrier_all();
                shmem_finalize();
            }
        });
    }
}

// One thread plays both members: what would wait for the other would wait for ever.
TEST(Telling, NobodyWaitsForTheSlow) {
    Area area(2);
    const Members both = {0, 1, 2};
    const int index = take_segment(both);
    MemberState fast = place_in(index, both, 0, BarrierAlgorithm::kFlat),
                slow = place_in(index, both, 1, BarrierAlgorithm::kFlat);
    for (uint32_t i = 1; i < kDepth; ++i) {
        const uint32_t step = begin_publish(kTestCall, fast);
        EXPECT_EQ(step, i);
        memcpy(fast.inline_data(0, step), &i, sizeof i);
        publish(fast, step);
    }
    EXPECT_EQ(fast.count + 1 - fast.all_done, kDepth) << "the next one would meet first";
    for (uint32_t i = 1; i < kDepth; ++i) {
        const uint32_t step = begin_publish(kTestCall, slow);
        await(kTestCall, slow, 0, step);
        uint32_t heard;
        memcpy(&heard, slow.inline_data(0, step), sizeof heard);
        EXPECT_EQ(heard, i);
    }
}

// What would hang, or read another member's data, ends the PE where invariants are checked.
TEST(StepDeathTest, AStepThatCannotBeIsNotTaken) {
    Area area(2);
    const Members both = {0, 1, 2};
    const int index = take_segment(both);
    MemberState state = place_in(index, both, 0, BarrierAlgorithm::kFlat);
    EXPECT_DEATH(await(kTestCall, state, 2, 0), "from_rank < state.size");
    EXPECT_DEATH(await(kTestCall, state, 1, 1), "state.count - step < kDepth") << "not begun";
    EXPECT_DEATH(publish(state, 1), "state.count - step < kDepth") << "not begun";
    leave_segment(index, 1);
    EXPECT_DEATH(leave_segment(index, 1), "left <=") << "left twice";
}

TEST(Telling, AMemberOfOneNeverWaits) {
    Area area(1);
    const Members one = {0, 1, 1};
    ASSERT_EQ(take_segment(one), kOwnSegment);
    const auto memory = std::make_unique<OwnSegment>();
    for (BarrierAlgorithm barrier_algorithm : kWays) {
        memory->clear();
        MemberState state;
        state.segment = memory->segment();
        state.members = one;
        state.barrier_algorithm = barrier_algorithm;
        for (int i = 0; i < 200; ++i) {
            const uint32_t step = begin_publish(kTestCall, state);
            publish(state, step);
            await(kTestCall, state, 0, step);
            barrier(kTestCall, state);
        }
        EXPECT_GE(state.count, 400u);
    }
}

// A member that never told anything has inline slots from the beginning of time. Whatever number the step has, its
// inline slots are not open before it tells.
TEST(Telling, AnOldPostIsNotTakenForANewOne) {
    Area area(2);
    const Members both = {0, 1, 2};
    for (const uint32_t count : {0x100u, 0x7fffff00u, 0x80000100u, 0xc0000000u, 0xffffff00u}) {
        const int index = take_segment(both);
        std::atomic<bool> told{false}, early{false};
        area.run([&](int pe) {
            MemberState state = place_in(index, both, pe, BarrierAlgorithm::kCentral, count);
            const uint32_t step = begin_publish(kTestCall, state);
            if (pe == 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                told.store(true);
                publish(state, step);
            } else {
                await(kTestCall, state, 0, step);
                early.store(!told.load());
            }
        });
        EXPECT_FALSE(early.load()) << "step " << count + 1 << " was heard before it was told";
    }
}

TEST(WayFor, FollowsTheSettingThenTheMachine) {
    Area area(4);
    EXPECT_EQ(barrier_algorithm_for(2), BarrierAlgorithm::kFlat);
    EXPECT_EQ(barrier_algorithm_for(8), BarrierAlgorithm::kFlat);
    EXPECT_EQ(barrier_algorithm_for(9), BarrierAlgorithm::kDissemination);
    area.play(0, true);
    EXPECT_TRUE(is_oversubscribed());
    for (int size : {1, 2, 8, 9, 4096}) EXPECT_EQ(barrier_algorithm_for(size), BarrierAlgorithm::kCentral);
    for (BarrierAlgorithm barrier_algorithm : kWays) {
        base::settings.barrier = barrier_algorithm;
        for (int size : {1, 8, 9}) EXPECT_EQ(barrier_algorithm_for(size), barrier_algorithm);
    }
    for (BarrierAlgorithm barrier_algorithm : kWays) {
        setenv("HEDDLE_BARRIER", kWords[static_cast<int>(barrier_algorithm)], 1);
        char error[256];
        ASSERT_TRUE(base::read_settings(&base::settings, error, sizeof error)) << error;
        EXPECT_EQ(barrier_algorithm_for(3), barrier_algorithm);
    }
}

}  // namespace
}  // namespace heddle::team
