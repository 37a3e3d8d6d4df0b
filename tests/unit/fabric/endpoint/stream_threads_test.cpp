// Streams with a thread that publishes and another that polls: nothing is left behind, and nothing is seen half done.
// What every interleaving does is the subject of tests/model/idle.pml; this runs the real thing.
#include "unit/becomes.h"
#include "unit/fabric/pair.h"

#include <gtest/gtest.h>
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace heddle::fabric {
namespace {

// Polls both PEs' channels until the object goes.
class Poller {
  public:
    explicit Poller(Pair& pair)
        : thread_([this, &pair] {
              while (!stopping_.load(std::memory_order_acquire))  // pairs with the destructor
                  if (!pair.poll())
                      std::this_thread::yield();
          }) {}
    ~Poller() {
        stopping_.store(true, std::memory_order_release);
        thread_.join();
    }

  private:
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

// The producer does nothing for its record but publish it, as a program that computes does.
TEST(StreamThreads, ARecordThatNobodyWaitsForArrives) {
    Pair pair;
    Stream& stream = pair[0].to_other();
    const Poller poller(pair);
    for (uint64_t i = 1; i <= 5000; ++i) {
        put_word(stream, 0, i);
        if (i % 3 == 0)
            put_word(stream, 8, i);  // gathers behind the other, or does not
        ASSERT_TRUE(becomes(pair[1].word(0), i)) << "record " << i;
        ASSERT_TRUE(i % 3 != 0 || becomes(pair[1].word(1), i)) << "record " << i;
    }
}

// As above, while a third thread queues the stream out of turn.
TEST(StreamThreads, ARecordArrivesWhileOthersHurryItsStream) {
    Pair pair;
    Stream& stream = pair[0].to_other();
    const Poller poller(pair);
    std::atomic<bool> stopping{false};
    std::thread other([&] {
        while (!stopping.load(std::memory_order_relaxed)) {
            stream.flush();
            pair[0].channel().poll();
            std::this_thread::yield();
        }
    });
    bool all = true;
    for (uint64_t i = 1; i <= 1000 && all; ++i) {
        for (int look = 0; look < 20 && all; ++look) {
            put_word(stream, 0, i);
            all = pair[0].knows_its_active(0);
        }
        all = all && becomes(pair[1].word(0), i);
    }
    stopping.store(true, std::memory_order_relaxed);
    other.join();
    EXPECT_TRUE(all);
    EXPECT_TRUE(becomes([&] { return !pair[0].is_active(); }));
}

// Each thread waits for its record, while a thread polls for all: records wait for acks of other threads' records.
// are_left: with fewer cores than threads, records are left to that thread.
void put_and_quiet(bool are_left) {
    constexpr uint64_t kRounds = 1000;
    constexpr uint32_t kThreads = 6;
    Pair pair({.seed = 7, .lazy = 1});
    if (are_left)
        pair[0].policy.own_threads = pair[0].policy.own_cores + 1;
    pair[0].polls_soon = are_left;
    const Poller poller(pair);
    std::atomic<uint32_t> lost{0};
    std::vector<std::thread> threads;
    for (uint32_t number = 0; number < kThreads; ++number)
        threads.emplace_back([&, number] {
            Stream& stream = pair[0].to_other(number);
            pair[0].producer(number).thread.store(this_thread(), std::memory_order_relaxed);
            for (uint64_t i = 1; i <= kRounds; ++i) {
                for (uint64_t word = 0; word <= i % 4; ++word) put_word(stream, 64 * number + 8 * word, i);
                pair[0].stream_set(number).begin_wait();
                if (!are_left) {
                    stream.flush();
                    pair[0].channel().poll();
                }
                if (!becomes([&] { return stream.is_quiet(); }) || load(pair[1].word(8 * number)) != i)
                    lost.fetch_add(1, std::memory_order_relaxed);
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(lost.load(std::memory_order_relaxed), 0u);
    EXPECT_TRUE(becomes([&] { return !pair[0].is_active(); }));
}

TEST(StreamThreads, PutAndQuietOfManyThreads) {
    put_and_quiet(false);
}

TEST(StreamThreads, PutAndQuietOfManyThreadsOnFewCores) {
    put_and_quiet(true);
}

void produce_on_two_stream_sets(bool native) {
    constexpr uint64_t kRounds = 2000;
    Pair pair({.seed = 5, .lazy = 1, .native = native});
    const Poller poller(pair);
    const auto produce = [&](uint32_t stream_set) {
        const Waiting waiting(nullptr);
        Stream& stream = pair[0].to_other(stream_set);
        pair[0].producer(stream_set).thread.store(this_thread(), std::memory_order_relaxed);
        const uint64_t begin = stream_set * 200000;
        const std::string large(kLargeBytes + 8, static_cast<char>('a' + stream_set));
        std::vector<uint64_t> old(kRounds), gotten(kRounds);
        std::string back(large.size(), '#');
        for (uint64_t i = 0; i < kRounds; ++i) {
            put_word(stream, begin, i);
            ASSERT_TRUE(pair[0].knows_its_active(stream_set));
            fetch_add(stream, &old[i], begin + 8, 1);
            get(stream, &gotten[i], begin, 8);
            ASSERT_TRUE(pair[0].knows_its_active(stream_set));
            if (i % 100 == 0) {
                put(stream, begin + 64, large.data(), large.size());
                stream.order("test");
                get(stream, back.data(), begin + 64, back.size());
                stream.flush();
                stream.channel().wait("test", &stream, [&] { return stream.is_quiet() && stream.is_local(); });
                EXPECT_TRUE(back == large);
                EXPECT_EQ(load(pair[1].word(begin / 8)), i);
            }
        }
        stream.flush();
        stream.channel().wait("test", &stream, [&] { return stream.is_quiet(); });
        for (uint64_t i = 0; i < kRounds; ++i) {
            EXPECT_EQ(old[i], i);
            EXPECT_EQ(gotten[i], i);
        }
    };
    std::thread other(produce, 1);
    produce(0);
    other.join();
}

TEST(StreamThreads, ProducersOfTwoStreamSetsAndAPoller) {
    produce_on_two_stream_sets(false);
}

TEST(StreamThreads, ProducersOfTwoStreamSetsAndAPollerWithNativePuts) {
    produce_on_two_stream_sets(true);
}

// Two producers, two pollers, three rails: who sees a word sees those that were put before. fails: meanwhile one PE
// takes a rail for lost, which still brings what it had, and then the other one does.
void keep_order_over_rails(bool fails) {
    constexpr size_t kWords = 30000;
    constexpr uint64_t kRounds = 6;
    Pair pair({.seed = 6, .lazy = 1}, 2 * kWords * 8, kMessageBytes, 3, Spread::kInOrder, fails);
    const Poller poller(pair), another(pair);
    const auto work = [&](uint32_t number) {
        const Waiting waiting(nullptr);
        StreamSet& stream_set = pair[0].stream_set(number);
        stream_set.producer.thread.store(this_thread(), std::memory_order_relaxed);
        const size_t first = number * kWords;
        std::mt19937_64 random(number);
        for (uint64_t round = 1; round <= kRounds; ++round) {
            for (size_t i = 0; i < kWords; ++i) {
                put_word(stream_set.to(1), 8 * (first + i), round);
                if (i % 64 != 0)
                    continue;
                const size_t probe = random() % kWords;
                const uint64_t seen = load(pair[1].word(first + probe));
                EXPECT_GE(load(pair[1].word(first + random() % (probe + 1))), seen);
            }
            if (fails && round == 2 + number)
                pair[static_cast<int>(number)].lose(1);
        }
        stream_set.all([](Stream& stream) {
            stream.flush();
            return true;
        });
        stream_set.to(1).channel().wait("test", &stream_set, [&] { return pair[0].is_quiet(number); });
        for (size_t i = 0; i < kWords; ++i) ASSERT_EQ(load(pair[1].word(first + i)), kRounds) << i;
    };
    std::thread other(work, 1);
    work(0);
    other.join();
}

TEST(StreamThreads, OrderOverRailsWithPollers) {
    keep_order_over_rails(false);
}

TEST(StreamThreads, OrderOverRailsOfWhichOneFails) {
    keep_order_over_rails(true);
}

}  // namespace
}  // namespace heddle::fabric
