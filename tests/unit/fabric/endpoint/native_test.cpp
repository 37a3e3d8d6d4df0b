// Puts and gets that go straight into place: what they wait for, what waits for them, and how replies are told apart.
#include "unit/fabric/pair.h"

#include <gtest/gtest.h>
#include <string>

namespace heddle::fabric {
namespace {

class NativeTest : public testing::Test {
  protected:
    void put_large(uint64_t offset) { put(stream, offset, data.data(), data.size()); }
    void poll(int times) {
        while (times-- > 0) pair.poll();
    }
    std::string there(size_t offset) { return {pair[1].heap() + offset, data.size()}; }

    Pair pair{{.native = true}};
    const Waiting waiting{nullptr};
    Stream& stream = pair[0].to_other();
    Transport::Channel& cable = pair[0].cable();
    const std::string data = std::string(kLargeBytes + 5, 'n');
    const uint64_t behind = 8 * 16384;  // an offset behind the data
};

TEST_F(NativeTest, APutIsNoMessageAndQuietWhenItIsThere) {
    cable.native_moves = 0;
    put_large(0);
    poll(20);
    EXPECT_EQ(cable.native.size(), 1u);
    EXPECT_FALSE(stream.is_quiet() || stream.is_local());
    cable.native_moves = SIZE_MAX;
    cable.keeps = true;  // it is there, and not yet told
    poll(20);
    EXPECT_EQ(there(0), data);
    EXPECT_FALSE(stream.is_quiet() || stream.is_local());
    cable.keeps = false;
    pair.settle();
    EXPECT_TRUE(stream.is_quiet() && stream.is_local());
    EXPECT_TRUE(cable.sent.empty());
}

TEST_F(NativeTest, AGetBringsWhatIsThere) {
    pair[1].word(2) = 9;
    uint64_t value = 0;
    stream.is_native("test");
    stream.get_native("test", reinterpret_cast<char*>(&value), {16}, sizeof value);
    pair.settle();
    EXPECT_EQ(value, 9u);
    EXPECT_TRUE(stream.is_quiet());
    EXPECT_TRUE(cable.sent.empty());
}

TEST_F(NativeTest, RecordsBehindAFenceWaitForPutsBeforeIt) {
    cable.native_moves = 0;
    put_large(0);
    put_word(stream, behind, 1);
    stream.order("test");
    put_word(stream, behind + 8, 2);
    stream.flush();
    poll(20);
    EXPECT_EQ(pair[1].word(behind / 8), 1u);
    EXPECT_EQ(pair[1].word(behind / 8 + 1), 0u);
    EXPECT_FALSE(stream.is_quiet());
    cable.native_moves = SIZE_MAX;
    pair.settle();
    EXPECT_EQ(pair[1].word(behind / 8 + 1), 2u);
    EXPECT_EQ(there(0), data);
    EXPECT_TRUE(stream.is_quiet());
}

TEST_F(NativeTest, ARecordLeavesAtOnceWhenTheFenceBeforeItHasEndedAndNothingIsInFlight) {
    put_word(stream, behind, 1);
    put_large(0);  // waits for the acknowledgement of the word
    stream.order("test");
    poll(20);
    EXPECT_TRUE(stream.is_quiet());
    put_word(stream, behind + 8, 2);  // and nobody flushes
    poll(20);
    EXPECT_EQ(pair[1].word(behind / 8 + 1), 2u);
}

TEST_F(NativeTest, ARecordThatAFenceHoldsLeavesWithTheReplyThatEndsTheFence) {
    std::string gotten(kLargeBytes, '#');
    cable.keeps_large = true;
    get(stream, gotten.data(), 0, kLargeBytes);
    put_large(kLargeBytes);
    stream.order("test");
    put_word(stream, behind + 8, 2);
    poll(20);
    EXPECT_EQ(there(kLargeBytes), data);  // complete, but not told before the reply
    EXPECT_EQ(pair[1].word(behind / 8 + 1), 0u);
    cable.keeps_large = false;
    poll(20);
    EXPECT_EQ(pair[1].word(behind / 8 + 1), 2u);
}

TEST_F(NativeTest, PutsAndGetsBehindAFenceWaitForPutsBeforeIt) {
    cable.native_moves = 0;
    put_large(0);
    stream.order("test");
    put_large(1);
    uint64_t value = 0;
    stream.get_native("test", reinterpret_cast<char*>(&value), {0}, sizeof value);
    poll(20);
    EXPECT_EQ(cable.native.size(), 1u);
    cable.native_moves = SIZE_MAX;
    pair.settle();
    EXPECT_EQ(there(1), data);
    EXPECT_EQ(value, 0x6e6e6e6e6e6e6e6eu);
    EXPECT_TRUE(stream.is_quiet() && stream.is_local());
}

TEST_F(NativeTest, ASecondFenceWaitsForWhatTheFirstHoldsBack) {
    cable.native_moves = 0;
    put_large(0);
    stream.order("test");
    put_large(1);
    int polls = 0;
    pair.instead = [&] {
        if (++polls == 5)
            cable.native_moves = 1;
        return pair.poll();
    };
    stream.order("test");
    EXPECT_GE(polls, 5);
    put_word(stream, behind, 3);
    stream.flush();
    poll(20);
    EXPECT_EQ(cable.native.size(), 1u);
    EXPECT_EQ(pair[1].word(behind / 8), 0u);
    cable.native_moves = SIZE_MAX;
    pair.settle();
    EXPECT_EQ(pair[1].word(behind / 8), 3u);
    EXPECT_EQ(there(1), data);
}

TEST_F(NativeTest, APutWaitsForTheRecordsBeforeIt) {
    const uint64_t other = 5;
    stream.is_native("test");
    cable.holds = true;
    put_word(stream, 0, other);
    put_large(0);
    poll(20);
    EXPECT_TRUE(cable.native.empty());
    EXPECT_EQ(pair[1].word(0), 0u);
    cable.holds = false;
    pair.settle();
    EXPECT_EQ(there(0), data);
}

TEST_F(NativeTest, APutHurriesTheRecordsThatItWaitsFor) {
    put_word(stream, behind, 1);
    put_word(stream, behind, 2);  // gathers while the first is in flight
    EXPECT_EQ(cable.sent.size(), 1u);
    put_large(0);
    EXPECT_EQ(cable.sent.size(), 2u);
}

TEST_F(NativeTest, RepliesAreToldFromNativeOnes) {
    const std::string large(kLargeBytes, 'l');
    std::string gotten[3];
    uint64_t old[4], native[4];
    for (uint64_t i = 0; i < 4; ++i) pair[1].word(100 + i) = 40 + i;
    std::fill_n(pair[1].heap() + behind, kLargeBytes, 'l');
    put_word(stream, 0, 0);
    stream.is_native("test");
    pair.settle();
    for (const bool kept : {true, false}) {
        cable.native_moves = kept ? 0 : SIZE_MAX;
        for (int i = 0; i < 3; ++i) gotten[i].assign(kLargeBytes, '#');
        for (uint64_t i = 0; i < 4; ++i) {
            native[i] = old[i] = ~uint64_t{0};
            fetch_add(stream, &old[i], 8 * (100 + i), 10);
            if (i != 3)
                get(stream, gotten[i].data(), behind, kLargeBytes);
            stream.get_native("test", reinterpret_cast<char*>(&native[i]), {8 * (100 + i)}, sizeof native[i]);
        }
        const uint64_t first = stream.returns() - 11;
        stream.flush();
        poll(100);
        for (uint64_t i = 0; i < 4; ++i) {
            EXPECT_EQ(old[i], (kept ? 40 : 50) + i);
            EXPECT_EQ(native[i], kept ? ~uint64_t{0} : 60 + i);
        }
        for (const std::string& one : gotten) EXPECT_TRUE(one == large);
        EXPECT_EQ(stream.has_returned(first + 2), true);
        EXPECT_EQ(stream.has_returned(first + 3), !kept);
        cable.native_moves = SIZE_MAX;
        pair.settle();
        EXPECT_TRUE(stream.is_quiet());
    }
}

TEST_F(NativeTest, MoreThanThereIsRoomForWait) {
    constexpr int kMany = 300;
    uint64_t values[kMany] = {};
    for (int i = 0; i < kMany; ++i) pair[1].word(static_cast<size_t>(i)) = static_cast<uint64_t>(i) + 1;
    stream.is_native("test");
    for (int i = 0; i < kMany; ++i)
        stream.get_native("test", reinterpret_cast<char*>(&values[i]), {8 * static_cast<uint64_t>(i)},
                          sizeof values[i]);
    pair.settle();
    for (int i = 0; i < kMany; ++i) EXPECT_EQ(values[i], static_cast<uint64_t>(i) + 1);
    EXPECT_TRUE(stream.is_quiet() && stream.is_local());
}

}  // namespace
}  // namespace heddle::fabric
