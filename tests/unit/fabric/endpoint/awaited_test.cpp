// Awaited: a quiet waits for what was posted before it, to all streams at once.
#include "fabric/endpoint/awaited.h"
#include "unit/fabric/pair.h"

#include <gtest/gtest.h>
#include <vector>

namespace heddle::fabric {
namespace {

class AwaitedTest : public testing::Test {
  protected:
    Stream& stream(uint32_t stream_set) { return pair[0].to_other(stream_set); }
    void put_on_all(uint64_t value) {
        for (uint32_t i = 0; i < kStreamSets; ++i) put_word(stream(i), 8 * i, value);
    }
    void quiet() {
        wait_until_quiet("test", [&](auto visit) {
            for (uint32_t i = 0; i < kStreamSets; ++i) visit(stream(i));
        });
    }
    void expect_arrived(uint64_t least) {
        for (uint32_t i = 0; i < kStreamSets; ++i) EXPECT_GE(pair[1].word(i), least) << i;
    }

    Pair pair;
    const Waiting waiting{nullptr};
};

// Other threads put again as soon as they can: the streams are never quiet, and an acknowledgement of each is enough.
TEST_F(AwaitedTest, WhatIsPostedMeanwhileIsNotWaitedFor) {
    put_on_all(1);
    uint64_t value = 1;
    pair.instead = [&] {
        pair.settle();
        put_on_all(++value);
        return true;
    };
    quiet();
    EXPECT_EQ(value, 2u) << "one round trip";
    expect_arrived(1);
    for (uint32_t i = 0; i < kStreamSets; ++i) EXPECT_FALSE(stream(i).is_quiet()) << i;
    pair.settle();
}

TEST_F(AwaitedTest, WhatGathersLeaves) {
    constexpr uint64_t kRecords = 3;  // the last ones gather behind messages in flight
    for (uint64_t value = 1; value <= kRecords; ++value) put_on_all(value);
    quiet();
    expect_arrived(kRecords);
    for (uint32_t i = 0; i < kStreamSets; ++i) EXPECT_TRUE(stream(i).is_quiet()) << i;
}

TEST_F(AwaitedTest, QuietStreamsAreNotWaitedFor) {
    put_on_all(1);
    pair.settle();
    pair.instead = [] { return ADD_FAILURE() << "waits", false; };
    quiet();
    Awaited none("test");
    none.wait();
}

TEST_F(AwaitedTest, BeyondItsMostEachLotHasAWaitOfItsOwn) {
    Awaited awaited("test");
    put_on_all(1);
    int polls = 0;
    pair.instead = [&] { return ++polls, pair.poll(); };
    for (size_t i = 0; i < Awaited::kMost; ++i) awaited.add(stream(static_cast<uint32_t>(i % kStreamSets)));
    EXPECT_EQ(polls, 0);
    awaited.add(stream(0));
    EXPECT_GT(polls, 0);
    expect_arrived(1);
    awaited.wait();
}

TEST_F(AwaitedTest, ReturnsAreWaitedFor) {
    pair[1].word(5) = 55;
    uint64_t fetched = 0;
    get(stream(0), &fetched, 40, sizeof fetched);
    quiet();
    EXPECT_EQ(fetched, 55u);
}

}  // namespace
}  // namespace heddle::fabric
