// Who makes progress beside the program's calls: nobody, or a background thread that rests in one of three ways; and
// that it is quiet while there is nothing to do.
#include "os/monitor_wait.h"
#include "unit/progress/lone_pe.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace heddle::progress {
namespace {

constexpr uint64_t kAWhileNs = 50 * kMs;  // in which a thread that may would have done it, mostly

class PolicyTest : public testing::Test {
  protected:
    // An operation that ends when the event count is open to target, left to the background thread.
    void post(uint32_t target, bool seldom = false) {
        sequence->post([this, target] {
            wait_for_event_count("test", event_count, target);
            done.store(target, std::memory_order_release);
        });
        pe.engine.request_background(seldom);
    }
    // The background thread carries on, and this thread does nothing for it.
    bool is_done_in_background(uint32_t target) {
        return becomes([&] { return done.load(std::memory_order_acquire) == target; });
    }
    bool stays_undone(uint32_t target) {
        os::sleep_ns(kAWhileNs);
        return done.load(std::memory_order_acquire) < target;
    }
    // How often the background thread has slept so far, as the kernel counts.
    long sleeps_of_background() {
        char path[64], line[128];
        snprintf(path, sizeof path, "/proc/self/task/%ld/status", pe.background.load());
        long sleeps = -1;
        FILE* const file = fopen(path, "re");
        while (file && fgets(line, sizeof line, file)) sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
        if (file)
            fclose(file);
        return sleeps;
    }
    // It comes to rest, and then does not wake up for a while.
    void expect_no_wake_ups() {
        ASSERT_TRUE(becomes([&] {
            const long before = sleeps_of_background();
            os::sleep_ns(4 * kAWhileNs);
            return before > 0 && sleeps_of_background() == before;
        }));
        const long before = sleeps_of_background();
        os::sleep_ns(10 * kAWhileNs);
        EXPECT_EQ(sleeps_of_background(), before);
    }
    template <class Body>
    void run(Body body) {
        pe.run([&] {
            sequence = &pe.make_sequence();
            body();
        });
    }

    LonePe pe;
    Sequence* sequence = nullptr;
    sync::EventCount event_count = {};
    std::atomic<uint32_t> done{0};
};

TEST_F(PolicyTest, ManualLeavesAllToTheProgram) {
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kManual), nullptr);
        EXPECT_TRUE(pe.engine.is_manual());
        EXPECT_TRUE(pe.policy.alone);
        EXPECT_FALSE(pe.engine.has_free_core()) << "nothing is to be left to a thread";
        post(1);
        EXPECT_EQ(pe.engine.threads(), 0u);
        event_count.advance_to(1);
        EXPECT_TRUE(stays_undone(1));
        EXPECT_TRUE(poll());
        EXPECT_EQ(done, 1u);
        EXPECT_FALSE(poll()) << "nothing is left";
    });
}

TEST_F(PolicyTest, ManualHoldsForAThreadThatIsThereAndOthersForWhatIsUnderWay) {
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kBlock), nullptr);
        EXPECT_FALSE(pe.policy.alone);
        post(1);
        EXPECT_EQ(pe.engine.threads(), 1u);
        event_count.advance_to(1);
        EXPECT_TRUE(is_done_in_background(1));

        ASSERT_EQ(pe.engine.set_progress(Progress::kManual), nullptr);
        os::sleep_ns(kAWhileNs);  // it may be having a last look
        post(2);
        event_count.advance_to(2);
        EXPECT_TRUE(stays_undone(2));

        ASSERT_EQ(pe.engine.set_progress(Progress::kBlock), nullptr);
        EXPECT_TRUE(is_done_in_background(2)) << "from now on";
    });
}

TEST_F(PolicyTest, WhatWasPostedWithoutAThreadGoesOnWithOne) {
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kManual), nullptr);
        post(1);
        ASSERT_EQ(pe.engine.set_progress(Progress::kThread), nullptr);
        event_count.advance_to(1);
        EXPECT_TRUE(is_done_in_background(1));
    });
}

TEST_F(PolicyTest, EachOtherWayCarriesOnWhileTheProgramComputes) {
    pe.policy.monitor = os::find_monitor(os::MonitorChoice::kFake);
    run([&] {
        uint32_t target = 0;
        for (Progress progress :
             {Progress::kAuto, Progress::kSpin, Progress::kThread, Progress::kMonitor, Progress::kBlock}) {
            ASSERT_EQ(pe.engine.set_progress(progress), nullptr);
            EXPECT_FALSE(pe.engine.is_manual());
            EXPECT_EQ(pe.engine.spins(), progress == Progress::kSpin);
            for (int i = 0; i < 3; ++i) {
                post(++target);
                os::sleep_ns(kMs);
                event_count.advance_to(target);
                ASSERT_TRUE(is_done_in_background(target)) << testing::PrintToString(progress);
            }
        }
    });
}

TEST_F(PolicyTest, TheMonitorWatchesTheWakeupAlone) {
    pe.policy.monitor = os::find_monitor(os::MonitorChoice::kFake);
    run([&] {
        const auto arms_while_resting = [&](Progress progress) {
            EXPECT_EQ(pe.engine.set_progress(progress), nullptr);
            os::sleep_ns(kAWhileNs);
            const uint64_t before = os::fake_monitor_calls().arms;
            os::sleep_ns(kAWhileNs);
            return os::fake_monitor_calls().arms - before;
        };
        post(1);
        EXPECT_EQ(arms_while_resting(Progress::kBlock), 0u);
        const uint64_t waits = os::fake_monitor_calls().waits;
        EXPECT_TRUE(becomes([&] { return arms_while_resting(Progress::kMonitor) > 0; }));
        EXPECT_GT(os::fake_monitor_calls().waits, waits);
        EXPECT_EQ(arms_while_resting(Progress::kBlock), 0u);
        event_count.advance_to(1);
        EXPECT_TRUE(is_done_in_background(1));
    });
}

TEST_F(PolicyTest, WhatTheMachineCannotDoIsRefusedAndNothingChanges) {
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kSpin), nullptr);
        const char* const reason = pe.engine.set_progress(Progress::kMonitor);
        ASSERT_NE(reason, nullptr);
        EXPECT_NE(std::string(reason).find("HEDDLE_MONITOR"), std::string::npos) << reason;
        EXPECT_TRUE(pe.engine.spins());
    });
}

TEST_F(PolicyTest, OnOneCoreNothingSpins) {
    pe.policy.node_cores = 1;
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kSpin), nullptr);
        EXPECT_FALSE(pe.engine.spins());
        EXPECT_FALSE(pe.engine.is_manual());
        post(1);
        event_count.advance_to(1);
        EXPECT_TRUE(is_done_in_background(1));
    });
}

// From here on this thread and those that it makes are an ordinary user's, who may not make a thread more important
// than it is.
void give_up_the_right_to_change_classes() {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    ASSERT_EQ(syscall(SYS_capget, &header, data), 0);
    data[0].effective &= ~(1u << CAP_SYS_NICE);
    ASSERT_EQ(syscall(SYS_capset, &header, data), 0);
}

TEST_F(PolicyTest, AThreadThatSpinsGivesWayAndOneThatSleepsDoesNot) {
    run([&] {
        give_up_the_right_to_change_classes();
        const auto becomes_of_class = [&](int wanted) {
            return becomes([&] {
                const auto thread = static_cast<pid_t>(pe.background.load());
                return thread != 0 && sched_getscheduler(thread) == wanted;
            });
        };
        for (uint32_t target = 1; target <= 2; ++target) {
            ASSERT_EQ(pe.engine.set_progress(Progress::kSpin), nullptr);
            post(target);
            EXPECT_TRUE(becomes_of_class(SCHED_BATCH));
            ASSERT_EQ(pe.engine.set_progress(Progress::kBlock), nullptr);
            EXPECT_TRUE(becomes_of_class(SCHED_OTHER));
            EXPECT_EQ(pe.engine.threads(), 1u);
            event_count.advance_to(target);
            EXPECT_TRUE(is_done_in_background(target));
        }
    });
}

// Also behind an end: a PE may begin again.
TEST_F(PolicyTest, ANewThreadIntroducesItselfAnew) {
    for (uint32_t target = 1; target <= 2; ++target)
        run([&] {
            ASSERT_EQ(pe.engine.set_progress(Progress::kSpin), nullptr);
            pe.background = 0;
            post(target);
            EXPECT_TRUE(becomes([&] {
                return pe.background != 0 && sched_getscheduler(static_cast<pid_t>(pe.background)) == SCHED_BATCH;
            }));
            event_count.advance_to(target);
        });
}

TEST_F(PolicyTest, ThePolicyChangesWhileOthersPost) {
    const uint32_t seed = std::random_device{}();
    printf("seed %u\n", seed);
    pe.policy.monitor = os::find_monitor(os::MonitorChoice::kFake);
    run([&] {
        std::atomic<bool> over{false};
        std::vector<std::thread> changers;
        for (uint32_t changer = 0; changer < 2; ++changer)
            changers.push_back(pe.thread([&, changer] {
                std::mt19937 random(seed + changer);
                while (!over) {
                    EXPECT_EQ(pe.engine.set_progress(static_cast<Progress>(random() % 6)), nullptr);
                    os::sleep_ns(random() % 2 * kMs / 4);
                }
            }));
        uint32_t target = 0;
        for (const uint64_t end = os::now_ns() + 500 * kMs; os::now_ns() < end;) {
            post(++target);
            event_count.advance_to(target);
            pe.engine.wait_until("test", [&] { return done.load(std::memory_order_acquire) == target; });
        }
        over = true;
        for (std::thread& changer : changers) changer.join();
        ASSERT_EQ(pe.engine.set_progress(Progress::kThread), nullptr);
        post(++target);
        event_count.advance_to(target);
        EXPECT_TRUE(is_done_in_background(target));
    });
}

TEST_F(PolicyTest, AutoStartsNoThreadSeldomUnlessACoreIsFree) {
    pe.policy.node_cores = 4;
    pe.threads = 10;
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kAuto), nullptr);
        post(1, true);
        EXPECT_EQ(pe.engine.threads(), 0u);
        event_count.advance_to(1);
        EXPECT_TRUE(stays_undone(1));
        pe.sleepers = 8;
        post(2, true);
        EXPECT_EQ(pe.engine.threads(), 1u);
        event_count.advance_to(2);
        EXPECT_TRUE(is_done_in_background(2));
        pe.sleepers = 0;
    });
}

TEST_F(PolicyTest, AThreadThatWasAskedForIsStartedWithoutAFreeCore) {
    pe.policy.node_cores = 4;
    pe.threads = 10;
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kThread), nullptr);
        post(1, true);
        EXPECT_EQ(pe.engine.threads(), 1u);
        event_count.advance_to(1);
        EXPECT_TRUE(is_done_in_background(1));
    });
}

TEST_F(PolicyTest, NothingOutstandingNoWakeUps) {
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kThread), nullptr);
        post(1);
        event_count.advance_to(1);
        ASSERT_TRUE(is_done_in_background(1));
        expect_no_wake_ups();
        EXPECT_EQ(pe.threads, 0u) << "one that sleeps is not counted";
    });
}

TEST_F(PolicyTest, WhatCannotGoOnWakesNobody) {
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kBlock), nullptr);
        post(1);
        expect_no_wake_ups();
        event_count.advance_to(1);
        EXPECT_TRUE(is_done_in_background(1));
    });
}

// --- Waits and the end

TEST_F(PolicyTest, AWaitCarriesOnWhatIsUnderWayAndSleepsAtTheWakeup) {
    pe.policy.spin_ns = pe.policy.yield_ns = 0;
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kManual), nullptr);
        for (uint32_t target = 1; target <= 200; ++target) {
            post(target);
            std::thread opener = pe.thread([&] { event_count.advance_to(target); });
            pe.engine.wait_until("test", [&] { return done.load(std::memory_order_acquire) == target; });
            opener.join();
        }
        EXPECT_EQ(event_count.sleepers, 0u);
    });
}

// A thread that waits for an event count of its own goes on with the others' work meanwhile.
TEST_F(PolicyTest, AWaitForAEventCountCarriesOnWhatIsUnderWay) {
    pe.policy.spin_ns = pe.policy.yield_ns = 0;
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kManual), nullptr);
        sync::EventCount other = {};
        post(1);
        std::thread opener = pe.thread([&] {
            os::sleep_ns(5 * kMs);
            event_count.advance_to(1);
            EXPECT_TRUE(is_done_in_background(1)) << "by the thread that waits for the other event count";
            other.advance_to(1);
        });
        wait_for_event_count("test", other, 1);
        opener.join();
        EXPECT_EQ(other.sleepers, 0u);
    });
}

TEST_F(PolicyTest, AnOperationWaitsForAConditionWithoutHoldingUpItsThread) {
    run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kManual), nullptr);
        bool there = false;
        sequence->post([&] {
            pe.engine.wait_until("test", [&] { return there; });
            done.store(1);
        });
        EXPECT_FALSE(pe.engine.drive());
        there = true;
        EXPECT_TRUE(pe.engine.drive());
        EXPECT_EQ(done, 1u);
    });
}

TEST_F(PolicyTest, TheEndWaitsForWhatIsUnderWay) {
    for (Progress progress : {Progress::kManual, Progress::kBlock, Progress::kSpin}) {
        event_count.value = 0;
        std::thread opener;
        run([&] {
            ASSERT_EQ(pe.engine.set_progress(progress), nullptr);
            for (uint32_t target = 1; target <= 20; ++target) post(target);
            opener = pe.thread([&] {
                for (uint32_t target = 1; target <= 20; ++target) {
                    os::sleep_ns(kMs);
                    event_count.advance_to(target);
                }
            });
        });
        EXPECT_EQ(done, 20u);
        EXPECT_TRUE(sequence->is_empty());
        EXPECT_EQ(pe.engine.threads(), 0u);
        EXPECT_EQ(pe.threads, 0u);
        opener.join();
    }
}

}  // namespace
}  // namespace heddle::progress
