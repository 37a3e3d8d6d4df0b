// Sequence: operations in the order of their posting, each as if it blocked; and that nothing they wait for is missed.
// What every interleaving does is the subject of tests/model/wakeup.pml; this runs the real thing.
#include "unit/progress/each_instruction.h"
#include "unit/progress/lone_pe.h"

#include <gtest/gtest.h>
#include <cfenv>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace heddle::progress {
namespace {

class SequenceTest : public testing::Test {
  protected:
    LonePe pe;
};

TEST_F(SequenceTest, WhatDoesNotWaitIsDoneWhenItIsPosted) {
    pe.run([&] {
        Sequence& sequence = pe.make_sequence();
        EXPECT_TRUE(sequence.is_empty());
        int done = 0;
        for (int i = 1; i <= 100; ++i) {
            ASSERT_TRUE(sequence.post([&] { ++done; }));
            EXPECT_EQ(done, i);
            EXPECT_TRUE(sequence.is_empty());
            EXPECT_EQ(pe.policy.posted, 0u);
        }
    });
}

TEST_F(SequenceTest, WhatIsLeftIsBegunByAnotherThreadIfOneMayMakeProgress) {
    for (const Progress progress : {Progress::kBlock, Progress::kSpin, Progress::kManual})
        pe.run([&] {
            ASSERT_EQ(pe.engine.set_progress(progress), nullptr);
            Sequence& sequence = pe.make_sequence();
            for (int i = 1; i <= 100; ++i) {
                std::atomic<std::thread::id> by{std::thread::id()};
                ASSERT_TRUE(
                    sequence.post([&] { by = std::this_thread::get_id(); }, nullptr, Sequence::Begin::kInBackground));
                ASSERT_TRUE(becomes([&] { return sequence.is_empty(); })) << i;
                EXPECT_EQ(by.load() == std::this_thread::get_id(), progress == Progress::kManual);
            }
        });
}

TEST_F(SequenceTest, WhatIsLeftIsBegunWhileAnotherSequenceWaits) {
    pe.run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kBlock), nullptr);
        sync::EventCount event_count = {};
        Sequence &waits = pe.make_sequence(), &sequence = pe.make_sequence();
        ASSERT_TRUE(
            waits.post([&] { wait_for_event_count("test", event_count, 1); }, nullptr, Sequence::Begin::kInBackground));
        bool is_begun = true;
        for (int i = 0; i < 50 && is_begun; ++i) {
            os::sleep_ns(kMs);  // the background thread has gone to sleep at the wake-up
            EXPECT_TRUE(sequence.post([] {}, nullptr, Sequence::Begin::kInBackground));
            EXPECT_TRUE(is_begun = becomes([&] { return sequence.is_empty(); }));
        }
        event_count.advance_to(1);
        EXPECT_TRUE(becomes([&] { return waits.is_empty(); }));
    });
}

TEST_F(SequenceTest, EachBeginsWhenTheOneBeforeItIsOver) {
    pe.run([&] {
        Sequence& sequence = pe.make_sequence();
        sync::EventCount first = {}, second = {};
        std::string steps;
        sequence.post([&] {
            steps += 'a';
            wait_for_event_count("test", first, 1);
            steps += 'b';
        });
        sequence.post([&] {
            steps += 'c';
            wait_for_event_count("test", second, 1);
            steps += 'd';
        });
        sequence.post([&] { steps += 'e'; });
        EXPECT_EQ(steps, "a");
        EXPECT_EQ(sequence.under_way(), 3u);
        EXPECT_EQ(pe.policy.posted, 3u);
        EXPECT_FALSE(pe.engine.drive());
        second.advance_to(1);
        EXPECT_FALSE(pe.engine.drive()) << "it is not its turn";
        first.advance_to(1);
        EXPECT_TRUE(pe.engine.drive());
        EXPECT_EQ(steps, "abcde");
        EXPECT_TRUE(sequence.is_empty());
        EXPECT_FALSE(pe.engine.drive());
    });
}

TEST_F(SequenceTest, SequencesDoNotWaitForEachOther) {
    pe.run([&] {
        Sequence &one = pe.make_sequence(), &other = pe.make_sequence();
        sync::EventCount event_count = {};
        int done = 0;
        one.post([&] { wait_for_event_count("test", event_count, 1); });
        other.post([&] { ++done; });
        EXPECT_EQ(done, 1);
        EXPECT_TRUE(other.is_empty());
        EXPECT_FALSE(one.is_empty());
        event_count.advance_to(1);
        pe.engine.drive();
        EXPECT_TRUE(one.is_empty());
    });
}

// Memory grows in chunks, and is used again.
TEST_F(SequenceTest, AnyNumberIsPostedWithoutWaiting) {
    pe.run([&] {
        Sequence& sequence = pe.make_sequence();
        sync::EventCount event_count = {};
        std::vector<uint32_t> order;
        uint32_t posted = 0;
        for (uint32_t round = 1; round <= 3; ++round) {
            sequence.post([&event_count, round] { wait_for_event_count("test", event_count, round); });
            for (uint32_t i = 0; i < 1000 * round; ++i, ++posted)
                ASSERT_TRUE(sequence.post([&order, posted] { order.push_back(posted); }));
            EXPECT_EQ(sequence.under_way(), 1000 * round + 1);
            event_count.advance_to(round);
            pe.engine.drive();
            EXPECT_TRUE(sequence.is_empty());
            ASSERT_EQ(order.size(), posted);
        }
        for (uint32_t i = 0; i < posted; ++i) ASSERT_EQ(order[i], i);
    });
}

TEST_F(SequenceTest, WorkIsCopiedWhole) {
    struct Large {
        uint64_t words[16];
    };
    pe.run([&] {
        Sequence& sequence = pe.make_sequence();
        sync::EventCount event_count = {};
        uint64_t sum = 0;
        {
            Large large;
            for (uint64_t i = 0; i < 16; ++i) large.words[i] = i;
            sequence.post([large, &event_count, &sum] {
                wait_for_event_count("test", event_count, 1);
                for (uint64_t word : large.words) sum += word;
            });
            for (uint64_t& word : large.words) word = 1000;
        }
        event_count.advance_to(1);
        pe.engine.drive();
        EXPECT_EQ(sum, 120u);
    });
}

TEST_F(SequenceTest, AWaitCarriesOnAndAnOperationsOwnReturnsAtOnce) {
    pe.run([&] {
        Sequence& sequence = pe.make_sequence();
        sync::EventCount event_count = {};
        bool by_itself = false;
        sequence.post([&] {
            sequence.wait("test");
            by_itself = true;
            wait_for_event_count("test", event_count, 1);
        });
        EXPECT_TRUE(by_itself);
        EXPECT_FALSE(sequence.is_empty());
        std::thread opener = pe.thread([&] {
            os::sleep_ns(5 * kMs);
            event_count.advance_to(1);
        });
        sequence.wait("test");
        EXPECT_TRUE(sequence.is_empty());
        opener.join();
    });
}

TEST_F(SequenceTest, AnOperationDrivesNothing) {
    pe.run([&] {
        Sequence &one = pe.make_sequence(), &other = pe.make_sequence();
        sync::EventCount event_count = {};
        other.post([&] { wait_for_event_count("test", event_count, 1); });
        bool drove = true, done_meanwhile = true;
        one.post([&] {
            event_count.advance_to(1);
            drove = pe.engine.drive();
            done_meanwhile = other.is_empty();
        });
        EXPECT_FALSE(drove);
        EXPECT_FALSE(done_meanwhile);
        EXPECT_TRUE(other.is_empty()) << "the drive of the post looks again: the wake-up has advanced";
    });
}

// Who drives is chance; the poster is not.
TEST_F(SequenceTest, AnOperationComputesInTheModesOfItsPoster) {
    pe.run([&] {
        Sequence& sequence = pe.make_sequence();
        sync::EventCount event_count = {};
        std::vector<int> modes;
        const int posted[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_UPWARD};
        for (int mode : posted) {
            fesetround(mode);
            sequence.post([&] {
                wait_for_event_count("test", event_count, 1);
                modes.push_back(fegetround());
                fesetround(FE_TONEAREST);
            });
        }
        fesetround(FE_TONEAREST);
        event_count.advance_to(1);
        pe.thread([&] {
              fesetround(FE_DOWNWARD);
              pe.engine.drive();
              EXPECT_EQ(fegetround(), FE_DOWNWARD);
          }).join();
        EXPECT_EQ(modes, std::vector<int>(std::begin(posted), std::end(posted)));
    });
}

// A thread that comes because of the wake-up finds another one that drives, and has just looked: that one looks again.
TEST_F(SequenceTest, WhoDrivesSeesWhatAThreadThatWasTurnedAwayCameFor) {
    pe.run([&] {
        Sequence& sequence = pe.make_sequence();
        bool there = false, was_turned_away = false;
        int looks = 0;
        auto condition = [&] {
            const bool is_there = there;
            if (++looks == 2)
                pe.thread([&] {
                      there = true;
                      pe.engine.wake_waiters();
                      was_turned_away = !pe.engine.drive();
                  }).join();
            return is_there;
        };
        sequence.post([&] { Fiber::current()->wait(condition); });
        EXPECT_TRUE(was_turned_away);
        EXPECT_EQ(looks, 3);
        EXPECT_TRUE(sequence.is_empty());
    });
}

// What is posted for later begins with one pass over the sequences, which leaves the rest to others.
TEST_F(SequenceTest, APassDrivesEachSequenceOnceTheFirstOneFirst) {
    pe.run([&] {
        ASSERT_EQ(pe.engine.set_progress(Progress::kManual), nullptr);
        Sequence &first = pe.make_sequence(), &other = pe.make_sequence();
        int step = 0, ended = 0;
        sync::EventCount event_count = {};
        ASSERT_TRUE(first.post(
            [&] {
                EXPECT_EQ(step++, 0);
                wait_for_event_count("test", event_count, 1);
                ++ended;
            },
            nullptr, Sequence::Begin::kLater));
        ASSERT_TRUE(other.post(
            [&] {
                EXPECT_EQ(step++, 1);
                event_count.advance_to(1);
            },
            nullptr, Sequence::Begin::kLater));
        EXPECT_EQ(step, 0);
        pe.engine.drive_once(first);
        EXPECT_EQ(step, 2);
        EXPECT_EQ(ended, 0) << "left to others";
        EXPECT_TRUE(pe.engine.drive());
        EXPECT_EQ(ended, 1);
        EXPECT_TRUE(first.is_empty() && other.is_empty());
    });
}

// A thread that a pass turns away finds the wake-up advanced behind it.
TEST_F(SequenceTest, APassCallsThoseThatItHasTurnedAway) {
    pe.run([&] {
        Sequence& sequence = pe.make_sequence();
        bool there = false, was_turned_away = false;
        uint32_t seen = 0;
        int looks = 0;
        auto condition = [&] {
            const bool is_there = there;
            if (++looks == 2)  // the driver's last
                pe.thread([&] {
                      there = true;
                      pe.engine.wake_waiters();
                      seen = pe.engine.wakeup().value;
                      was_turned_away = !pe.engine.drive();
                  }).join();
            return is_there;
        };
        ASSERT_TRUE(sequence.post([&] { Fiber::current()->wait(condition); }, nullptr, Sequence::Begin::kLater));
        pe.engine.drive_once(sequence);
        EXPECT_TRUE(was_turned_away);
        EXPECT_FALSE(sequence.is_empty());
        EXPECT_TRUE(pe.engine.wakeup().reached(seen + 1));
        EXPECT_TRUE(pe.engine.drive());
        EXPECT_TRUE(sequence.is_empty());
    });
}

#if HEDDLE_STOPS_AT_INSTRUCTIONS
// The driver may carry out an operation that its poster has linked and not counted yet.
TEST_F(SequenceTest, AnotherThreadDrivesBetweenAnyTwoInstructionsOfAPost) {
    pe.run([&] {
        Sequence& sequence = pe.make_sequence();
        // The operation before it is outstanding until the post has come to its n-th instruction.
        bool has_so_many = true;
        for (int n = 1; has_so_many; ++n) {
            int done = 0, reached = 0;
            bool may_end = false;
            auto condition = [&] { return may_end; };
            sequence.post([&] {
                Fiber::current()->wait(condition);
                ++done;
            });
            {
                EachInstruction steps([&](auto body) { return pe.thread(body); },
                                      [&] {
                                          may_end = ++reached >= n;
                                          pe.engine.drive();
                                      });
                steps.run([&] { sequence.post([&] { ++done; }); });
            }
            has_so_many = may_end;
            may_end = true;
            pe.engine.drive();
            EXPECT_EQ(done, 2);
            EXPECT_TRUE(sequence.is_empty());
        }
    });
}
#endif

TEST_F(SequenceTest, SeveralDriveWhileOnePosts) {
    constexpr uint32_t kOperations = 20000, kDrivers = 3;
    pe.run([&] {
        Sequence& sequence = pe.make_sequence();
        sync::EventCount event_count = {};
        std::vector<uint32_t> order;  // plain: an operation sees what those before it did
        std::atomic<bool> stopping{false};
        std::vector<std::thread> drivers;
        for (uint32_t i = 0; i < kDrivers; ++i)
            drivers.push_back(pe.thread([&] {
                while (!stopping.load(std::memory_order_relaxed)) {
                    pe.engine.drive();
                    std::this_thread::yield();
                }
            }));
        std::atomic<uint32_t> begun{0};
        std::thread opener = pe.thread([&] {
            for (uint32_t seen = 0; seen != kOperations;) {
                const uint32_t now = begun.load(std::memory_order_acquire);
                if (now == seen)
                    std::this_thread::yield();
                else
                    event_count.advance_to(seen = now);
            }
        });
        for (uint32_t i = 0; i < kOperations; ++i)
            ASSERT_TRUE(sequence.post([&, i] {
                order.push_back(i);
                begun.store(i + 1, std::memory_order_release);
                if (i % 3 == 0)
                    wait_for_event_count("test", event_count, i + 1);
            }));
        EXPECT_TRUE(becomes([&] { return sequence.is_empty(); }));
        stopping.store(true, std::memory_order_relaxed);
        for (std::thread& driver : drivers) driver.join();
        opener.join();
        ASSERT_EQ(order.size(), kOperations);
        for (uint32_t i = 0; i < kOperations; ++i) ASSERT_EQ(order[i], i);
    });
}

// Threads that wait asleep, one that posts, and two that open what operations wait for, each at any moment: whoever is
// turned away, late or asleep, all goes on.
class NothingIsMissed : public SequenceTest, public testing::WithParamInterface<Progress> {
  protected:
    static constexpr uint32_t kOperations = 3000, kEventCounts = 2, kWaiters = 2;

    NothingIsMissed() {
        printf("seed %u\n", seed);
        pe.policy.spin_ns = pe.policy.yield_ns = 0;
        pe.policy.monitor = os::find_monitor(os::MonitorChoice::kFake);
    }

    static void pause_a_little(std::mt19937& random) {
        for (uint32_t i = random() % 400; i > 0; --i) os::pause();
        if (random() % 16 == 0)
            std::this_thread::yield();
    }
    // Opens the event count to each operation some time after that has come there.
    void open_all(uint32_t g) {
        std::mt19937 random(seed + g);
        for (uint32_t i = 1; i <= kOperations; ++i) {
            while (arrived[g].load(std::memory_order_relaxed) < i) std::this_thread::yield();
            pause_a_little(random);
            event_counts[g].advance_to(i);
        }
    }
    void wait_often(uint32_t waiter) {
        std::mt19937 random(seed + kEventCounts + waiter);
        for (uint32_t i = 1; i <= kOperations; i += random() % 3) {
            pause_a_little(random);
            pe.engine.wait_until("test", [&] { return done.load(std::memory_order_acquire) >= i; });
        }
    }
    void post_all(Sequence& sequence) {
        std::mt19937 random(seed + kEventCounts + kWaiters);
        for (uint32_t i = 1; i <= kOperations; ++i) {
            const bool is_left = random() % 2 == 0;
            const auto work = [this, i] {
                for (uint32_t g = 0; g < kEventCounts; ++g) {
                    arrived[g].store(i, std::memory_order_relaxed);
                    wait_for_event_count("test", event_counts[g], i);
                }
                done.store(i, std::memory_order_release);
            };
            sequence.post(work, nullptr, is_left ? Sequence::Begin::kInBackground : Sequence::Begin::kByPoster);
            if (!is_left)
                pe.engine.request_background(false);
            if (random() % 4 == 0)
                sequence.wait("test");
            pause_a_little(random);
        }
        sequence.wait("test");
    }
    void play() {
        ASSERT_EQ(pe.engine.set_progress(GetParam()), nullptr);
        std::vector<std::thread> others;
        for (uint32_t g = 0; g < kEventCounts; ++g) others.push_back(pe.thread([this, g] { open_all(g); }));
        for (uint32_t w = 0; w < kWaiters; ++w) others.push_back(pe.thread([this, w] { wait_often(w); }));
        post_all(pe.make_sequence());
        for (std::thread& other : others) other.join();
    }
    // Where nothing has happened for a long time, the test has failed, and this rings until it is over.
    void watch_over() {
        uint32_t seen = 0;
        uint64_t since_ns = os::now_ns();
        bool lost = false;
        while (!over.load(std::memory_order_relaxed)) {
            os::sleep_ns(kMs);
            const uint32_t now = done.load(std::memory_order_relaxed);
            if (now != seen && !lost) {
                seen = now;
                since_ns = os::now_ns();
            } else if (os::now_ns() - since_ns > kLostNs) {
                if (!lost)
                    ADD_FAILURE() << "operation " << now + 1 << " waits for ever, seed " << seed;
                lost = true;
                pe.engine.wake_waiters();
            }
        }
    }

    const uint32_t seed = std::random_device{}();
    std::atomic<uint32_t> done{0}, arrived[kEventCounts] = {};
    sync::EventCount event_counts[kEventCounts] = {};
    std::atomic<bool> over{false};
};

TEST_P(NothingIsMissed, AtAnyMoment) {
    std::thread player([&] {
        pe.run([&] { play(); });
        over.store(true, std::memory_order_relaxed);
    });
    watch_over();
    player.join();
    EXPECT_EQ(done, kOperations);
}

INSTANTIATE_TEST_SUITE_P(Policies, NothingIsMissed,
                         testing::Values(Progress::kManual, Progress::kBlock, Progress::kSpin, Progress::kMonitor),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace heddle::progress
