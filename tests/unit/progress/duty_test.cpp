// Who has the duty to make progress for the sleepers of the parking lot: whom WaitSteps counts as awake, and who is
// called when the last of those falls asleep or leaves (tests/model/duty.pml).
#include "base/counters.h"
#include "unit/progress/lone_pe.h"

#include <gtest/gtest.h>
#include <optional>

namespace heddle::progress {
namespace {

// A PE with something posted, whose polls only count.
class DutyTest : public testing::Test {
  protected:
    DutyTest() {
        moves = holds = false;
        polls_of_sleeper = polls_of_others = 0;
        pe.policy.posted = 1;
        pe.policy.spin_ns = pe.policy.yield_ns = 0;
        pe.policy.looked = [](const char*) { return 2 * kLostNs; };  // nobody looks for itself
        pe.policy.poll = [] {
            (is_sleeper ? polls_of_sleeper : polls_of_others).fetch_add(1);
            if (!moves.exchange(false))
                return false;
            holds = true;
            wait_policy->parking_lot.relay();
            return true;
        };
    }
    template <class Body>
    void run(Body body) {
        pe.run([&] {
            body();
            pe.policy.posted = 0;
        });
    }
    static void fall_asleep(WaitSteps& steps) {
        const auto never = [] { return false; };
        while (!steps.step(never)) continue;
    }
    // A thread that has fallen asleep in the lot, without a duty while another one polls. It takes no naps.
    std::thread make_sleeper() {
        std::thread sleeper = pe.thread([] {
            is_sleeper = true;
            auto ready = [] { return holds.load(); };
            WaitSteps steps("sleeper", &holds, false);
            while (!ready())
                if (steps.step(ready))
                    steps.sleep_in_lot(ready, false);
        });
        EXPECT_TRUE(becomes([&] { return pe.sleepers == 1; }));
        os::sleep_ns(20 * kMs);  // it sleeps in the kernel, mostly
        polls_of_sleeper = 0;
        return sleeper;
    }
    static bool is_called() {
        return becomes([] { return polls_of_sleeper != 0; });
    }
    void end(std::thread& sleeper) {
        holds = true;
        pe.policy.parking_lot.relay();
        sleeper.join();
    }

    LonePe pe;
    static inline thread_local bool is_sleeper = false;
    static inline std::atomic<int> polls_of_sleeper{0}, polls_of_others{0};
    static inline std::atomic<bool> moves{false}, holds{false};
};

// The thread looks for itself, and goes on to wait: as one that is awake, and then as one that sleeps.
TEST_F(DutyTest, ASleeperThatHasMovedSomethingIsAwakeThoughItsConditionHolds) {
    run([&] {
        auto ready = [] { return holds.load(); };
        WaitSteps steps("test", &holds, false);
        for (int round = 1; round <= 3; ++round) {
            holds = false;
            fall_asleep(steps);
            ASSERT_EQ(pe.policy.pollers, 0u) << "it sleeps: another one has to make progress";
            moves = true;
            ASSERT_TRUE(steps.sleep_in_lot(ready, false)) << "it has made progress, in round " << round;
            EXPECT_EQ(pe.policy.pollers, 1u) << "it is awake";
        }
    });
    EXPECT_EQ(pe.policy.pollers, 0u);
}

// The whole of such a wait: for one of many requests, say, whose sleeper is woken to look at them.
TEST_F(DutyTest, AWaitThatIsWokenToLookGoesOnMakingProgress) {
    pe.policy.looked = nullptr;
    run([&] {
        constexpr int kRounds = 20, kMostLooks = 3 * kRounds;
        int rounds = 0, looks = 0;
        pe.engine.wait_for(
            "test", [](const Owners&) { return false; },
            [&] {
                rounds += holds.exchange(false);
                moves = true;
                return rounds == kRounds || ++looks == kMostLooks;
            },
            [] { return holds.load(); });
        EXPECT_EQ(rounds, kRounds);
    });
    EXPECT_EQ(pe.policy.pollers, 0u);
}

TEST_F(DutyTest, TheLastPollerCallsASleeperWhereItSleepsElsewhere) {
    run([&] {
        WaitSteps steps("test", this, false);
        pe.policy.spin_ns = kLostNs;
        const auto never = [] { return false; };
        EXPECT_FALSE(steps.step(never));
        EXPECT_EQ(pe.policy.pollers, 1u);
        pe.policy.spin_ns = 0;
        std::thread sleeper = make_sleeper();
        EXPECT_EQ(polls_of_sleeper, 0) << "this thread is awake";
        fall_asleep(steps);
        steps.next_look();  // as ahead of a sleep on an event count or a lock
        EXPECT_TRUE(is_called());
        end(sleeper);
    });
}

TEST_F(DutyTest, TheLastPollerCallsASleeperWhereItsWaitEnds) {
    run([&] {
        std::optional<WaitSteps> steps(std::in_place, "test", this, false);
        pe.policy.spin_ns = kLostNs;
        const auto never = [] { return false; };
        EXPECT_FALSE(steps->step(never));
        pe.policy.spin_ns = 0;
        std::thread sleeper = make_sleeper();
        EXPECT_EQ(polls_of_sleeper, 0);
        steps.reset();
        EXPECT_TRUE(is_called());
        end(sleeper);
    });
}

// It has the duty itself there, and nobody is woken for it.
TEST_F(DutyTest, TheLastPollerThatComesToTheLotCallsNobody) {
    run([&] {
        WaitSteps steps("test", this, false);
        pe.policy.spin_ns = kLostNs;
        auto never = [] { return false; };
        EXPECT_FALSE(steps.step(never));
        pe.policy.spin_ns = 0;
        std::thread sleeper = make_sleeper();
        const uint64_t wake_ups = base::counters->wake_ups.read();
        const int polls = polls_of_others;
        fall_asleep(steps);
        EXPECT_EQ(base::counters->wake_ups.read(), wake_ups);
        moves = true;
        steps.sleep_in_lot(never, false);
        EXPECT_GT(polls_of_others, polls) << "it has made progress";
        EXPECT_EQ(polls_of_sleeper, 0);
        end(sleeper);
    });
}

}  // namespace
}  // namespace heddle::progress
