// The parking lot: who is woken by a relay, who finds what plain stores did, and what becomes of the napper.
#include "progress/parking_lot.h"

#include "base/counters.h"
#include "os/clock.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace heddle::progress {
namespace {

constexpr uint64_t kLongNs = 300000000000;

class ParkingLotTest : public testing::Test {
  protected:
    struct Wait {
        std::atomic<int> value{0};
        std::atomic<int> asked{0};
        std::atomic<bool> parked{false};
        int target = 1;
        std::thread thread;
    };

    ~ParkingLotTest() override {
        for (const auto& wait : waits) wait->thread.join();
    }
    static bool ask(void* it) {
        auto& wait = *static_cast<Wait*>(it);
        wait.asked.fetch_add(1, std::memory_order_relaxed);
        return wait.value.load(std::memory_order_acquire) >= wait.target;
    }
    // A wait that has lasted for so long: the napper's naps are a 16th of it.
    bool park(Wait& wait, uint64_t waited_ns, uint64_t end_ns = kLongNs) {
        const uint64_t now_ns = os::now_ns();
        return lot.park({ask, &wait, now_ns - waited_ns, now_ns + end_ns, [] { return true; }});
    }
    // A sleeper whose naps are the longest, 2 ms.
    Wait& add() {
        waits.push_back(std::make_unique<Wait>());
        Wait& wait = *waits.back();
        wait.thread = std::thread([this, &wait] {
            EXPECT_TRUE(park(wait, kLongNs));
            wait.parked.store(false, std::memory_order_release);
        });
        wait.parked.store(true, std::memory_order_relaxed);
        while (wait.asked.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
        return wait;
    }
    static uint64_t wake_ups() { return base::counters->wake_ups.read(); }
    static uint64_t vain_wake_ups() { return base::counters->vain_wake_ups.read(); }

    ParkingLot lot;
    std::vector<std::unique_ptr<Wait>> waits;
};

TEST_F(ParkingLotTest, AConditionThatHoldsIsAskedOnce) {
    Wait wait;
    wait.value = 1;
    EXPECT_TRUE(park(wait, 0));
    EXPECT_EQ(wait.asked, 1);
}

TEST_F(ParkingLotTest, TheEndIsTheSleepersOwnLook) {
    Wait wait;
    EXPECT_FALSE(park(wait, kLongNs, os::kMillisecondNs));
}

TEST_F(ParkingLotTest, TheNapperLeavesWhereItHasSomethingElseToDo) {
    Wait wait;
    const uint64_t now_ns = os::now_ns();
    EXPECT_FALSE(lot.park({ask, &wait, now_ns, now_ns + kLongNs, [] { return false; }}));
}

TEST_F(ParkingLotTest, ARelayWakesThoseWhoseConditionHoldsAndNoOthers) {
    constexpr int kSleepers = 32;
    for (int i = 0; i < kSleepers; ++i) add();
    const uint64_t before = wake_ups(), vain = vain_wake_ups();
    for (int round = 0; round < 1000; ++round) lot.relay();
    EXPECT_EQ(wake_ups(), before);
    for (int i = 0; i < kSleepers; ++i) {  // the napper is the last
        waits[static_cast<size_t>(i)]->value.store(1, std::memory_order_release);
        lot.relay();
        while (waits[static_cast<size_t>(i)]->parked.load(std::memory_order_acquire)) std::this_thread::yield();
    }
    EXPECT_LE(wake_ups(), before + kSleepers);
    EXPECT_EQ(vain_wake_ups(), vain);
}

TEST_F(ParkingLotTest, PlainStoresAreFoundWhicheverSleeperIsTheNapper) {
    constexpr int kSleepers = 16;
    for (int i = 0; i < kSleepers; ++i) add();
    std::mt19937 random(20241122);
    std::vector<size_t> order(kSleepers);
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    const uint64_t vain = vain_wake_ups();
    for (const size_t i : order) {
        waits[i]->value.store(1, std::memory_order_release);
        while (waits[i]->parked.load(std::memory_order_acquire)) std::this_thread::yield();
    }
    EXPECT_LE(vain_wake_ups(), vain + kSleepers) << "one new napper for each that leaves";
}

TEST_F(ParkingLotTest, NoneIsLeftBehindWhenManyComeAndGo) {
    constexpr int kThreads = 8, kRounds = 2000;
    std::vector<std::unique_ptr<Wait>> words;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) words.push_back(std::make_unique<Wait>());
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&, i] {
            Wait &mine = *words[static_cast<size_t>(i)], &next = *words[static_cast<size_t>((i + 1) % kThreads)];
            for (int round = 1; round <= kRounds; ++round) {
                mine.target = round;
                if (i != 0 || round != 1)
                    while (!park(mine, 0)) continue;
                next.value.store(i == kThreads - 1 ? round + 1 : round, std::memory_order_relaxed);
                lot.relay();
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < kThreads; ++i) EXPECT_GE(words[static_cast<size_t>(i)]->value, kRounds);
}

}  // namespace
}  // namespace heddle::progress
