// The monitors' real code, its instructions carried out by tests/support/monitor_emulation.h, and the wait policy above
// it: what is armed, with which operands it waits, and what ends a wait.
#include "os/clock.h"
#include "os/monitor_wait.h"
#include "os/ticks.h"
#include "progress/wait_policy.h"
#include "support/monitor_emulation.h"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace heddle {
namespace {

using test::Ended;
using test::Instruction;
using test::Wait;

constexpr uint64_t kUs = 1000, kMs = 1000 * kUs, kS = 1000 * kMs;

constexpr uint64_t kNoState = ~uint64_t{0};

struct Backend {
    const char* name;
    os::MonitorChoice choice;
    Instruction arm, wait;
    uint64_t light, deep;  // the states it rests in
};

void PrintTo(const Backend& backend, std::ostream* out) {
    *out << backend.name;
}

class MonitorTest : public testing::TestWithParam<Backend> {
  protected:
    void SetUp() override {
        monitor = os::find_monitor(GetParam().choice);
        ASSERT_NE(monitor, nullptr);
        test::emulate(*monitor);
        test::cap_ticks = takes_limit() ? 0 : ticks(100 * kUs);
        test::waits_of_this_thread() = {};
    }

    bool takes_limit() const { return strcmp(monitor->name, "wfe") != 0; }
    static uint64_t ticks(uint64_t ns) {
        static const uint64_t rate = os::measure_ticks_per_ms();
        return os::ticks_of_ns(ns, rate);
    }
    // A wait of that limit on the line, as it was carried out.
    Wait waited(uint64_t limit_ns) {
        monitor->arm(&line.words[1]);
        monitor->wait(limit_ns);
        return test::waits_of_this_thread().last;
    }
    // The same while another thread changes the line after a while.
    Wait waited_until_changed(uint64_t limit_ns) {
        std::thread other([this] {
            os::sleep_ns(20 * kMs);
            changed_at = os::ticks_now();
            line.words[6].store(7, std::memory_order_release);
        });
        const Wait wait = waited(limit_ns);
        other.join();
        line.words[6].store(0, std::memory_order_relaxed);
        return wait;
    }
    // That the wait's limit was ns, give or take the counter's rate; not_before: when the call began.
    void expect_limit(const Wait& wait, uint64_t ns, uint64_t not_before) const {
        const uint64_t wanted = ticks(ns);
        if (wait.waited_with == Instruction::kMwaitx) {
            EXPECT_NEAR(static_cast<double>(wait.limit), static_cast<double>(wanted), static_cast<double>(wanted) / 50);
        } else {
            EXPECT_EQ(wait.limit, wait.deadline);
            EXPECT_GE(wait.limit, not_before + wanted - wanted / 50);
            EXPECT_LE(wait.limit, wait.begin + wanted + wanted / 50);
        }
    }

    struct alignas(64) Line {
        std::atomic<uint64_t> words[8];
    };
    const os::Monitor* monitor = nullptr;
    Line line = {};
    uint64_t changed_at = 0;
};

TEST_P(MonitorTest, ArmsTheLineAndWaitsWithItsInstructions) {
    EXPECT_STREQ(monitor->name, GetParam().name);
    EXPECT_EQ(test::first_instruction(reinterpret_cast<const void*>(monitor->arm)).what, GetParam().arm);
    EXPECT_EQ(test::first_instruction(reinterpret_cast<const void*>(monitor->wait)).what, GetParam().wait);
    const Wait wait = waited(5 * kUs);
    EXPECT_EQ(test::waits_of_this_thread().count, 1u);
    EXPECT_EQ(wait.armed_with, GetParam().arm);
    EXPECT_EQ(wait.waited_with, GetParam().wait);
    EXPECT_EQ(wait.address, reinterpret_cast<uintptr_t>(&line.words[1]));
}

TEST_P(MonitorTest, AnyAddressCanBeWatched) {
    for (size_t offset : {1, 2, 6, 63}) {
        const char* address = reinterpret_cast<const char*>(&line) + offset;
        monitor->arm(address);
        monitor->wait(kUs);
        EXPECT_EQ(test::waits_of_this_thread().last.address, reinterpret_cast<uintptr_t>(address));
    }
}

TEST_P(MonitorTest, ALimitIsThatManyTicks) {
    if (!takes_limit())
        GTEST_SKIP() << "WFE takes no limit";
    for (uint64_t ns : {2 * kUs, 10 * kUs, 11 * kUs, 200 * kUs, 3 * kMs}) {
        const uint64_t before = os::ticks_now();
        const Wait wait = waited(ns);
        expect_limit(wait, ns, before);
        EXPECT_EQ(wait.ended, Ended::kDeadline);
        EXPECT_GE(wait.end, wait.deadline);
    }
}

TEST_P(MonitorTest, ALongLimitRestsDeeper) {
    if (GetParam().light == kNoState)
        GTEST_SKIP() << "this architecture has one state";
    EXPECT_EQ(waited(0).state, GetParam().light);
    EXPECT_EQ(waited(kUs).state, GetParam().light);
    EXPECT_EQ(waited(10 * kUs).state, GetParam().light);
    EXPECT_EQ(waited(10 * kUs + 1).state, GetParam().deep);
    EXPECT_EQ(waited(kMs).state, GetParam().deep);
}

TEST_P(MonitorTest, NoLimitIsTakenForNone) {
    if (!takes_limit())
        GTEST_SKIP() << "WFE takes no limit";
    const Wait wait = waited(0);
    EXPECT_EQ(wait.ended, Ended::kDeadline);
    EXPECT_LE(wait.deadline, wait.begin + 1);
    if (wait.waited_with == Instruction::kMwaitx) {
        EXPECT_EQ(wait.limit, 1u) << "0 is no limit";
        EXPECT_EQ(wait.options, 2u) << "the timer is not on";
    }
}

TEST_P(MonitorTest, LongLimitsDoNotWrap) {
    if (!takes_limit())
        GTEST_SKIP() << "WFE takes no limit";
    for (uint64_t limit_ns : {2 * kS, 5 * kS, 1000 * kS, uint64_t{1} << 63, UINT64_MAX}) {
        const uint64_t before = os::ticks_now();
        const Wait wait = waited_until_changed(limit_ns);
        EXPECT_EQ(wait.ended, Ended::kLineChanged);
        if (wait.waited_with == Instruction::kMwaitx) {
            // The library has measured the rate of ticks itself.
            const auto wanted = static_cast<double>(std::min<uint64_t>(ticks(limit_ns), UINT32_MAX));
            EXPECT_NEAR(static_cast<double>(wait.limit), wanted, wanted / 50) << limit_ns << " ns";
        } else {
            expect_limit(wait, std::min(limit_ns, 1000 * kS), before);
        }
    }
}

TEST_P(MonitorTest, AChangeEndsTheWait) {
    if (!takes_limit())
        test::cap_ticks = ticks(100 * kS);
    const Wait wait = waited_until_changed(100 * kS);
    EXPECT_EQ(wait.ended, Ended::kLineChanged);
    EXPECT_GE(wait.end, changed_at);
    EXPECT_LT(wait.end, wait.deadline);
}

TEST_P(MonitorTest, AChangeAheadOfTheWaitEndsItAtOnce) {
    monitor->arm(&line.words[1]);
    line.words[0].store(1, std::memory_order_relaxed);
    monitor->wait(1000 * kS);
    EXPECT_EQ(test::waits_of_this_thread().last.ended, Ended::kLineChanged);
}

TEST_P(MonitorTest, AWaitThatIsNotArmedIsNone) {
    monitor->wait(1000 * kS);
    EXPECT_EQ(test::waits_of_this_thread().last.ended, Ended::kNotArmed);
    waited(kUs);
    monitor->wait(1000 * kS);
    EXPECT_EQ(test::waits_of_this_thread().last.ended, Ended::kNotArmed) << "one arm did for two waits";
}

TEST_P(MonitorTest, TellsWhenTheKernelOrTheTimerEndsAWait) {
    const std::string name = monitor->name;
    if (name == "umwait") {
        test::cap_ticks = test::kKernelsCapTicks;
        const Wait wait = waited(kS);
        EXPECT_EQ(wait.ended, Ended::kCap);
        EXPECT_EQ(wait.flags & 0x8d5, 1u) << "the carry flag tells";
        EXPECT_NEAR(static_cast<double>(ticks(monitor->longest_ns)), test::kKernelsCapTicks,
                    test::kKernelsCapTicks / 50.0);
        EXPECT_STREQ(monitor->states, "C0.1 and C0.2");
    } else if (name == "mwaitx") {
        EXPECT_NEAR(static_cast<double>(ticks(monitor->longest_ns)), UINT32_MAX, UINT32_MAX / 50.0);
    } else {
        EXPECT_EQ(monitor->longest_ns, 100 * kUs);
    }
}

// Two threads that wait for each other by turns, so that stores come at all points between arm and wait. Returns the
// event count that this thread waited at.
const sync::EventCount* take_turns(progress::WaitPolicy& policy, uint32_t turns) {
    struct alignas(64) OnItsLine {
        sync::EventCount event_count = {};
    };
    static OnItsLine there, back;
    there.event_count.value = back.event_count.value = 0;
    std::thread other([&] {
        progress::wait_policy = &policy;
        for (uint32_t turn = 1; turn <= turns; ++turn) {
            progress::wait_for_event_count("unit", there.event_count, turn);
            back.event_count.advance_to(turn);
        }
        progress::wait_policy = nullptr;
    });
    for (uint32_t turn = 1; turn <= turns; ++turn) {
        there.event_count.advance_to(turn);
        progress::wait_for_event_count("unit", back.event_count, turn);
    }
    other.join();
    return &back.event_count;
}

// The policy above: WaitSteps on the thread that calls.
class WatchingTest : public MonitorTest {
  protected:
    void SetUp() override {
        MonitorTest::SetUp();
        test::cap_ticks = test::kKernelsCapTicks;  // of the virtual counter, too, a short time or a long one
        policy.monitor = monitor;
        policy.own_cores = 1000;
        policy.oversubscribed_ns = 0;
        progress::wait_policy = &policy;
    }
    void TearDown() override { progress::wait_policy = nullptr; }

    progress::WaitPolicy policy;
};

TEST_P(WatchingTest, AStoreIsSeen) {
    policy.spin_ns = 100 * kS;
    std::thread other([this] {
        os::sleep_ns(20 * kMs);
        line.words[3].store(5, std::memory_order_release);
    });
    progress::wait_for_store("unit", &line.words[3],
                             [this] { return line.words[3].load(std::memory_order_acquire) == 5; });
    other.join();
    EXPECT_GT(test::waits_of_this_thread().count, 0u);
    EXPECT_EQ(test::waits_of_this_thread().last.address, reinterpret_cast<uintptr_t>(&line.words[3]));
}

TEST_P(WatchingTest, EventCountsAreWatchedByTurns) {
    policy.spin_ns = 100 * kS;
    const sync::EventCount* last = take_turns(policy, 2000);
    EXPECT_GT(test::waits_of_this_thread().count, 0u);
    EXPECT_EQ(test::waits_of_this_thread().last.address, reinterpret_cast<uintptr_t>(last));
}

TEST_P(WatchingTest, AChangeBetweenArmAndWaitIsSeen) {
    policy.spin_ns = 100 * kS;
    test::cap_ticks = 0;  // nothing else would end the wait
    int looks = 0;
    progress::wait_for_store("unit", &line.words[3], [&] {
        // The third look comes after the line is armed, and sees it as it was before it changes.
        const bool changed = line.words[3].load(std::memory_order_acquire) == 5;
        if (++looks == 3)
            line.words[3].store(5, std::memory_order_release);
        return changed;
    });
    EXPECT_EQ(looks, 4);
    EXPECT_EQ(test::waits_of_this_thread().count, 1u);
    EXPECT_EQ(test::waits_of_this_thread().last.ended, Ended::kLineChanged);
}

TEST_P(WatchingTest, NoWaitOutlastsThePhase) {
    policy.spin_ns = 400 * kMs;
    policy.yield_ns = 0;
    if (takes_limit())
        test::cap_ticks = 0;
    const uint64_t begin = os::ticks_now(), begin_ns = os::now_ns();
    progress::wait_for_store("unit", &line, [&] { return os::now_ns() - begin_ns > policy.spin_ns; });
    const auto& waits = test::waits_of_this_thread();
    EXPECT_GT(waits.count, 3u) << "no short waits first";
    if (takes_limit()) {
        EXPECT_LT(waits.count, 40u) << "no long waits later";
        EXPECT_GT(waits.latest_deadline, begin + ticks(policy.spin_ns) / 2);
        // Half as much again is for a busy machine, which stops threads between two readings of the clock.
        EXPECT_LT(waits.latest_deadline, begin + ticks(policy.spin_ns) * 3 / 2);
    }
}

#if defined(__x86_64__)
const Backend kBackends[] = {
    {"umwait", os::MonitorChoice::kUmwait, Instruction::kUmonitor, Instruction::kUmwait, 1, 0},
    {"mwaitx", os::MonitorChoice::kMwaitx, Instruction::kMonitorx, Instruction::kMwaitx, 0xf0, 0},
};
#elif defined(__aarch64__)
// As the CPU, or qemu, carries it out; in a process of its own, before any of the others.
TEST(NativeWfe, Runs) {
    const os::Monitor* monitor = os::find_monitor(os::MonitorChoice::kWfe);
    ASSERT_STREQ(monitor->name, "wfe");
    alignas(64) char line[64] = {};
    for (const char& any : line) {
        monitor->arm(&any);
        monitor->wait(kUs);
    }
    progress::WaitPolicy policy;
    policy.monitor = monitor;
    policy.own_cores = 1000;
    policy.spin_ns = 100 * kS;
    progress::wait_policy = &policy;
    take_turns(policy, 2000);
    progress::wait_policy = nullptr;
    EXPECT_EQ(test::waits_of_this_thread().count, 0u) << "emulated";
}

const bool has_wfet = !getenv("HEDDLE_TEST_NO_WFET");
const Backend kBackends[] = {
    {has_wfet ? "wfet" : "wfe", os::MonitorChoice::kWfe, Instruction::kLdaxrb,
     has_wfet ? Instruction::kWfet : Instruction::kWfe, kNoState, kNoState},
};
#endif

const auto name_of = [](const auto& parameters) { return std::string(parameters.param.name); };
INSTANTIATE_TEST_SUITE_P(Backends, MonitorTest, testing::ValuesIn(kBackends), name_of);
INSTANTIATE_TEST_SUITE_P(Backends, WatchingTest, testing::ValuesIn(kBackends), name_of);

}  // namespace
}  // namespace heddle
