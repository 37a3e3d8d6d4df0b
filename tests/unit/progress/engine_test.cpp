#include "progress/engine.h"
#include "base/counters.h"
#include "unit/progress/each_instruction.h"
#include "unit/progress/lone_pe.h"

#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace heddle::progress {
namespace {

// An engine with a node of `cores` cores and two threads.
class EngineTest : public testing::Test {
  protected:
    EngineTest() {
        policy_.node_threads = &threads_;
        policy_.node_sleepers = &sleepers_;
        policy_.node_cores = 2;
        sched_getaffinity(0, sizeof cpus_, reinterpret_cast<cpu_set_t*>(cpus_));
    }

    std::atomic<uint32_t> threads_{2}, sleepers_{0};
    WaitPolicy policy_;
    uint64_t cpus_[Engine::kMaxCpuWords] = {};
};

struct Count {
    std::atomic<int>* slices;
    std::atomic<int>* ends;
    std::atomic<bool>* go;
};

void count_slice(const void* payload, uint32_t) {
    const auto& count = *static_cast<const Count*>(payload);
    while (count.go && !count.go->load(std::memory_order_acquire)) std::this_thread::yield();
    count.slices->fetch_add(1, std::memory_order_relaxed);
}
void count_end(const void* payload) {
    static_cast<const Count*>(payload)->ends->fetch_add(1, std::memory_order_relaxed);
}

bool anybody(const Owners&) {
    return true;
}

TEST_F(EngineTest, HasAFreeCoreWhereFewerThreadsRunThanThereAreCores) {
    Engine engine(policy_, AsyncCopy::kAuto, cpus_, Engine::kMaxCpuWords);
    EXPECT_FALSE(engine.has_free_core()) << "two threads on two cores";
    sleepers_ = 1;
    EXPECT_TRUE(engine.has_free_core()) << "one of them sleeps";
    sleepers_ = 0;
    threads_ = 1;
    EXPECT_TRUE(engine.has_free_core());
    EXPECT_FALSE(Engine(policy_, AsyncCopy::kNever, cpus_, Engine::kMaxCpuWords).has_free_core());
    threads_ = 9;
    EXPECT_TRUE(Engine(policy_, AsyncCopy::kAlways, cpus_, Engine::kMaxCpuWords).has_free_core());
}

TEST_F(EngineTest, TakesOverWhatIsLongToSendWhereThereIsACore) {
    policy_.own_cores = 2;
    threads_ = 1;
    Engine engine(policy_, AsyncCopy::kAuto, cpus_, Engine::kMaxCpuWords);
    EXPECT_TRUE(engine.takes_over(8192));
    EXPECT_FALSE(engine.takes_over(8191)) << "to wake a thread takes longer";
    threads_ = 2;
    EXPECT_FALSE(engine.takes_over(8192)) << "two threads on two cores";
    sleepers_ = 1;
    EXPECT_TRUE(engine.takes_over(8192)) << "one of them sleeps";
    policy_.own_threads = 2;
    EXPECT_FALSE(engine.takes_over(8192)) << "the PE's threads have its cores";
    policy_.own_sleepers = 1;
    EXPECT_TRUE(engine.takes_over(8192));
    EXPECT_EQ(engine.set_progress(Progress::kManual), nullptr);
    EXPECT_FALSE(engine.takes_over(8192)) << "nobody else makes progress";
    EXPECT_FALSE(Engine(policy_, AsyncCopy::kNever, cpus_, Engine::kMaxCpuWords).takes_over(8192));
    policy_.own_threads = threads_ = 9;
    EXPECT_TRUE(Engine(policy_, AsyncCopy::kAlways, cpus_, Engine::kMaxCpuWords).takes_over(0));
}

TEST_F(EngineTest, DoesEachSliceOnceAndEndsOnce) {
    Engine engine(policy_, AsyncCopy::kAlways, cpus_, Engine::kMaxCpuWords);
    std::atomic<int> slices{0}, ends{0};
    for (int round = 1; round <= 200; ++round) {
        const Count count = {&slices, &ends, nullptr};
        ASSERT_TRUE(engine.submit({}, 7, count_slice, count_end, count));
        engine.wait_for("test", anybody, [&] { return engine.outstanding() == 0; });
        ASSERT_EQ(slices, 7 * round);
        ASSERT_EQ(ends, round);
    }
    engine.stop("test");
    EXPECT_EQ(engine.threads(), 0u);
}

// The task of whom a thread waits for is done although the background thread is held up by another one.
TEST_F(EngineTest, WaitingThreadsHelpWithTheirOwnTasksAlone) {
    Engine engine(policy_, AsyncCopy::kAlways, cpus_, Engine::kMaxCpuWords);
    std::atomic<bool> go{false};
    std::atomic<int> held{0}, done{0}, ends{0};
    const int mine = 0, theirs = 0;
    ASSERT_TRUE(engine.submit({&theirs, nullptr}, 2, count_slice, count_end, Count{&held, &ends, &go}));
    ASSERT_TRUE(engine.submit({&mine, nullptr}, 5, count_slice, count_end, Count{&done, &ends, nullptr}));
    engine.wait_for("test", [&](const Owners& owners) { return owners.request == &mine; }, [&] { return done == 5; });
    EXPECT_EQ(held, 0);
    go = true;
    engine.stop("test");
    EXPECT_EQ(held, 2);
    EXPECT_EQ(ends, 2);
}

TEST_F(EngineTest, SaysNoWhenItIsFull) {
    Engine engine(policy_, AsyncCopy::kAlways, cpus_, Engine::kMaxCpuWords);
    std::atomic<bool> go{false};
    std::atomic<int> slices{0}, ends{0};
    const Count count = {&slices, &ends, &go};
    for (int i = 0; i < Engine::kTasks; ++i) ASSERT_TRUE(engine.submit({}, 1, count_slice, count_end, count));
    EXPECT_FALSE(engine.submit({}, 1, count_slice, count_end, count));
    EXPECT_EQ(engine.outstanding(), static_cast<uint32_t>(Engine::kTasks));
    go = true;
    engine.wait_for("test", anybody, [&] { return ends == Engine::kTasks; });
    engine.stop("test");
    EXPECT_EQ(slices, Engine::kTasks);
}

// Each waits for operations of its own: what messages have applied for others wakes none of them, whether collectives
// are under way or not.
TEST(EngineWaits, AMessageWakesWhomItConcerns) {
    for (const bool posted : {false, true}) {
        LonePe pe;
        pe.policy.spin_ns = pe.policy.yield_ns = 0;
        sync::EventCount never = {};
        pe.run([&] {
            constexpr size_t kWaiters = 16;
            constexpr int kMessages = 500;
            if (posted)
                pe.make_sequence().post([&] { wait_for_event_count("test", never, 1); });
            std::atomic<bool> done[kWaiters] = {};
            std::vector<std::thread> waiters;
            for (std::atomic<bool>& mine : done)
                waiters.push_back(pe.thread(
                    [&] { pe.engine.wait_until("test", [&] { return mine.load(std::memory_order_acquire); }); }));
            EXPECT_TRUE(becomes([&] { return pe.sleepers == kWaiters; }));
            os::sleep_ns(50 * kMs);  // all have come to rest
            const uint64_t wake_ups = base::counters->wake_ups.read(), vain = base::counters->vain_wake_ups.read();
            for (int i = 0; i < kMessages; ++i) pe.engine.on_messages();
            EXPECT_EQ(base::counters->wake_ups.read(), wake_ups);
            for (size_t i = 0; i < kWaiters; ++i) {
                done[i].store(true, std::memory_order_release);
                pe.engine.on_messages();
                waiters[i].join();
            }
            EXPECT_LE(base::counters->wake_ups.read(), wake_ups + 2 * kWaiters);
            EXPECT_LE(base::counters->vain_wake_ups.read(), vain + kWaiters) << "each may take over once";
            never.advance_to(1);
        });
    }
}

// What is left to the background thread does not wait until that has ended a large copy.
TEST(EngineWaits, ACollectiveIsBegunBetweenTheSlicesOfACopy) {
    LonePe pe;
    pe.run([&] {
        struct Copy {
            std::atomic<bool>*posted, *begun;
            std::atomic<int>* ahead;  // slices behind the first that were done before the collective was begun
        };
        std::atomic<bool> posted{false}, begun{false};
        std::atomic<int> ahead{0};
        const auto slice = [](const void* payload, uint32_t number) {
            const auto& copy = *static_cast<const Copy*>(payload);
            while (!copy.posted->load(std::memory_order_acquire)) std::this_thread::yield();
            if (number > 0 && !copy.begun->load(std::memory_order_acquire))
                copy.ahead->fetch_add(1, std::memory_order_relaxed);
        };
        ASSERT_TRUE(pe.engine.submit({}, 4, slice, [](const void*) {}, Copy{&posted, &begun, &ahead}));
        ASSERT_TRUE(pe.make_sequence().post([&] { begun.store(true, std::memory_order_release); }, nullptr,
                                            Sequence::Begin::kInBackground));
        posted.store(true, std::memory_order_release);
        EXPECT_TRUE(becomes([&] { return pe.engine.outstanding() == 0; }));  // this thread helps with nothing
        EXPECT_EQ(ahead, 0);
    });
}

// While one thread sleeps, another posts what only the sleeper carries on.
TEST(EngineWaits, ASleeperCarriesOnWhatIsPostedMeanwhile) {
    LonePe pe;
    pe.policy.spin_ns = pe.policy.yield_ns = 0;
    sync::EventCount event_count = {};
    pe.run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kManual), nullptr);
        Sequence& sequence = pe.make_sequence();
        std::atomic<uint32_t> done{0};
        constexpr uint32_t kRounds = 200;
        std::thread waiter = pe.thread(
            [&] { pe.engine.wait_until("test", [&] { return done.load(std::memory_order_acquire) == kRounds; }); });
        for (uint32_t round = 1; round <= kRounds; ++round) {
            if (round % 4 == 1) {
                EXPECT_TRUE(becomes([&] { return pe.sleepers == 1u; }));
            }
            ASSERT_TRUE(sequence.post([&, round] {
                wait_for_event_count("test", event_count, round);
                done.store(round, std::memory_order_release);
            }));
            event_count.advance_to(round);
            EXPECT_TRUE(becomes([&] { return done.load(std::memory_order_acquire) == round; }));
        }
        waiter.join();
    });
}

#if HEDDLE_STOPS_AT_INSTRUCTIONS
// A thread that has seen a task open may find the next one there, before its bit is set: the bit is then too many.
TEST(EngineAtEachInstruction, AThreadThatIsLateHelpsBetweenAnyTwoInstructionsOfASubmit) {
    std::atomic<bool> stopping{false};  // outlives the engine's stop, which waits for its readers
    LonePe pe;
    pe.run([&] {
        const auto nothing = [](const void*, uint32_t) {};
        const auto hold = [](const void* it, uint32_t) {
            while (!(*static_cast<std::atomic<bool>* const*>(it))->load()) std::this_thread::yield();
        };
        // The background thread does one slice of a task for as long as the test takes; the other one stays open.
        std::atomic<bool>* const until = &stopping;
        ASSERT_TRUE(pe.engine.submit({}, 2, hold, [](const void*) {}, until));
        const int one = 0, other = 0;
        bool has_so_many = true;
        for (int n = 1; has_so_many; ++n) {
            ASSERT_TRUE(pe.engine.submit({&one, nullptr}, 1, nothing, [](const void*) {}, until));
            std::binary_semaphore late{0}, go_on{0}, helped{0};
            std::thread helper = pe.thread([&] {
                bool first = true;
                pe.engine.help([&](const Owners& owners) {
                    if (std::exchange(first, false)) {  // that of the first task: it has seen the second one open
                        late.release();
                        go_on.acquire();
                        return false;
                    }
                    return owners.request == &other;
                });
                helped.release();
            });
            late.acquire();
            ASSERT_TRUE(pe.engine.help([&](const Owners& owners) { return owners.request == &one; }));
            int reached = 0;
            {
                EachInstruction steps([&](auto body) { return pe.thread(body); },
                                      [&] {
                                          if (++reached != n)
                                              return;
                                          go_on.release();
                                          helped.acquire();
                                      });
                steps.run([&] { pe.engine.submit({&other, nullptr}, 1, nothing, [](const void*) {}, until); });
            }
            has_so_many = reached >= n;
            if (!has_so_many)
                go_on.release();
            helper.join();
            while (pe.engine.help([&](const Owners& owners) { return owners.request == &other; })) continue;
        }
        stopping = true;
    });
}
#endif

TEST_F(EngineTest, TakesWorkFromManyThreadsAndStartsAgainAfterAStop) {
    Engine engine(policy_, AsyncCopy::kAlways, cpus_, Engine::kMaxCpuWords);
    std::atomic<int> slices{0}, ends{0};
    constexpr int kThreads = 4, kRounds = 300;
    for (int life = 1; life <= 2; ++life) {
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&] {
                std::atomic<int> own_ends{0};
                int submitted = 0;
                for (int round = 0; round < kRounds; ++round) {
                    submitted += engine.submit({&own_ends, nullptr}, 3, count_slice, count_end,
                                               Count{&slices, &own_ends, nullptr});
                    if (round % 8 == 0)
                        engine.help(anybody);
                }
                engine.wait_for("test", anybody, [&] { return own_ends == submitted; });
                ends += submitted;
            });
        }
        for (std::thread& thread : threads) thread.join();
        engine.stop("test");
        EXPECT_EQ(slices, 3 * ends);
        EXPECT_GE(ends, life * kThreads * Engine::kTasks / 8);
    }
    EXPECT_EQ(threads_, 2u) << "the background thread counts while it is awake, and no longer";
}

}  // namespace
}  // namespace heddle::progress
