// The deadline of a job on several hosts: read from the environment, and counted where the clocks of hosts differ.
#include "bootstrap/deadline.h"

#include <gtest/gtest.h>

namespace heddle::bootstrap {
namespace {

constexpr uint64_t kS = 1000000000, kNow = 1000 * kS;

TEST(Deadline, IsReadFromTwoNumbers) {
    const Deadline deadline = read_deadline("5000:70");
    EXPECT_TRUE(deadline.timeout_ns == 5000 && deadline.unix_ns == 70);
    for (const char* text : {"", "5000", "x:70", "5000:"}) EXPECT_EQ(read_deadline(text).timeout_ns, 0U) << text;
    EXPECT_EQ(read_deadline(nullptr).timeout_ns, 0U);
}

TEST(Deadline, IsThatOfTheClock) {
    EXPECT_EQ(time_left({60 * kS, kNow + 59 * kS}, kNow, kS / 2), 59 * kS);
    EXPECT_EQ(time_left({60 * kS, kNow + 30 * kS}, kNow, 29 * kS), 30 * kS) << "a PE that calls init late";
    EXPECT_EQ(time_left({kS, kNow}, kNow, 2 * kS), 0U);
    EXPECT_EQ(time_left({100 * kS, kNow + 40 * kS}, kNow, 0), 40 * kS) << "a process that a script begins late";
}

TEST(Deadline, IsNearThatOfTheProcessWhereAClockIsWrong) {
    EXPECT_EQ(time_left({60 * kS, kNow + 500 * kS}, kNow, kS), 59 * kS) << "this clock is slow";
    EXPECT_EQ(time_left({60 * kS, kNow - 500 * kS}, kNow, kS), 59 * kS - kMostStartNs) << "this clock is fast";
    EXPECT_EQ(time_left({5 * kS, kNow - 500 * kS}, kNow, kS), 0U);
}

}  // namespace
}  // namespace heddle::bootstrap
