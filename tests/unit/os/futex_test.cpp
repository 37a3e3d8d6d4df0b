// Futex: deadlines, changed words, wakes.
#include "os/futex.h"
#include "os/clock.h"

#include <gtest/gtest.h>
#include <thread>

namespace heddle::os {
namespace {

constexpr uint64_t kMs = 1000000;

TEST(Futex, ReturnsAtTheDeadlineAndNotBefore) {
    std::atomic<uint32_t> word{7};
    const uint64_t begin = now_ns();
    const timespec deadline = to_timespec(begin + 30 * kMs);
    futex_wait(&word, 7, &deadline);
    const uint64_t waited = now_ns() - begin;
    EXPECT_GE(waited, 30 * kMs);
    EXPECT_LT(waited, 5000 * kMs);
}

TEST(Futex, ReturnsAtOnceWhenTheDeadlineHasPassed) {
    std::atomic<uint32_t> word{7};
    const timespec deadline = to_timespec(now_ns() - kMs);
    futex_wait(&word, 7, &deadline);
}

TEST(Futex, ReturnsAtOnceWhenTheWordDiffers) {
    std::atomic<uint32_t> word{7};
    futex_wait(&word, 8, nullptr);  // a hang is the failure
}

TEST(Futex, WakesAllSleepers) {
    std::atomic<uint32_t> word{0}, awake{0};
    std::thread sleepers[3];
    for (std::thread& sleeper : sleepers) {
        sleeper = std::thread([&] {
            while (word.load() == 0) futex_wait(&word, 0, nullptr);
            awake.fetch_add(1);
        });
    }
    sleep_ns(20 * kMs);
    EXPECT_EQ(awake.load(), 0u);
    word.store(1);
    futex_wake_all(&word);
    for (std::thread& sleeper : sleepers) sleeper.join();
    EXPECT_EQ(awake.load(), 3u);
}

TEST(Clock, MovesForwardAndSleepsLongEnough) {
    const uint64_t begin = now_ns();
    sleep_ns(5 * kMs);
    EXPECT_GE(now_ns() - begin, 5 * kMs);
    const timespec time = to_timespec(3 * 1000000000ull + 17);
    EXPECT_EQ(time.tv_sec, 3);
    EXPECT_EQ(time.tv_nsec, 17);
}

}  // namespace
}  // namespace heddle::os
