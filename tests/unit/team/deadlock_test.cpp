// Circles of PEs that wait for each other: found when they stand still, and only then; the message names both calls.
// One thread plays the PEs in turn. What a program sees of it: tests/errors.
#include "support/pes_as_threads.h"
#include "unit/team/area.h"

#include "team/deadlock.h"

#include <shmem.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

namespace heddle::team {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(1050);
constexpr Call kMine = {"shmem_mine", nullptr};

class CircleTest : public testing::Test {
  protected:
    // PE `pe` calls `function` in a team segment of these members, and comes to step 1.
    void enter(int pe, const char* function, int segment, const Members& members) {
        area_.play(pe);
        enter_collective({function, nullptr}, segment);
        come_to(place_in(segment, members, members.rank(pe), BarrierAlgorithm::kCentral), 1);
    }

    // What PE 0 sees when it looks three times, a second apart; between(i) happens before look i.
    template <class Between>
    void look(Between between) {
        area_.play(0);
        DeadlockDetector watch(kMine);
        for (int i = 0; i < 4; ++i) {
            between(i);
            area_.play(0);
            watch.look();
            std::this_thread::sleep_for(kBetweenLooks);
        }
    }
    void look() {
        look([](int) {});
    }

    Area area_{4};
    const Members first_two_ = {0, 1, 2};
};

// A circle ends PEs of one thread alone. Each death test runs in a new process: ThreadSanitizer's own thread, which the
// first thread of any test starts, would count in the old one.
class CircleDeathTest : public CircleTest {
  protected:
    CircleDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(CircleDeathTest, OfTwoIsNamed) {
    const int a = take_segment(first_two_), b = take_segment(first_two_);
    enter(1, "shmem_theirs", b, first_two_);
    enter(0, "shmem_mine", a, first_two_);
    EXPECT_EXIT(look(), testing::ExitedWithCode(1),
                "shmem_mine: waits for PE 1, which is in shmem_theirs and waits for this PE: .*this PE is in "
                "shmem_mine");
}

TEST_F(CircleDeathTest, OfThreeIsNamedToo) {
    const Members zero_one = {0, 1, 2}, one_two = {1, 1, 2}, two_zero = {2, -2, 2};
    const int a = take_segment(zero_one), b = take_segment(one_two), c = take_segment(two_zero);
    enter(2, "shmem_third", c, two_zero);
    enter(1, "shmem_second", b, one_two);
    enter(0, "shmem_mine", a, zero_one);
    EXPECT_EXIT(look(), testing::ExitedWithCode(1),
                "waits for PE 1, which is in shmem_second and waits for this PE by way of others");
}

// PE 1 waits for PE 2, which runs; so does everything.
TEST_F(CircleTest, WaitingForOneThatRunsIsNone) {
    const Members first_three = {0, 1, 3}, one_two = {1, 1, 2};
    const int a = take_segment(first_three), b = take_segment(one_two);
    enter(1, "shmem_theirs", b, one_two);
    enter(0, "shmem_mine", a, first_three);
    testing::internal::CaptureStderr();
    look();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(CircleTest, OfOneRoomIsNone) {
    const int a = take_segment(first_two_);
    enter(1, "shmem_mine", a, first_two_);
    enter(0, "shmem_mine", a, first_two_);
    testing::internal::CaptureStderr();
    look();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Every look sees a circle, but another each time: PE 1 goes on.
TEST_F(CircleTest, ThatMovesIsNone) {
    const int a = take_segment(first_two_), b = take_segment(first_two_);
    enter(0, "shmem_mine", a, first_two_);
    testing::internal::CaptureStderr();
    look([&](int i) {
        area_.play(1);
        enter_collective({"shmem_theirs", nullptr}, b);
        come_to(place_in(b, first_two_, 1, BarrierAlgorithm::kCentral), static_cast<uint32_t>(i + 1));
    });
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(CircleTest, IsGoneWhenOneLeaves) {
    const int a = take_segment(first_two_), b = take_segment(first_two_);
    enter(1, "shmem_theirs", b, first_two_);
    enter(0, "shmem_mine", a, first_two_);
    testing::internal::CaptureStderr();
    look([&](int i) {
        area_.play(1);
        if (i == 2)
            leave_collective();
    });
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Where there are other threads, one of them may still come: it is told, once, and the wait goes on.
TEST_F(CircleTest, OfPesWithThreadsIsToldOnce) {
    std::atomic<bool> ends{false};
    std::thread other([&] {
        while (!ends.load()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
    const int a = take_segment(first_two_), b = take_segment(first_two_);
    enter(1, "shmem_theirs", b, first_two_);
    enter(0, "shmem_mine", a, first_two_);
    testing::internal::CaptureStderr();
    look();
    const std::string told = testing::internal::GetCapturedStderr();
    ends.store(true);
    other.join();
    const size_t first = told.find("waits for PE 1, which is in shmem_theirs");
    EXPECT_NE(first, std::string::npos) << told;
    EXPECT_EQ(told.find("waits for", told.find('\n', first)), std::string::npos) << told;
}

TEST(WaitRecord, NameTheFunctionAndThePlaceOfTheCall) {
    Area area(2);
    area.play(1);
    enter_collective({"shmem_barrier_all", __builtin_return_address(0)}, kWorldSegment);
    area.play(0);
    const std::string text = awaited_call_of(1).data();
    EXPECT_EQ(text.rfind("shmem_barrier_all (called at ", 0), 0u) << text;
    EXPECT_NE(text.find("+0x"), std::string::npos) << text;
    area.play(1);
    enter_collective({"shmem_sync", nullptr}, kWorldSegment);
    EXPECT_STREQ(awaited_call_of(1).data(), "shmem_sync");
    const std::string endless(1000, 'x');
    enter_collective({endless.c_str(), nullptr}, kWorldSegment);
    EXPECT_EQ(strlen(awaited_call_of(1).data()), base::CallText().size() - 1) << "cut, with an end";
}

// The whole of it: two PEs, as threads, in two teams in opposite orders. Told, not ended, because there are threads;
// and two further threads make it right in the end.
TEST(Circle, IsFoundByACheckedRun) {
    setenv("SHMEM_SYMMETRIC_SIZE", "1M", 1);
    setenv("HEDDLE_CHECK", "1", 1);
    testing::internal::CaptureStderr();
    test::run_pes(2, [](int pe) {
        shmem_init();
        shmem_team_t teams_of[2];
        for (shmem_team_t& team : teams_of)
            ASSERT_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, nullptr, 0, &team), 0);
        std::thread late = test::thread_of_pe([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(3500));
            shmem_team_sync(teams_of[1 - pe]);
        });
        shmem_team_sync(teams_of[pe]);
        late.join();
        shmem_finalize();
    });
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_NE(told.find("which is in shmem_team_sync"), std::string::npos) << told;
    unsetenv("HEDDLE_CHECK");
}

}  // namespace
}  // namespace heddle::team
