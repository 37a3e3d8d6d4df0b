// Records that wait for acks: of one stream, and of several stream sets to one PE. What leaves together, and that
// nothing waits for what does not come.
#include "base/counters.h"
#include "unit/fabric/pair.h"

#include <gtest/gtest.h>
#include <string>

namespace heddle::fabric {
namespace {

class GatherTest : public testing::Test {
  protected:
    GatherTest() {
        for (uint32_t i = 0; i < kStreamSets; ++i) put_word(stream(i), 8 * i, 1);  // connects
        pair.settle();
        for (size_t& count : before) count = pair[static_cast<int>(&count - before)].cable().sent.size();
    }
    Stream& stream(uint32_t stream_set) { return pair[0].to_other(stream_set); }
    // Records of so many streams, a word each, which leave at once.
    void make_busy(uint32_t count = kMaxBusy) {
        const size_t earlier = sent(0);
        for (uint32_t i = 0; i < count; ++i) put_word(stream(i), 8 * i, 2);
        EXPECT_EQ(sent(0), earlier + count);
    }
    size_t sent(int pe) { return pair[pe].cable().sent.size() - before[pe]; }
    Header last_sent(int pe) { return pair[pe].cable().sent.back(); }
    void poll(int pe) { pair[pe].channel().poll(); }
    // Every thread has waited at once behind its last put, and is expected to do so behind the next.
    void expect_waits() {
        for (uint32_t i = 0; i < kStreamSets; ++i) {
            StreamSet& stream_set = pair[0].stream_set(i);
            while (!stream_set.producer.expected_wait.is_expected()) {  // a test that was interrupted tries again
                put_word(stream(i), 8 * i, 1);
                stream_set.begin_wait();
                pair.settle();
            }
        }
    }
    void expect_all_done() {
        pair.settle();
        for (uint32_t i = 0; i < kStreamSets; ++i) EXPECT_TRUE(stream(i).is_quiet()) << i;
        EXPECT_FALSE(pair[0].is_active());
    }

    Pair pair;
    const Waiting waiting{nullptr};
    size_t before[2] = {};
};

TEST_F(GatherTest, WhatHasLeftNeedsNoPoll) {
    Stream& one = stream(0);
    EXPECT_TRUE(one.has_left());
    put_word(one, 0, 1);
    EXPECT_TRUE(one.has_left());
    put_word(one, 8, 2);
    EXPECT_FALSE(one.has_left()) << "gathers behind the first";
    pair.settle();
    EXPECT_TRUE(one.has_left());
    const std::string data(kLargeBytes, 'x');
    put(one, 0, data.data(), data.size());
    EXPECT_FALSE(one.has_left()) << "the body may not be overwritten";
    pair.settle();
    EXPECT_TRUE(one.has_left());
}

// In a session (SHMEM_CTX_SESSION_BATCH) nothing leaves before a message is full or something flushes.
class BatchTest : public GatherTest {
  protected:
    BatchTest() { pair[0].producer(0).batches = &batches; }
    void put_words(size_t words) {
        ++value;
        for (size_t i = 0; i < words; ++i) put_word(one, 8 * i, value + i);
    }
    void expect_words(size_t words) {
        for (size_t i = 0; i < words; ++i) EXPECT_EQ(pair[1].word(i), value + i) << i;
    }

    std::atomic<bool> batches{true};
    Stream& one = stream(0);
    uint64_t value = 100;
};

TEST_F(BatchTest, ABurstLeavesInOneMessage) {
    for (const size_t words : {1, 2, 3, 64, 250}) {  // no message ends with a lap
        for (int i = 0; i < 4; ++i) {                // the ring grows
            put_words(words);
            one.flush();
            pair.settle();
        }
        const size_t puts = sent(0), acks = sent(1);
        put_words(words);
        poll(0);
        pair.settle();
        EXPECT_EQ(sent(0), puts) << words << " words, nobody has flushed";
        EXPECT_FALSE(one.is_flushed());
        EXPECT_FALSE(one.has_left());
        pair[0].stream_set(0).flush();
        pair.settle();
        EXPECT_EQ(sent(0), puts + 1) << words;
        EXPECT_EQ(sent(1), acks + 1) << words;
        expect_words(words);
        EXPECT_TRUE(one.is_quiet());
    }
    expect_all_done();
}

TEST_F(BatchTest, AFullMessageLeaves) {
    constexpr size_t kWords = kMessageBytes / 16;
    for (int i = 0; i < 4; ++i) {  // the ring grows
        put_words(2 * kWords);
        one.flush();
        pair.settle();
    }
    const size_t puts = sent(0);
    const uint64_t position = one.position();
    put_words(2 * kWords);
    pair.settle();
    EXPECT_EQ(sent(0), puts + 2);
    EXPECT_TRUE(one.is_complete(position + kMessageBytes));
    EXPECT_FALSE(one.is_quiet());
    one.flush();
    expect_all_done();
    expect_words(2 * kWords);
}

TEST_F(BatchTest, AtItsEndRecordsLeaveAtOnceAgain) {
    put_words(3);
    batches = false;  // as operations::remote_batch ends it
    one.flush();
    poll(0);
    expect_all_done();
    const size_t puts = sent(0);
    put_word(one, 0, 7);
    EXPECT_EQ(sent(0), puts + 1);
    expect_all_done();
    EXPECT_EQ(pair[1].word(0), 7u);
}

TEST_F(BatchTest, AnAckSendsNothing) {
    batches = false;
    put_word(one, 0, 1);
    batches = true;
    const size_t puts = sent(0);
    put_words(5);
    pair.settle();  // what was in flight is acknowledged
    EXPECT_EQ(sent(0), puts);
    one.flush();
    expect_all_done();
    expect_words(5);
}

// Puts and a quiet: the first put alone, and the others, but for full messages.
TEST_F(GatherTest, ABurstLeavesInTwoMessages) {
    constexpr size_t kRounds = 50;
    Stream& one = stream(0);
    for (const size_t words : {2, 3, 64, 1000, 1024, 3000}) {
        const auto put_burst = [&] {
            for (size_t i = 0; i < words; ++i) put_word(one, 8 * i, i + words);
            one.flush();
            pair.settle();
            ASSERT_TRUE(one.is_quiet());
            for (size_t i = 0; i < words; ++i) ASSERT_EQ(pair[1].word(i), i + words);
        };
        for (int i = 0; i < 3; ++i) put_burst();  // the ring grows
        const size_t puts = sent(0), acks = sent(1);
        for (size_t i = 0; i < kRounds; ++i) put_burst();
        const size_t most = 2 * kRounds + kRounds * words * 2 * record::kWord / kMessageBytes + 1;
        EXPECT_LE(sent(0) - puts, most) << words << " words";
        EXPECT_LE(sent(1) - acks, most) << words << " words";
    }
}

TEST_F(GatherTest, OneOperationAtATimeIsAMessageEachWayAndNoFence) {
    const uint64_t fences = base::counters->heavy_fences.read();
    constexpr size_t kRounds = 2000;  // which the first ring does not take
    for (size_t i = 1; i <= kRounds; ++i) {
        put_word(stream(0), 0, i);
        stream(0).flush();
        pair.settle();
        ASSERT_EQ(pair[1].word(0), i);
    }
    EXPECT_EQ(sent(0), kRounds);
    EXPECT_EQ(sent(1), kRounds);
    EXPECT_EQ(base::counters->heavy_fences.read(), fences);
}

TEST_F(GatherTest, RecordsOfFurtherStreamsWaitForAnAckAndShareAMessage) {
    make_busy();
    for (uint32_t i = kMaxBusy; i < kStreamSets; ++i) {
        put_word(stream(i), 8 * i, 2);
        stream(i).flush();  // as in a quiet
        poll(0);
    }
    EXPECT_EQ(sent(0), kMaxBusy);
    poll(1);
    EXPECT_EQ(sent(1), 1u) << "the acks of all in one message";
    EXPECT_EQ(last_sent(1).as<GatheredHeader>().acks, kMaxBusy);
    poll(0);
    EXPECT_EQ(sent(0), kMaxBusy + 1);
    EXPECT_EQ(last_sent(0).as<GatheredHeader>().streams, kStreamSets - kMaxBusy);
    poll(1);
    poll(0);
    EXPECT_EQ(sent(1), 2u);
    for (uint32_t i = 0; i < kStreamSets; ++i) EXPECT_EQ(pair[1].word(i), 2u) << i;
    expect_all_done();
    EXPECT_EQ(sent(0) + sent(1), kMaxBusy + 3);
}

// The budget of tests/budgets/scale.toml, without a scheduler: all threads have put, and wait in a quiet.
TEST_F(GatherTest, EightOperationsUnderWayTakeTwoMessagesAtMost) {
    constexpr uint64_t kRounds = 10;
    const uint64_t fences = base::counters->heavy_fences.read();
    for (uint64_t round = 1; round <= kRounds; ++round) {
        for (uint32_t i = 0; i < kStreamSets; ++i) {
            put_word(stream(i), 8 * i, round);
            stream(i).flush();
        }
        pair.settle();
        for (uint32_t i = 0; i < kStreamSets; ++i) ASSERT_TRUE(stream(i).is_quiet() && pair[1].word(i) == round);
    }
    EXPECT_LE(sent(0) + sent(1), kRounds * kStreamSets / 8 * 2);
    EXPECT_EQ(base::counters->heavy_fences.read(), fences);
}

// Threads that put, and wait at once, on fewer cores than there are threads: in turns, with a scheduler that runs each
// up to its wait.
TEST_F(GatherTest, PutsOfThreadsThatWaitAreLeftToOnePoll) {
    pair[0].policy.own_threads = pair[0].policy.own_cores + 1;
    expect_waits();
    pair[0].polls_soon = true;
    const size_t puts = sent(0), acks = sent(1);
    for (uint32_t i = 0; i < kStreamSets; ++i) put_word(stream(i), 8 * i, 2);
    EXPECT_EQ(sent(0), puts);
    pair.settle();
    EXPECT_EQ(sent(0), puts + 1) << "64 puts in one message";
    EXPECT_EQ(sent(1), acks + 1) << "and their acknowledgements";
    for (uint32_t i = 0; i < kStreamSets; ++i) EXPECT_EQ(pair[1].word(i), 2u) << i;
    expect_all_done();
}

TEST_F(GatherTest, APutIsLeftWhereAllSpeaksForIt) {
    const auto leaves = [&] {
        pair.settle();
        const size_t count = sent(0);
        put_word(stream(0), 0, 2);
        return sent(0) != count;
    };
    pair[0].polls_soon = true;
    EXPECT_TRUE(leaves()) << "there are cores for all threads";
    pair[0].policy.own_threads = pair[0].policy.own_cores + 1;
    EXPECT_TRUE(leaves()) << "no wait came behind the last one";
    EXPECT_TRUE(leaves()) << "and none behind this one";
    expect_waits();
    EXPECT_FALSE(leaves());
    EXPECT_TRUE(leaves()) << "none came behind that which was left";
    expect_waits();
    pair[0].polls_soon = false;
    EXPECT_TRUE(leaves()) << "nobody else polls soon";
    expect_all_done();
}

TEST_F(GatherTest, AnyAckLetsWhatWaitsLeave) {
    make_busy();
    put_word(stream(kMaxBusy), 8 * kMaxBusy, 2);
    pair[0].arrives(AckHeader{.position = stream(0).position(), .stream_set = 0}, nullptr, 0);
    poll(0);
    EXPECT_EQ(sent(0), kMaxBusy + 1);
    EXPECT_EQ(last_sent(0).as<RecordsHeader>().stream_set, kMaxBusy) << "alone: no copy is made";
    expect_all_done();
}

TEST_F(GatherTest, RecordsDoNotWaitForLargeData) {
    pair[1].cable().keeps_large = true;
    const std::string large(kLargeBytes, 'l');
    for (uint32_t i = 0; i < kMaxBusy; ++i) put(stream(i), 1024, large.data(), large.size());
    const size_t count = sent(0);
    put_word(stream(kMaxBusy), 8 * kMaxBusy, 2);
    EXPECT_EQ(sent(0), count + 1);
    pair[1].cable().keeps_large = false;
    expect_all_done();
}

TEST_F(GatherTest, LongMessagesDoNotWait) {
    make_busy();
    const std::string data(kShortMessage, 'd');
    put(stream(kMaxBusy), 1024, data.data(), data.size());
    EXPECT_EQ(sent(0), kMaxBusy + 1);
    expect_all_done();
}

TEST_F(GatherTest, AcksThatOthersWaitForAreNotDelayed) {
    for (uint32_t i = 0; i < kMaxBusy; ++i)
        publish(stream(i), record::control_bytes(8),
                [&](char* at) { return record::control(at, {.team = 7, .round = i}, "message.", 8); });
    put_word(stream(kMaxBusy), 8 * kMaxBusy, 2);
    EXPECT_EQ(sent(0), kMaxBusy);
    poll(0);
    poll(1);
    EXPECT_EQ(sent(1), 1u) << "the target may not poll again for long";
    poll(0);
    EXPECT_EQ(sent(0), kMaxBusy + 1);
    expect_all_done();
}

TEST_F(GatherTest, AProducerThatGoesOnMeanwhileDoesNotCallForEveryRecord) {
    make_busy();
    pair[0].cable().holds = true;
    const uint64_t fences = base::counters->heavy_fences.read();
    constexpr uint64_t kWords = 100;
    for (uint64_t i = 1; i <= kWords; ++i)
        for (uint32_t j = kMaxBusy; j < kStreamSets; ++j) put_word(stream(j), 8 * j, i + 2);
    EXPECT_EQ(sent(0), kMaxBusy);
    EXPECT_FALSE(stream(kMaxBusy).queued.load(std::memory_order_relaxed));
    pair[0].cable().holds = false;
    expect_all_done();
    for (uint32_t j = kMaxBusy; j < kStreamSets; ++j) EXPECT_EQ(pair[1].word(j), kWords + 2) << j;
    EXPECT_EQ(sent(0), kMaxBusy + 2) << "some 90 KiB";
    EXPECT_EQ(base::counters->heavy_fences.read(), fences + 1);
}

// Every ack is there ahead of the next call for a record: the calls must not look for it one by one.
TEST_F(GatherTest, StreamsUsedInTurnsGatherAsOneDoes) {
    constexpr uint64_t kWords = 100;
    uint64_t value = 2;
    for (const uint32_t streams : {2u, 3u, 8u, 64u}) {
        const size_t earlier = sent(0);
        for (uint64_t i = 0; i < kWords; ++i) {
            ++value;
            for (uint32_t j = 0; j < streams; ++j) {
                put_word(stream(j), 8 * j, value);
                poll(1);
            }
        }
        expect_all_done();
        for (uint32_t j = 0; j < streams; ++j) EXPECT_EQ(pair[1].word(j), value) << j;
        EXPECT_LE(sent(0) - earlier, 3 * streams) << "messages for " << streams * kWords << " words";
    }
}

TEST_F(GatherTest, AcksTravelWithRecordsOfSeveralStreams) {
    for (uint32_t i = 0; i < kStreamSets; ++i) put_word(pair[1].to_other(i), 8 * i, 1);
    pair.settle();
    make_busy();
    for (uint32_t i = kMaxBusy; i < kStreamSets; ++i) put_word(stream(i), 8 * i, 2);
    pair[1].cable().holds = true;  // of the other direction: some leave, others wait
    for (uint32_t i = 0; i < kStreamSets; ++i) put_word(pair[1].to_other(i), 8 * i, 2);
    pair[1].cable().holds = false;
    expect_all_done();
    for (uint32_t i = 0; i < kStreamSets; ++i) {
        EXPECT_EQ(pair[0].word(i), 2u) << i;
        EXPECT_EQ(pair[1].word(i), 2u) << i;
    }
    EXPECT_FALSE(pair[1].is_active());
}

TEST(GatherAlone, OverSeveralRailsNothingWaits) {
    Pair pair({}, 4096, kMessageBytes, 2, Spread::kOneRail);
    const Waiting waiting{nullptr};
    for (uint32_t i = 0; i < kStreamSets; ++i) {
        put_word(pair[0].to_other(i), 8 * i, 1);
        EXPECT_EQ(pair[0].sent(MessageKind::kRecords, 0) + pair[0].sent(MessageKind::kRecords, 1), i + 1);
    }
    pair.settle();
    for (uint32_t i = 0; i < kStreamSets; ++i) EXPECT_EQ(pair[1].word(i), 1u) << i;
}

using GatherDeathTest = GatherTest;

TEST_F(GatherDeathTest, SectionsThatNoPeWouldSend) {
    const auto arrives = [&](GatheredHeader header, const std::string& body) {
        pair[0].arrives(header, body.data(), body.size());
    };
    const auto section = [](const auto& of) { return std::string(reinterpret_cast<const char*>(&of), sizeof of); };
    const std::string ack = section(AckSection{.position = UINT64_MAX, .stream_set = 0});
    const auto ends = testing::ExitedWithCode(1);
    EXPECT_EXIT(arrives({.acks = 1}, ack), ends, "an acknowledgement of what this PE has not sent \\(1 acks and");
    EXPECT_EXIT(arrives({.acks = 1}, section(AckSection{.stream_set = kStreamSets})), ends,
                "an answer to what this PE has not sent");
    EXPECT_EXIT(arrives({.acks = 2}, section(AckSection{})), ends, "in the middle of a section");
    EXPECT_EXIT(arrives({.streams = 1}, section(RecordsSection{.stream_set = 0})), ends,
                "records that have been sent before");
    EXPECT_EXIT(arrives({.streams = 1}, section(RecordsSection{.stream_set = kMaxStreamSets, .bytes = 8}) + "one word"),
                ends, "records of a stream set that no PE has");
    EXPECT_EXIT(arrives({.streams = 1}, section(RecordsSection{.position = 1 << 30, .bytes = 8}) + "one word"), ends,
                "records further ahead than its window lets it send");
    EXPECT_EXIT(arrives({.streams = 1}, section(RecordsSection{.bytes = 16}) + "one word"), ends, "in the middle");
    EXPECT_EXIT(arrives({}, "x"), ends, "more than its sections");
}

}  // namespace
}  // namespace heddle::fabric
