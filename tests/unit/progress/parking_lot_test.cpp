// The parking lot: who is woken by a relay, who finds what plain stores did, who makes progress for all, and who takes
// over from a sleeper that leaves.
#include "progress/parking_lot.h"

#include "base/counters.h"
#include "os/clock.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace heddle::progress {
namespace {

constexpr uint64_t kLongNs = 300000000000;

using Leave = ParkingLot::Leave;
using Duty = ParkingLot::Duty;

class ParkingLotTest : public testing::Test {
  protected:
    struct Wait {
        std::atomic<int> value{0};
        std::atomic<int> asked{0};
        std::atomic<bool> parked{false};
        int target = 1;
        bool for_store = true;
        std::atomic<int> progressed{0};  // how often it was to make progress
        ParkingLotTest* test = nullptr;
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
    static ParkingLot::Duty duty_of(void* it) {
        return static_cast<Wait*>(it)->test->duty.load(std::memory_order_acquire);
    }
    static bool make_progress(void* it) {
        auto& wait = *static_cast<Wait*>(it);
        wait.progressed.fetch_add(1, std::memory_order_relaxed);
        wait.test->progressed.fetch_add(1, std::memory_order_relaxed);
        return wait.test->work.exchange(false, std::memory_order_acquire);
    }
    // A wait that has lasted for so long: the napper's naps are a 16th of it.
    Leave park(Wait& wait, uint64_t waited_ns, uint64_t end_ns = kLongNs) {
        const uint64_t now_ns = os::now_ns();
        wait.test = this;
        return lot.park({.condition = ask,
                         .argument = &wait,
                         .for_store = wait.for_store,
                         .begin_ns = now_ns - waited_ns,
                         .end_ns = now_ns + end_ns,
                         .duty = duty_of,
                         .make_progress = make_progress,
                         .waiter = &wait,
                         .wakeup = &wakeup});
    }
    // A sleeper whose naps, if it has some, are the longest, 2 ms. One that has moved something parks again.
    Wait& add(bool for_store = true) {
        waits.push_back(std::make_unique<Wait>());
        Wait& wait = *waits.back();
        wait.for_store = for_store;
        wait.thread = std::thread([this, &wait] {
            while (park(wait, kLongNs) != Leave::kHeld) {
            }
            wait.parked.store(false, std::memory_order_release);
        });
        wait.parked.store(true, std::memory_order_relaxed);
        while (wait.asked.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
        return wait;
    }
    static void expect_soon(const std::function<bool()>& holds) {
        while (!holds()) std::this_thread::yield();  // ctest ends a test that hangs
    }
    void end(Wait& wait) {
        wait.value.store(1, std::memory_order_release);
        lot.relay();
        expect_soon([&] { return !wait.parked.load(std::memory_order_acquire); });
    }
    static uint64_t wake_ups() { return base::counters->wake_ups.read(); }
    static uint64_t vain_wake_ups() { return base::counters->vain_wake_ups.read(); }

    ParkingLot lot;
    sync::EventCount wakeup = {};
    std::atomic<ParkingLot::Duty> duty{ParkingLot::Duty::kNone};
    std::atomic<bool> work{false};
    std::atomic<int> progressed{0};
    std::vector<std::unique_ptr<Wait>> waits;
};

TEST_F(ParkingLotTest, AConditionThatHoldsIsAskedOnce) {
    Wait wait;
    wait.value = 1;
    EXPECT_EQ(park(wait, 0), Leave::kHeld);
    EXPECT_EQ(wait.asked, 1);
}

TEST_F(ParkingLotTest, TheEndIsTheSleepersOwnLook) {
    Wait wait;
    EXPECT_EQ(park(wait, kLongNs, os::kMillisecondNs), Leave::kEnd);
}

TEST_F(ParkingLotTest, ASleeperThatHasMovedSomethingLeaves) {
    for (const Duty each : {Duty::kDrive, Duty::kPoll}) {
        Wait wait;
        duty = each;
        work = true;
        EXPECT_EQ(park(wait, kLongNs), Leave::kMoved);
        EXPECT_EQ(wait.progressed, 1);
    }
}

TEST_F(ParkingLotTest, ASleeperWhomNoPlainStoreConcernsTakesNoNaps) {
    for (int i = 0; i < 4; ++i) add(false);
    os::sleep_ns(50 * os::kMillisecondNs);
    for (const auto& wait : waits) EXPECT_EQ(wait->asked, 1);
    const uint64_t vain = vain_wake_ups();
    for (const auto& wait : waits) end(*wait);
    EXPECT_EQ(vain_wake_ups(), vain) << "nobody takes over where there is nothing to do";
}

TEST_F(ParkingLotTest, OneSleeperMakesProgressForAll) {
    constexpr int kSleepers = 16, kAdvances = 500;
    duty = Duty::kDrive;
    for (int i = 0; i < kSleepers; ++i) add(false);
    expect_soon([&] { return wakeup.sleepers == 1; });
    const int before = progressed, of_first = waits.front()->progressed;
    for (int i = 0; i < kAdvances; ++i) wakeup.advance();
    expect_soon([&] { return progressed > before && wakeup.sleepers == 1; });
    EXPECT_LE(progressed, before + kAdvances + 1);
    EXPECT_EQ(waits.front()->progressed - of_first, progressed - before);
    for (const auto& wait : waits) end(*wait);
}

TEST_F(ParkingLotTest, ASleeperAtTheWakeupIsWokenByItsConditionAndAnotherOneTakesOver) {
    duty = Duty::kDrive;
    for (int i = 0; i < 8; ++i) add(false);
    for (const auto& wait : waits) {
        expect_soon([&] { return wakeup.sleepers == 1 && wait->progressed > 0; });
        end(*wait);
    }
    EXPECT_EQ(wakeup.sleepers, 0u);
}

TEST_F(ParkingLotTest, ADutyThatBeginsFindsASleeper) {
    for (int i = 0; i < 4; ++i) add(false);
    for (int round = 1; round <= 20; ++round) {
        const int before = progressed;
        duty.store(round % 2 ? Duty::kDrive : Duty::kPoll, std::memory_order_release);
        lot.call();
        expect_soon([&] { return progressed > before; });
        duty.store(Duty::kNone, std::memory_order_release);
        wakeup.advance();
        expect_soon([&] { return wakeup.sleepers == 0; });
    }
    for (const auto& wait : waits) end(*wait);
}

// As many as are called make progress, whoever has the duty, and one that moves something leaves.
TEST_F(ParkingLotTest, ThoseThatAreCalledToWorkMakeProgress) {
    for (const Duty each : {Duty::kNone, Duty::kDrive}) {
        duty = each;
        for (int i = 0; i < 4; ++i) add(false);
        const auto of_last = [&](size_t i) -> Wait& { return *waits[waits.size() - 4 + i]; };
        const auto have_worked = [&](const std::vector<int>& before) {
            int count = 0;
            for (size_t i = 0; i < 4; ++i) count += of_last(i).progressed > before[i];
            return count;
        };
        const auto counts = [&] {
            std::vector<int> of_each;
            for (size_t i = 0; i < 4; ++i) of_each.push_back(of_last(i).progressed);
            return of_each;
        };
        if (each == Duty::kDrive)
            expect_soon([&] { return wakeup.sleepers == 1; });
        std::vector<int> before = counts();
        lot.call_to_work(3);
        expect_soon([&] { return have_worked(before) >= 3; });
        EXPECT_EQ(have_worked(before), 3);
        before = counts();
        work = true;
        expect_soon([&] {  // those of before may not be asleep again yet
            lot.call_to_work(4);
            return have_worked(before) == 4 && !work;
        });
        for (size_t i = 0; i < 4; ++i) end(of_last(i));
    }
}

TEST_F(ParkingLotTest, ASleeperThatMakesProgressNapsForPlainStores) {
    add(true);
    duty = Duty::kDrive;
    add(false);
    expect_soon([&] { return progressed > 0; });  // by either: the first may not have settled before it has a duty
    waits[0]->value.store(1, std::memory_order_release);
    expect_soon([&] { return !waits[0]->parked.load(std::memory_order_acquire); });
    end(*waits[1]);
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
                    while (park(mine, 0) != Leave::kHeld) continue;
                next.value.store(i == kThreads - 1 ? round + 1 : round, std::memory_order_relaxed);
                lot.relay();
            }
        });
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < kThreads; ++i) EXPECT_GE(words[static_cast<size_t>(i)]->value, kRounds);
}

}  // namespace
}  // namespace heddle::progress
