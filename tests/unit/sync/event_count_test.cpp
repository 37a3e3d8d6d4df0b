// Event count: no wake is lost, between threads and between processes, and the count may wrap. What every interleaving
// does is the subject of tests/model/event_count.pml; this runs the real thing.
#include "sync/event_count.h"
#include "os/clock.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <thread>
#include <vector>

namespace heddle::sync {
namespace {

constexpr uint64_t kLostWakeNs = 300ull * 1000000000;  // a sleep this long means that the wake was lost

// Sleeps, without spinning, until event count reaches target; false when no wake came.
bool sleep_until(EventCount& event_count, uint32_t target) {
    const timespec deadline = os::to_timespec(os::now_ns() + kLostWakeNs);
    while (!event_count.reached(target)) {
        const uint64_t begin = os::now_ns();
        event_count.sleep(target, &deadline);
        if (os::now_ns() - begin >= kLostWakeNs)
            return false;
    }
    return true;
}

// Two sides that hand each other the turn: mine says how far I am, theirs how far the other is.
bool ping_pong(EventCount& mine, EventCount& theirs, uint32_t from, uint32_t rounds, bool first) {
    for (uint32_t i = 1; i <= rounds; ++i) {
        if (first)
            mine.advance_to(from + i);
        if (!sleep_until(theirs, from + i))
            return false;
        if (!first)
            mine.advance_to(from + i);
    }
    return true;
}

TEST(EventCount, WrapsAround) {
    EventCount event_count = {};
    event_count.advance_to(0xfffffffe);
    EXPECT_TRUE(event_count.reached(0xfffffffe));
    EXPECT_TRUE(event_count.reached(0xfffffff0));
    EXPECT_FALSE(event_count.reached(0xffffffff));
    EXPECT_FALSE(event_count.reached(0));
    EXPECT_FALSE(event_count.reached(5));
    event_count.advance_to(0);
    EXPECT_TRUE(event_count.reached(0xffffffff));
    EXPECT_TRUE(event_count.reached(0));
    EXPECT_FALSE(event_count.reached(1));
    event_count.sleep(0xffffffff, nullptr);  // reached: must not sleep
    event_count.sleep(0, nullptr);
    EXPECT_EQ(event_count.sleepers.load(), 0u);
}

TEST(EventCount, SleepEndsAtTheDeadline) {
    EventCount event_count = {};
    const uint64_t begin = os::now_ns();
    const timespec deadline = os::to_timespec(begin + 20000000);
    event_count.sleep(1, &deadline);
    EXPECT_GE(os::now_ns() - begin, 20000000u);
    EXPECT_FALSE(event_count.reached(1));
    EXPECT_EQ(event_count.sleepers.load(), 0u);
}

TEST(EventCount, ThreadsNeverLoseAWake) {
    constexpr uint32_t kFrom = 0xffffff00, kRounds = 20000;  // across the wrap
    EventCount left = {}, right = {};
    left.value.store(kFrom);
    right.value.store(kFrom);
    bool other_good = false;
    std::thread other([&] { other_good = ping_pong(right, left, kFrom, kRounds, false); });
    EXPECT_TRUE(ping_pong(left, right, kFrom, kRounds, true));
    other.join();
    EXPECT_TRUE(other_good);
    EXPECT_EQ(left.sleepers.load() | right.sleepers.load(), 0u);
}

// The same with open in its two halves.
TEST(EventCount, SetAndWakeNeverLoseAWake) {
    constexpr uint32_t kRounds = 20000;
    EventCount left = {}, right = {};
    const auto play = [](EventCount& mine, EventCount& theirs, bool first) {
        for (uint32_t i = 1; i <= kRounds; ++i) {
            if (!first && !sleep_until(theirs, i))
                return false;
            mine.set(i);
            if (i % 16 == 0)
                std::this_thread::yield();
            mine.wake();
            if (first && !sleep_until(theirs, i))
                return false;
        }
        return true;
    };
    bool other_good = false;
    std::thread other([&] { other_good = play(right, left, false); });
    EXPECT_TRUE(play(left, right, true));
    other.join();
    EXPECT_TRUE(other_good);
    EXPECT_EQ(left.sleepers.load() | right.sleepers.load(), 0u);
}

TEST(EventCount, ManySleepersNeverLoseAWake) {
    constexpr int kSleepers = 4;
    constexpr uint32_t kRounds = 3000;
    EventCount event_count = {}, answers[kSleepers] = {};
    std::vector<std::thread> sleepers;
    std::atomic<int> lost{0};
    for (EventCount& answer : answers) {
        sleepers.emplace_back([&] {
            for (uint32_t i = 1; i <= kRounds; ++i) {
                if (!sleep_until(event_count, i))
                    lost.fetch_add(1);
                answer.advance_to(i);
            }
        });
    }
    for (uint32_t i = 1; i <= kRounds; ++i) {
        event_count.advance_to(i);
        for (EventCount& answer : answers)
            if (!sleep_until(answer, i))
                lost.fetch_add(1);
    }
    for (std::thread& sleeper : sleepers) sleeper.join();
    EXPECT_EQ(lost.load(), 0);
}

TEST(EventCount, ProcessesNeverLoseAWake) {
    constexpr uint32_t kRounds = 20000;
    void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    EventCount* event_counts = static_cast<EventCount*>(shared);
    const pid_t child = fork();
    if (child == 0)
        _exit(ping_pong(event_counts[1], event_counts[0], 0, kRounds, false) ? 0 : 1);
    EXPECT_TRUE(ping_pong(event_counts[0], event_counts[1], 0, kRounds, true));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace heddle::sync
