// Snapshot: readers see values that were written as a whole.
#include "sync/snapshot.h"

#include <gtest/gtest.h>
#include <sys/time.h>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace heddle::sync {
namespace {

struct Value {
    uint64_t words[40];
};

TEST(Snapshot, BeginsAsZeroes) {
    const auto snapshot = std::make_unique<Snapshot<Value>>();
    Value value;
    ASSERT_TRUE(snapshot->read(&value));
    for (const uint64_t word : value.words) EXPECT_EQ(word, 0u);
}

TEST(Snapshot, IsReadWhole) {
    const auto snapshot = std::make_unique<Snapshot<Value>>();
    std::atomic<bool> over{false};
    std::atomic<uint64_t> seen{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i)
        readers.emplace_back([&] {
            uint64_t last = 0;
            while (!over.load(std::memory_order_relaxed)) {
                Value value;
                if (!snapshot->read(&value))
                    continue;
                for (const uint64_t word : value.words) ASSERT_EQ(word, value.words[0]);
                ASSERT_GE(value.words[0], last) << "no older value behind a newer one";
                last = value.words[0];
                seen.fetch_add(last != 0, std::memory_order_relaxed);
            }
        });
    for (uint64_t number = 1; number <= 20000 || seen.load(std::memory_order_relaxed) < 100; ++number) {
        Value value;
        for (uint64_t& word : value.words) word = number;
        snapshot->write(value);
        if (number % 256 == 0)
            std::this_thread::yield();
    }
    over.store(true, std::memory_order_relaxed);
    for (std::thread& reader : readers) reader.join();
}

Snapshot<Value>* interrupted;
std::atomic<int> reads_inside, failed, torn;

void read_inside(int) {
    Value value;
    if (!interrupted->read(&value))
        failed.fetch_add(1, std::memory_order_relaxed);
    else if (value.words[0] != value.words[39])
        torn.fetch_add(1, std::memory_order_relaxed);
    reads_inside.fetch_add(1, std::memory_order_relaxed);
}

// The reader is a handler of a signal that finds the writer in the middle of a write, nearly always.
TEST(Snapshot, IsReadWhereItsWriterStandsStill) {
    const auto snapshot = std::make_unique<Snapshot<Value>>();
    interrupted = snapshot.get();
    struct sigaction action = {}, before;
    action.sa_handler = read_inside;
    sigaction(SIGVTALRM, &action, &before);
    const itimerval often = {{0, 100}, {0, 100}}, never = {};
    setitimer(ITIMER_VIRTUAL, &often, nullptr);
    for (uint64_t number = 1; reads_inside.load(std::memory_order_relaxed) < 100; ++number) {
        Value value;
        for (uint64_t& word : value.words) word = number;
        snapshot->write(value);
    }
    setitimer(ITIMER_VIRTUAL, &never, nullptr);
    sigaction(SIGVTALRM, &before, nullptr);
    EXPECT_EQ(failed.load(std::memory_order_relaxed), 0);
    EXPECT_EQ(torn.load(std::memory_order_relaxed), 0);
}

}  // namespace
}  // namespace heddle::sync
