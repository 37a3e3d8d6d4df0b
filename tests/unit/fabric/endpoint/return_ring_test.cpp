// ReturnRing by itself: values go where they were asked for, in order, native returns beside them; what nobody asked
// for is refused.
#include "fabric/endpoint/return_ring.h"

#include "fabric/protocol/record.h"

#include <gtest/gtest.h>
#include <cstring>
#include <string>
#include <vector>

namespace heddle::fabric {
namespace {

// Values as a reply carries them.
std::string reply(const std::vector<uint64_t>& words) {
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)};
}

class ReturnRingTest : public testing::Test {
  protected:
    ReturnRingTest() { ring.grow(); }
    void take(uint64_t* to) { ring.take(reinterpret_cast<char*>(to), sizeof *to); }
    bool on_reply(uint64_t first, const std::vector<uint64_t>& words) {
        const std::string body = reply(words);
        return ring.on_reply(first, static_cast<uint32_t>(words.size()), body.data(), body.size());
    }

    ReturnRing ring;
    uint64_t values[8] = {};
};

TEST_F(ReturnRingTest, ValuesGoWhereTheyWereAskedFor) {
    EXPECT_TRUE(ring.has_returned(0));
    for (uint64_t& value : values) take(&value);
    EXPECT_EQ(ring.head(), 8u);
    EXPECT_TRUE(on_reply(0, {10, 11, 12}));
    EXPECT_TRUE(ring.has_returned(3));
    EXPECT_FALSE(ring.has_returned(4));
    EXPECT_TRUE(on_reply(3, {13, 14, 15, 16, 17}));
    for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(values[i], 10 + i);
}

TEST_F(ReturnRingTest, AValueThatComesEarlyWaitsForThoseBeforeIt) {
    for (int i = 0; i < 2; ++i) take(&values[i]);
    EXPECT_TRUE(on_reply(1, {11}));
    EXPECT_FALSE(ring.has_returned(1));
    EXPECT_TRUE(on_reply(0, {10}));
    EXPECT_TRUE(ring.has_returned(2));
}

TEST_F(ReturnRingTest, NoReplyIsForANativeReturn) {
    take(&values[0]);
    ring.take_native(nullptr);
    take(&values[2]);
    EXPECT_TRUE(on_reply(0, {10, 12}));
    EXPECT_EQ(values[2], 12u);
    EXPECT_FALSE(ring.has_returned(2));
    ring.finish(ring.begin_native(1));
    EXPECT_TRUE(ring.has_returned(3));
    take(&values[3]);
    EXPECT_TRUE(on_reply(2, {13})) << "the third that is not native";
    EXPECT_EQ(values[3], 13u);
}

TEST_F(ReturnRingTest, ALargeReplyHasAPlaceOnce) {
    std::vector<char> large(kLargeBytes);
    take(&values[0]);
    ring.take(large.data(), large.size());
    uint64_t number = 0;
    EXPECT_EQ(ring.place_of_large(&number, 8), nullptr) << "it is not large";
    number = 1;
    EXPECT_EQ(ring.place_of_large(&number, kLargeBytes + 1), nullptr);
    number = 1;
    EXPECT_EQ(ring.place_of_large(&number, kLargeBytes), large.data());
    uint64_t again = 1;
    EXPECT_EQ(ring.place_of_large(&again, kLargeBytes), nullptr);
    ring.finish(number);
    EXPECT_FALSE(ring.has_returned(1));
    EXPECT_TRUE(on_reply(0, {10}));
    EXPECT_TRUE(ring.has_returned(2));
}

TEST_F(ReturnRingTest, WhatNobodyAskedForIsRefused) {
    EXPECT_FALSE(on_reply(0, {1}));
    take(&values[0]);
    EXPECT_FALSE(on_reply(1, {1}));
    EXPECT_FALSE(on_reply(UINT64_MAX, {1}));
    EXPECT_FALSE(on_reply(0, {1, 2}));
    EXPECT_FALSE(ring.on_reply(0, 1, "1234", 4)) << "shorter than a word";
    EXPECT_TRUE(on_reply(0, {1}));
    EXPECT_FALSE(on_reply(0, {1})) << "again";
    ring.take_native(nullptr);
    EXPECT_FALSE(on_reply(1, {1})) << "a native one";
}

TEST_F(ReturnRingTest, TheRingGrowsUntilSoManyReturnsMayBeOutstanding) {
    uint64_t number = 0;
    for (uint32_t size = kMinReturns;; size *= 4) {
        for (uint32_t i = 0; i < size; ++i) {
            ASSERT_TRUE(ring.has_space());
            ASSERT_FALSE(ring.should_grow());
            take(&values[i % 8]);
        }
        EXPECT_FALSE(ring.has_space());
        EXPECT_EQ(ring.should_grow(), size < kMaxReturns);
        EXPECT_TRUE(on_reply(number, std::vector<uint64_t>(size, size)));
        EXPECT_EQ(values[7], size);
        EXPECT_TRUE(ring.has_space());
        number += size;
        if (size == kMaxReturns)
            break;
        ring.grow();
    }
}

TEST_F(ReturnRingTest, SoManyBytesMayBeOutstandingAndOneReturnMore) {
    std::vector<char> large(2 * kMaxReturnBytes);
    ring.take(large.data(), large.size());
    EXPECT_FALSE(ring.has_space());
    uint64_t number = 0;
    ASSERT_NE(ring.place_of_large(&number, large.size()), nullptr);
    ring.finish(number);
    EXPECT_TRUE(ring.has_space()) << "nothing is outstanding";
}

using ReturnRingDeathTest = ReturnRingTest;

TEST_F(ReturnRingDeathTest, ANativeTransferBeginsAndEndsOnce) {
    ring.take_native(nullptr);
    ring.take_native(nullptr);
    ReturnRing::Return& second = ring.begin_native(1);
    EXPECT_EXIT(ring.begin_native(1), testing::ExitedWithCode(1), "entry.native && !entry.coming");
    ring.finish(second);
    EXPECT_EXIT(ring.finish(second), testing::ExitedWithCode(1), "entry.coming && !entry.done");
    EXPECT_EXIT(ring.begin_native(2), testing::ExitedWithCode(1), "number < published\\(\\)");
}

TEST_F(ReturnRingDeathTest, NoEntryIsTakenWhileItIsInUse) {
    for (uint32_t i = 0; i < kMinReturns; ++i) take(&values[0]);
    EXPECT_EXIT(take(&values[0]), testing::ExitedWithCode(1), "< size_");
    EXPECT_EXIT(ring.grow(), testing::ExitedWithCode(1), "has_returned\\(head_\\)");
}

}  // namespace
}  // namespace heddle::fabric
