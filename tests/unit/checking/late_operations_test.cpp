// The order in which late operations leave: any, but for epochs.
#include "checking/chaos/late_operations.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace heddle::checking {
namespace {

heddle_ctx contexts[3];

// The operation's number is its operand.
LateOperation numbered(uint64_t number, int pe, shmem_ctx_t ctx = &contexts[0]) {
    LateOperation late;
    late.operation.kind = operations::Operation::Kind::kAtomic;
    late.operation.ctx = ctx;
    late.operation.pe = late.operation.world_pe = pe;
    late.operation.operand = number;
    return late;
}

std::vector<uint64_t> take_all(LateOperations& all, Random& random, const Selection& selection = {}) {
    std::vector<uint64_t> order;
    for (LateOperation late; all.take(random, selection, &late);) order.push_back(late.operation.operand);
    return order;
}

TEST(LateOperationsTest, EachOrderIsDrawn) {
    std::set<std::vector<uint64_t>> orders;
    for (uint64_t seed = 0; seed < 1000; ++seed) {
        LateOperations all;
        for (uint64_t i = 0; i < 4; ++i) all.add(numbered(i, static_cast<int>(i % 2)));
        Random random(seed);
        orders.insert(take_all(all, random));
        EXPECT_TRUE(all.empty());
    }
    EXPECT_EQ(orders.size(), 24u);
}

TEST(LateOperationsTest, OneSeedDrawsOneOrder) {
    std::set<std::vector<uint64_t>> orders;
    for (int i = 0; i < 10; ++i) {
        LateOperations all;
        for (uint64_t number = 0; number < 50; ++number) all.add(numbered(number, static_cast<int>(number % 7)));
        Random random(17);
        orders.insert(take_all(all, random));
    }
    EXPECT_EQ(orders.size(), 1u);
}

// Operations on several contexts to several PEs with fences in between: none of a later epoch leaves before one of an
// earlier epoch of its context and PE, and all leave once.
TEST(LateOperationsTest, AFenceHoldsForItsContextAndEachPe) {
    int crossed = 0;
    for (uint64_t seed = 0; seed < 300; ++seed) {
        Random random(seed);
        LateOperations all;
        struct Issued {
            size_t ctx;
            int pe;
            uint64_t epoch;
        };
        std::vector<Issued> issued;
        std::vector<uint64_t> left;
        uint64_t fences[3] = {};
        for (int step = 0; step < 200; ++step) {
            const size_t ctx = random.below(3);
            if (random.one_in(5)) {
                all.fence(&contexts[ctx]);
                ++fences[ctx];
            } else if (LateOperation late; random.one_in(4) && all.take(random, {}, &late)) {
                left.push_back(late.operation.operand);
            } else {
                const int pe = static_cast<int>(random.below(4));
                all.add(numbered(issued.size(), pe, &contexts[ctx]));
                issued.push_back({ctx, pe, fences[ctx]});
            }
        }
        const std::vector<uint64_t> rest = take_all(all, random);
        left.insert(left.end(), rest.begin(), rest.end());
        ASSERT_EQ(left.size(), issued.size()) << "seed " << seed;
        EXPECT_EQ(std::set(left.begin(), left.end()).size(), issued.size()) << "seed " << seed;
        std::map<std::pair<size_t, int>, uint64_t> last;
        uint64_t last_of_all = 0;
        for (const uint64_t number : left) {
            const Issued& each = issued[number];
            uint64_t& epoch = last[{each.ctx, each.pe}];
            EXPECT_GE(each.epoch, epoch) << "seed " << seed;
            epoch = std::max(epoch, each.epoch);
            crossed += each.epoch < last_of_all;
            last_of_all = std::max(last_of_all, each.epoch);
        }
        EXPECT_TRUE(all.empty());
        EXPECT_EQ(all.bytes(), 0u);
    }
    EXPECT_GT(crossed, 0);  // a fence orders nothing between PEs, nor between contexts
}

TEST(LateOperationsTest, WhatAFenceHasPassedIsMarked) {
    LateOperations all;
    Random random(1);
    LateOperation late;
    all.add(numbered(0, 1));
    ASSERT_TRUE(all.take(random, {}, &late));
    EXPECT_FALSE(late.fenced);
    all.add(numbered(0, 1));
    all.fence(&contexts[1]);
    ASSERT_TRUE(all.take(random, {}, &late));
    EXPECT_FALSE(late.fenced);
    all.add(numbered(0, 1));
    all.fence(&contexts[0]);
    ASSERT_TRUE(all.take(random, {}, &late));
    EXPECT_TRUE(late.fenced);  // the last of its context
}

TEST(LateOperationsTest, AnOperationWaitsForEarlierEpochsOfItsTargetAlone) {
    LateOperations all;
    Random random(1);
    LateOperation late;
    all.add(numbered(0, 1));
    all.add(numbered(1, 2));
    const auto fetch_from = [](int pe) { return numbered(9, pe).operation; };
    EXPECT_FALSE(all.has_earlier(fetch_from(1)));
    all.fence(&contexts[0]);
    EXPECT_TRUE(all.has_earlier(fetch_from(1)));
    EXPECT_FALSE(all.has_earlier(fetch_from(3)));
    all.add(numbered(2, 1));  // of the epoch of the fetch
    ASSERT_TRUE(all.take_earlier(random, fetch_from(1), &late));
    EXPECT_EQ(late.operation.operand, 0u);
    EXPECT_FALSE(all.take_earlier(random, fetch_from(1), &late));
    EXPECT_EQ(all.size(), 2u);
}

TEST(LateOperationsTest, SelectionsTakeTheirOwn) {
    LateOperations all;
    Random random(1);
    for (uint64_t i = 0; i < 30; ++i) all.add(numbered(i, static_cast<int>(i % 5), &contexts[i % 3]));
    const int pes[] = {1, 3};
    for (const uint64_t number : take_all(all, random, {.ctx = &contexts[0], .pes = pes, .npes = 2})) {
        EXPECT_EQ(number % 3, 0u);
        EXPECT_TRUE(number % 5 == 1 || number % 5 == 3);
    }
    EXPECT_EQ(all.size(), 26u);
    EXPECT_EQ(take_all(all, random, {.ctx = &contexts[2]}).size(), 10u);
    EXPECT_FALSE(all.has({.ctx = &contexts[2]}));
    EXPECT_TRUE(all.has({.ctx = &contexts[1]}));
    LateOperation later = numbered(30, 0);
    later.due_ns = 100;
    all.add(std::move(later));
    for (const uint64_t number : take_all(all, random, {.due_ns = 99})) EXPECT_NE(number, 30u);
    EXPECT_EQ(take_all(all, random, {.due_ns = 100}), std::vector<uint64_t>{30});
}

}  // namespace
}  // namespace heddle::checking
