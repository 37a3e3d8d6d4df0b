// The counter's rate, and that neither a long time nor a late deadline wraps.
#include "os/ticks.h"

#include "os/clock.h"

#include <gtest/gtest.h>

namespace heddle::os {
namespace {

TEST(Ticks, TheRateIsThatOfTheCounter) {
    // Over 50 ms; the clocks are read together again and again, until no interrupt came between.
    const auto both = [](uint64_t* ticks, uint64_t* ns) {
        uint64_t before;
        do {
            before = now_ns();
            *ticks = ticks_now();
            *ns = now_ns();
        } while (*ns - before > 5000);
    };
    uint64_t ticks[2], ns[2];
    both(&ticks[0], &ns[0]);
    sleep_ns(50000000);
    both(&ticks[1], &ns[1]);
    const double rate = static_cast<double>(ticks[1] - ticks[0]) / (static_cast<double>(ns[1] - ns[0]) / 1e6);
    for (int i = 0; i < 5; ++i) {
        EXPECT_NEAR(static_cast<double>(measure_ticks_per_ms()), rate, rate / 100);
    }
}

TEST(Ticks, FollowTheRate) {
    EXPECT_EQ(ticks_of_ns(1000000, 2596120), 2596120u);
    EXPECT_EQ(ticks_of_ns(1000, 2596120), 2596u);
    EXPECT_EQ(ticks_of_ns(0, 2596120), 0u);
    EXPECT_EQ(ns_of_ticks(100000, 2500000), 40000u);
    EXPECT_EQ(ns_of_ticks(UINT32_MAX, 1000), 4294967295000u);
}

TEST(Ticks, OfALongTimeAreThoseOf1000Seconds) {
    for (uint64_t rate : {1000u, 2596120u, 10000000u}) {
        EXPECT_EQ(ticks_of_ns(UINT64_MAX, rate), rate * 1000000);
        EXPECT_EQ(ticks_of_ns(1000000000001, rate), rate * 1000000);
        EXPECT_LT(ticks_of_ns(999999000000, rate), rate * 1000000);
    }
}

TEST(Ticks, ADeadlineDoesNotWrap) {
    EXPECT_EQ(deadline_after(5, 7), 12u);
    EXPECT_EQ(deadline_after(UINT64_MAX - 7, 7), UINT64_MAX);
    EXPECT_EQ(deadline_after(UINT64_MAX - 7, 8), UINT64_MAX);
    EXPECT_EQ(deadline_after(UINT64_MAX, UINT64_MAX), UINT64_MAX);
}

}  // namespace
}  // namespace heddle::os
