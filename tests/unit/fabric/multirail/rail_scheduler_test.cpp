// RailScheduler: operations spread over several, a fence that counts and does not wait, order over all of them; and
// which interfaces make up which rail.
#include "fabric/multirail/rail_scheduler.h"
#include "fabric/multirail/rail_devices.h"
#include "unit/fabric/pair.h"
#include "unit/fabric/records.h"

#include <gtest/gtest.h>
#include <cstring>
#include <string>
#include <vector>

namespace heddle::fabric {
namespace {

constexpr size_t kHeapBytes = 8 * 1024 * 1024;
constexpr size_t kWords = kHeapBytes / 8;

struct RailsTest : testing::Test {
    explicit RailsTest(Spread spread = Spread::kAnyOrder, int n_rails = 2)
        : pair({}, kHeapBytes, kMessageBytes, n_rails, spread) {}

    void put(size_t index, uint64_t value) { put_word(stream_set.to(1), 8 * index, value); }
    // Words [first, last) with what tells them from others.
    void put_words(size_t first, size_t last) {
        for (size_t i = first; i < last; ++i) put(i, i + 1);
    }
    // Rings grow when they are full, and free: before a rail stands.
    void grow_rings() {
        put_words(0, 100 * kMessageBytes / 16);
        pair.settle();
        memset(pair[1].heap(), 0, kHeapBytes);
    }
    bool has_words(size_t first, size_t last) {
        for (size_t i = first; i < last; ++i)
            if (pair[1].word(i) != i + 1)
                return false;
        return true;
    }
    size_t messages(int rail) { return pair[0].sent(MessageKind::kRecords, rail); }
    uint64_t published() {
        uint64_t bytes = 0;
        stream_set.all([&](Stream& stream) {
            bytes += stream.published();
            return true;
        });
        return bytes;
    }

    Pair pair;
    const Waiting waiting{nullptr};
    StreamSet& stream_set = pair[0].stream_set();
};
using RailsDeathTest = RailsTest;

struct RailsInOrder : RailsTest {
    RailsInOrder() : RailsTest(Spread::kInOrder) {}
};
struct RailsOfOne : RailsTest {
    RailsOfOne() : RailsTest(Spread::kOneRail) {}
};

TEST_F(RailsTest, FullMessagesGoToTheRailWithLeastUnderWay) {
    put_words(0, 10 * kMessageBytes / 16);
    pair.settle();
    EXPECT_TRUE(has_words(0, 10 * kMessageBytes / 16));
    EXPECT_GE(messages(0), 4u);
    EXPECT_GE(messages(1), 4u);
}

TEST_F(RailsTest, ARailThatStandsGetsNoMoreThanItsShare) {
    constexpr size_t kAll = 100 * kMessageBytes / 16;
    grow_rings();
    const size_t before[] = {messages(0), messages(1)};
    pair[0].cable(0).holds = true;
    put_words(0, kAll);
    for (int i = 0; i < 100; ++i) pair.poll();
    EXPECT_GE(messages(1) - before[1], 90u);
    EXPECT_LE(messages(0) - before[0], 6u);
    pair[0].cable(0).holds = false;
    pair.settle();
    EXPECT_TRUE(has_words(0, kAll));
}

TEST_F(RailsOfOne, StayOnTheirRail) {
    put_words(0, 10 * kMessageBytes / 16);
    pair.settle();
    EXPECT_EQ(messages(1), 0u);
    EXPECT_TRUE(has_words(0, 10 * kMessageBytes / 16));
}

TEST_F(RailsTest, AFenceWithNothingUnderWaySaysNothing) {
    put_words(0, 3 * kMessageBytes / 16);
    pair.settle();
    const uint64_t before = published();
    for (int i = 0; i < 10; ++i) stream_set.order("test", 1);
    stream_set.order_all("test");
    EXPECT_EQ(published(), before);
}

// Nothing of the second phase is seen before all of the first, whichever rail stands; and who fences does not wait.
TEST_F(RailsTest, WhatComesBehindAFenceIsHeldBackUntilAllBeforeIsThere) {
    constexpr size_t kPhase = 4 * kMessageBytes / 16;
    for (const int slow : {0, 1}) {
        grow_rings();
        pair[0].cable(slow).holds = true;
        put_words(0, kPhase);
        stream_set.order("test", 1);
        put_words(kPhase, 2 * kPhase);
        stream_set.all([](Stream& stream) {
            stream.flush();
            return true;
        });
        for (int i = 0; i < 100; ++i) pair.poll();
        EXPECT_FALSE(has_words(0, kPhase));
        for (size_t i = kPhase; i < 2 * kPhase; ++i) ASSERT_EQ(pair[1].word(i), 0u) << i << ", rail " << slow;
        pair[0].cable(slow).holds = false;
        pair.settle();
        EXPECT_TRUE(has_words(0, 2 * kPhase));
        EXPECT_TRUE(pair[0].is_quiet(0));
    }
}

TEST_F(RailsTest, LargeDataIsBehindAFenceToo) {
    const std::string data(3 * kMaxPiece, 'x');
    stream_set.to(1);
    RailScheduler& rails = *stream_set.to(1).rails;
    for (size_t at = 0; at < data.size(); at += kMaxPiece)
        rails.fastest("test").put_large("test", {at}, data.data() + at, kMaxPiece);
    EXPECT_NE(rails.on(0), nullptr);
    ASSERT_NE(rails.on(1), nullptr);
    pair[1].cable(0).keeps_large = pair[1].cable(1).keeps_large = true;
    stream_set.order("test", 1);
    put(kWords - 1, 7);
    for (int i = 0; i < 100; ++i) pair.poll();
    EXPECT_EQ(pair[1].word(kWords - 1), 0u);
    pair[1].cable(0).keeps_large = false;
    for (int i = 0; i < 100; ++i) pair.poll();
    EXPECT_EQ(pair[1].word(kWords - 1), 0u);
    pair[1].cable(1).keeps_large = false;
    pair.settle();
    EXPECT_EQ(pair[1].word(kWords - 1), 7u);
    EXPECT_EQ(memcmp(pair[1].heap(), data.data(), data.size()), 0);
}

TEST_F(RailsInOrder, NothingIsSeenAheadOfWhatWasPutBefore) {
    constexpr size_t kAll = 12 * kMessageBytes / 16;
    grow_rings();
    const size_t before = messages(1);
    pair[0].cable(0).holds = true;
    put_words(0, kAll);
    for (int i = 0; i < 100; ++i) pair.poll();
    EXPECT_GT(messages(1), before);  // they are there, and held back
    size_t seen = 0;
    while (seen < kAll && pair[1].word(seen) != 0) ++seen;
    EXPECT_LT(seen, kAll);
    for (size_t i = seen; i < kAll; ++i) ASSERT_EQ(pair[1].word(i), 0u) << i;
    pair[0].cable(0).holds = false;
    pair.settle();
    EXPECT_TRUE(has_words(0, kAll));
}

TEST_F(RailsDeathTest, ARailThatIsNoneIsNoReasonToWait) {
    for (const unsigned rail : {0u, 2u, 1023u}) {  // its own, and others that there are not
        const Records records = Records().after(rail, 8).put_word({}, 1);
        EXPECT_EXIT(pair[1].arrives(RecordsHeader{}, records.data(), records.size()), testing::ExitedWithCode(1),
                    "records that wait for a rail that is none");
    }
}

// --- Interfaces

struct Dealt {
    std::vector<std::string> rails;
    std::string error;
};

Dealt deal(const char* named, uint64_t rails) {
    Dealt dealt;
    char error[512] = "";
    if (!deal_devices(named, rails, &dealt.rails, error, sizeof error))
        dealt.error = error;
    return dealt;
}

TEST(RailDevices, AreDealtInTurns) {
    EXPECT_EQ(deal("", 1).rails, (std::vector<std::string>{""}));
    EXPECT_EQ(deal("^lo,all", 1).rails, (std::vector<std::string>{"^lo,all"}));
    EXPECT_EQ(deal("a,b", 2).rails, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(deal("a,b,c,d,e", 2).rails, (std::vector<std::string>{"a,c,e", "b,d"}));
    EXPECT_EQ(deal("lo,lo,lo", 3).rails, (std::vector<std::string>{"lo", "lo", "lo"}));
}

TEST(RailDevices, ThatCannotBeAreRefused) {
    EXPECT_EQ(deal("a,b", 3).error,
              "HEDDLE_NET_RAILS=3: there are 2 interfaces for them (HEDDLE_NET_DEVICES=a b); right would be no more "
              "rails than interfaces");
    EXPECT_EQ(deal("a", 0).error, "HEDDLE_NET_RAILS=0: right would be 1 to 8");
    EXPECT_EQ(deal("a,a,a,a,a,a,a,a,a", 9).error, "HEDDLE_NET_RAILS=9: right would be 1 to 8");
    for (const char* const named : {"all", "^lo", "a,^b", "a,,b", ",a"})
        EXPECT_NE(deal(named, 2).error.find("right would be the names of interfaces"), std::string::npos) << named;
    EXPECT_NE(deal("", 8).error.find("for them ("), std::string::npos);
}

}  // namespace
}  // namespace heddle::fabric
