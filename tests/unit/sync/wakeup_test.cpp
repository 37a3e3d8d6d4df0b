// PeWakeups: who watches an event count hears when it opens, and nobody else is bothered. What every interleaving does
// is the subject of tests/model/wakeup.pml; this runs the real thing.
#include "sync/wakeup.h"
#include "os/clock.h"
#include "os/pause.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace heddle::sync {
namespace {

constexpr uint64_t kLostNs = 300ull * 1000000000;  // a sleep this long means that a ring was lost

uint32_t watches_of(const PeWakeup& wakeup) {
    uint64_t sum = 0;
    for (const std::atomic<uint64_t>& place : wakeup.watched) sum += place.load();
    return static_cast<uint32_t>(sum / PeWakeup::kOneWatch);
}

// The wake-ups of a node with three PEs; this thread is one of the first's.
class WakeupTest : public testing::Test {
  protected:
    static constexpr int kPes = 3;

    WakeupTest() { play(0); }
    ~WakeupTest() override { wakeups = {}; }

    // The calling thread is of that PE.
    void play(int pe) { wakeups = {shared, kPes, &shared[pe]}; }
    // How often each has rung.
    std::vector<uint32_t> rung() const {
        std::vector<uint32_t> counts;
        for (const PeWakeup& wakeup : shared) counts.push_back(wakeup.event_count.value.load());
        return counts;
    }
    using Counts = std::vector<uint32_t>;
    // How many event counts each watches.
    Counts watched() const {
        Counts counts;
        for (const PeWakeup& wakeup : shared) counts.push_back(watches_of(wakeup));
        return counts;
    }

    PeWakeup shared[kPes] = {};
    EventCount event_count = {}, other = {};
};

TEST_F(WakeupTest, RingsWhileItsPeWatchesAndNotBehind) {
    event_count.advance_to(1);
    EXPECT_EQ(rung(), (Counts{0, 0, 0}));
    {
        const Watch watch(event_count);
        EXPECT_EQ(event_count.sleepers, kWatcher);
        EXPECT_EQ(watched(), (Counts{1, 0, 0}));
        event_count.advance_to(2);
        EXPECT_EQ(rung(), (Counts{1, 0, 0}));
        event_count.advance();
        EXPECT_EQ(rung(), (Counts{2, 0, 0}));
        event_count.set(4);
        EXPECT_EQ(rung(), (Counts{2, 0, 0})) << "half of opening";
        event_count.wake();
        EXPECT_EQ(rung(), (Counts{3, 0, 0}));
    }
    EXPECT_EQ(event_count.sleepers, 0u);
    EXPECT_EQ(watched(), (Counts{0, 0, 0}));
    event_count.advance_to(5);
    event_count.advance();
    event_count.set(7);
    event_count.wake();
    EXPECT_EQ(rung(), (Counts{3, 0, 0}));
}

TEST_F(WakeupTest, OnlyPesThatWatchTheEventCountHear) {
    play(1);
    const Watch first(event_count);
    play(2);
    const Watch second(event_count), third(other);
    play(0);  // who opens is of any PE
    event_count.advance_to(1);
    EXPECT_EQ(rung(), (Counts{0, 1, 1}));
    EXPECT_EQ(watched(), (Counts{0, 1, 2}));
    other.advance_to(1);
    EXPECT_EQ(rung(), (Counts{0, 1, 2}));
}

TEST_F(WakeupTest, PesThatWatchedTheEventCountOnceDoNotHear) {
    for (int pe : {1, 2}) {
        play(pe);
        const Watch watch(event_count);
    }
    EXPECT_NE(event_count.watchers, 0u);
    play(2);
    const Watch another(other);
    play(0);
    const Watch watch(event_count);
    event_count.advance_to(1);
    EXPECT_EQ(rung(), (Counts{1, 0, 0}));
}

// So many event counts that several share a place in the wake-up, whatever their names.
TEST_F(WakeupTest, NoneOfManyWatchesIsForgotten) {
    constexpr size_t kEventCounts = 3 * PeWakeup::kPlaces;
    std::vector<EventCount> event_counts(kEventCounts);
    std::vector<std::unique_ptr<Watch>> watches;
    const uint32_t seed = std::random_device{}();
    printf("seed %u\n", seed);
    std::mt19937 random(seed);
    std::vector<size_t> order(kEventCounts);
    for (size_t i = 0; i < kEventCounts; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    play(1);
    for (size_t i : order) watches.push_back(std::make_unique<Watch>(event_counts[i]));
    EXPECT_EQ(watched(), (Counts{0, kEventCounts, 0}));
    uint32_t opened = 0;
    while (!watches.empty()) {
        event_counts[order[watches.size() - 1]].advance_to(1);
        EXPECT_EQ(rung(), (Counts{0, ++opened, 0}));
        watches.pop_back();
    }
    EXPECT_EQ(watched(), (Counts{0, 0, 0}));
    for (EventCount& one : event_counts) one.advance_to(2);
    EXPECT_EQ(rung(), (Counts{0, opened, 0}));
}

TEST_F(WakeupTest, EachOfMoreThan64PesHearsWhatItWatchesAlone) {
    constexpr size_t kMany = 300;
    const auto many = std::make_unique<PeWakeup[]>(kMany);
    std::vector<EventCount> event_counts(kMany);
    const auto watch_each = [&](auto event_count_of) {
        std::vector<std::unique_ptr<Watch>> watches;
        for (size_t pe = 0; pe < kMany; ++pe) {
            wakeups = {many.get(), kMany, &many[pe]};
            watches.push_back(std::make_unique<Watch>(event_count_of(pe)));
        }
        return watches;
    };
    const auto rings = [&] {
        Counts counts;
        for (size_t pe = 0; pe < kMany; ++pe) counts.push_back(many[pe].event_count.value.load());
        return counts;
    };
    Counts right(kMany, 1);
    {
        const auto watches = watch_each([&](size_t) -> EventCount& { return event_count; });
        event_count.advance_to(1);
        EXPECT_EQ(rings(), right);
    }
    const auto watches = watch_each([&](size_t pe) -> EventCount& { return event_counts[pe]; });
    event_count.advance_to(2);
    for (size_t pe = 0; pe < kMany; ++pe) {
        event_counts[pe].advance_to(1);
        ++right[pe];
        EXPECT_EQ(rings(), right);
    }
}

TEST_F(WakeupTest, AEventCountThatNobodyWatchesRingsNoWakeupAlthoughOthersAreWatched) {
    const Watch watch(other);
    for (uint32_t i = 1; i <= 10; ++i) event_count.advance_to(i);
    EXPECT_EQ(rung(), (Counts{0, 0, 0}));
    EXPECT_EQ(event_count.sleepers, 0u);
}

TEST_F(WakeupTest, AWakeupItselfIsNotWatched) {
    EventCount& wakeup = wakeups.own->event_count;
    {
        const Watch watch(wakeup);
        EXPECT_EQ(wakeup.sleepers, 0u);
        EXPECT_EQ(watched(), (Counts{0, 0, 0}));
        wakeup.advance();
        EXPECT_EQ(rung(), (Counts{1, 0, 0})) << "once, not for ever";
    }
    EXPECT_EQ(wakeup.sleepers, 0u);
    EXPECT_EQ(watched(), (Counts{0, 0, 0}));
}

TEST_F(WakeupTest, AWatchEndsOnAnyThreadOfItsPe) {
    auto watch = std::make_unique<Watch>(event_count);
    std::thread([&] { watch.reset(); }).join();  // a fiber may go on there
    EXPECT_EQ(event_count.sleepers, 0u);
    EXPECT_EQ(watched(), (Counts{0, 0, 0}));
}

// Sleeps until the event count is open, at the own wake-up; false when no ring came.
bool sleep_at_wakeup_until(EventCount& event_count, uint32_t target) {
    const timespec deadline = os::to_timespec(os::now_ns() + kLostNs);
    const Watch watch(event_count);
    for (;;) {
        EventCount& wakeup = wakeups.own->event_count;
        const uint32_t heard = wakeup.value.load(std::memory_order_seq_cst);
        if (event_count.reached(target))
            return true;
        const uint64_t begin = os::now_ns();
        wakeup.sleep(heard + 1, &deadline);
        if (os::now_ns() - begin >= kLostNs)
            return false;
    }
}

bool sleep_at_event_count_until(EventCount& event_count, uint32_t target) {
    const timespec deadline = os::to_timespec(os::now_ns() + kLostNs);
    while (!event_count.reached(target)) {
        const uint64_t begin = os::now_ns();
        event_count.sleep(target, &deadline);
        if (os::now_ns() - begin >= kLostNs)
            return false;
    }
    return true;
}

TEST_F(WakeupTest, SleepersOfBothKindsAreWokenAtAnyMoment) {
    constexpr uint32_t kRounds = 3000;
    const uint32_t seed = std::random_device{}();
    printf("seed %u\n", seed);
    EventCount answers[4] = {};
    std::atomic<int> lost{0};
    std::vector<std::thread> sleepers;
    for (int i = 0; i < 4; ++i)
        sleepers.emplace_back([&, i] {
            play(i % kPes);
            for (uint32_t round = 1; round <= kRounds; ++round) {
                if (!(i % 2 == 0 ? sleep_at_wakeup_until(event_count, round)
                                 : sleep_at_event_count_until(event_count, round)))
                    lost.fetch_add(1);
                answers[i].advance_to(round);
            }
        });
    std::mt19937 random(seed);
    for (uint32_t round = 1; round <= kRounds; ++round) {
        for (uint32_t i = random() % 300; i > 0; --i) os::pause();
        if (random() % 2 == 0) {
            event_count.advance_to(round);
        } else {
            event_count.set(round);
            event_count.wake();
        }
        for (EventCount& answer : answers)
            if (!sleep_at_event_count_until(answer, round))
                lost.fetch_add(1);
    }
    for (std::thread& sleeper : sleepers) sleeper.join();
    EXPECT_EQ(lost, 0) << "seed " << seed;
    EXPECT_EQ(event_count.sleepers, 0u);
    EXPECT_EQ(watched(), (Counts{0, 0, 0}));
}

TEST_F(WakeupTest, ProcessesHearEachOther) {
    constexpr uint32_t kRounds = 5000;
    struct Node {
        PeWakeup wakeups[2];
        alignas(128) EventCount turn[2];
    };
    auto* const node =
        static_cast<Node*>(mmap(nullptr, sizeof(Node), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(node, MAP_FAILED);
    const auto play_ping_pong = [&](int me) {
        wakeups = {node->wakeups, 2, &node->wakeups[me]};
        for (uint32_t i = 1; i <= kRounds; ++i) {
            if (me == 0)
                node->turn[0].advance_to(i);
            if (!sleep_at_wakeup_until(node->turn[1 - me], i))
                return false;
            if (me == 1)
                node->turn[1].advance_to(i);
        }
        return true;
    };
    const pid_t child = fork();
    if (child == 0)
        _exit(play_ping_pong(1) ? 0 : 1);
    EXPECT_TRUE(play_ping_pong(0));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    munmap(node, sizeof(Node));
}

}  // namespace
}  // namespace heddle::sync
