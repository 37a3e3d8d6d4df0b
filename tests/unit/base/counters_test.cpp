// Counters: zeroed memory is a set of them, every row names a counter of its own, and one that several threads count
// exactly loses nothing.
#include "base/counters.h"

#include <gtest/gtest.h>
#include <cstring>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

namespace heddle::base {
namespace {

TEST(Counters, EveryRowIsACounterOfItsOwn) {
    Counters counted = {};
    std::set<std::string> names;
    for (const CounterRow& row : kCounterRows) {
        EXPECT_EQ((counted.*row.counter).read(), 0u) << row.name;
        (counted.*row.counter).add();
        (counted.*row.counter).add_cheaply();
        EXPECT_EQ((counted.*row.counter).read(), 2u) << row.name;
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
    }
    EXPECT_EQ(sizeof(Counters), (std::size(kCounterRows) * sizeof(Counter) + 63) / 64 * 64);
}

TEST(Counters, ThreadsLoseNothing) {
    constexpr int kThreads = 4, kTimes = 10000;
    Counter counter = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            for (int j = 0; j < kTimes; ++j) counter.add();
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(counter.read(), uint64_t{kThreads} * kTimes);
}

}  // namespace
}  // namespace heddle::base
