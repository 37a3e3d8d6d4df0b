// Streams between two PEs: what leaves when, what arrives, in which order values come back, and what the producer
// waits for.
#include "fabric/endpoint/stream.h"
#include "base/counters.h"
#include "unit/fabric/pair.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>
#include <climits>
#include <cstring>
#include <string>
#include <vector>

namespace heddle::fabric {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEDDLE_UNDER_SANITIZER true
#else
#define HEDDLE_UNDER_SANITIZER false
#endif

constexpr size_t kWordPut = 2 * record::kWord;
StreamSet* current_stream_set;  // of the thread that waits

std::string pattern(size_t bytes, size_t salt = 0) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i + salt) * 7 + (i >> 8) + bytes);
    return text;
}

class StreamTest : public testing::Test {
  protected:
    // The ring at its full size, nothing in flight.
    void grow_ring() {
        const std::string data = pattern(30000);
        for (int i = 0; i < 20; ++i) put(stream, 0, data.data(), data.size());
        pair.settle();
        sent_before = pair[0].cable().sent.size();
    }
    size_t sent() { return pair[0].cable().sent.size() - sent_before; }
    Header last_sent() { return pair[0].cable().sent.back(); }
    std::string there(size_t offset, size_t bytes) { return {pair[1].heap() + offset, bytes}; }

    Pair pair;
    const Waiting waiting{nullptr};
    Stream& stream = pair[0].to_other();
    size_t sent_before = 0;
};

TEST_F(StreamTest, PutsOfEverySizeArrive) {
    std::vector<size_t> sizes;
    for (size_t bytes = 1; bytes <= 33; ++bytes) sizes.push_back(bytes);
    for (const size_t around : {size_t{512}, size_t{4096}, kMinRing, kLargeBytes, kMessageBytes, kMaxRing})
        for (size_t bytes = around - 9; bytes <= around + 9; ++bytes) sizes.push_back(bytes);
    for (const size_t bytes : sizes) {
        const std::string data = pattern(bytes);
        put(stream, bytes % 16, data.data(), bytes);
        pair.settle();
        ASSERT_EQ(there(bytes % 16, bytes), data) << bytes << " bytes";
        ASSERT_TRUE(stream.is_quiet() && stream.is_local()) << bytes << " bytes";
    }
    uint64_t bits = 0x1122334455667788;
    for (size_t bytes = 1; bytes <= 8; ++bytes) {
        pair[1].word(0) = 0;
        publish(stream, kWordPut, [&](char* at) { return record::put_word(at, {0}, bits, bytes); });
        pair.settle();
        uint64_t expected = 0;
        memcpy(&expected, &bits, bytes);
        EXPECT_EQ(pair[1].word(0), expected);
    }
}

TEST_F(StreamTest, DataFromThirtyTwoKibibytesOnIsNotCopiedIntoTheRing) {
    for (const size_t bytes : {kLargeBytes - 1, kLargeBytes, kLargeBytes + 1}) {
        const size_t before = pair[0].sent(MessageKind::kLargeData);
        const std::string data = pattern(bytes);
        put(stream, 0, data.data(), bytes);
        EXPECT_EQ(stream.is_local(), bytes < kLargeBytes);
        pair.settle();
        EXPECT_TRUE(stream.is_local());
        EXPECT_EQ(pair[0].sent(MessageKind::kLargeData) - before, bytes < kLargeBytes ? 0u : 1u);
        EXPECT_EQ(there(0, bytes), data);
    }
}

TEST_F(StreamTest, ALoneRecordLeavesAtOnceAndOthersGatherBehindIt) {
    put_word(stream, 0, 1);
    EXPECT_EQ(sent(), 1u);
    for (uint64_t i = 1; i < 100; ++i) put_word(stream, 8 * i, i + 1);
    pair[0].channel().send(&stream);  // as who is not in a flush may ask for
    EXPECT_EQ(sent(), 1u);
    EXPECT_FALSE(stream.is_quiet());
    pair[1].channel().poll();  // applies and acknowledges
    EXPECT_EQ(pair[1].word(0), 1u);
    EXPECT_EQ(pair[1].word(1), 0u);
    pair[0].channel().poll();
    EXPECT_EQ(sent(), 2u);
    EXPECT_EQ(last_sent().as<RecordsHeader>().position, kWordPut);
    pair.settle();
    EXPECT_EQ(sent(), 2u);
    for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(pair[1].word(i), i + 1);
    // Nothing is in flight: the next is alone again.
    EXPECT_TRUE(stream.is_quiet());
    put_word(stream, 0, 5);
    EXPECT_EQ(sent(), 3u);
}

TEST_F(StreamTest, WhatIsHurriedLeavesWithTheNextPoll) {
    put_word(stream, 0, 1);
    put_word(stream, 8, 2);
    stream.flush();
    EXPECT_EQ(sent(), 1u);
    pair[0].channel().poll();
    EXPECT_EQ(sent(), 2u);
    put_word(stream, 16, 3);  // published behind the flush
    pair[0].channel().poll();
    EXPECT_EQ(sent(), 2u);
    pair[1].channel().poll();
    EXPECT_EQ(pair[1].word(1), 2u);
    EXPECT_EQ(pair[1].word(2), 0u);
}

// The target acknowledges late, or when this PE's second record has come.
TEST_F(StreamTest, AWaitLetsItsThreadsRecordsLeave) {
    progress::wait_policy->before_wait = [] { current_stream_set->flush(); };
    current_stream_set = &pair[0].stream_set();
    for (uint64_t i = 0; i < 2; ++i) put_word(stream, 8 * i, i + 1);
    EXPECT_EQ(sent(), 1u);
    int polls = 0;
    pair.instead = [&] { return ++polls < 5 && pair[0].poll(); };  // nothing comes from the target
    progress::wait_for_store("test", &polls, [&] { return sent() == 2 || polls >= 5; });
    EXPECT_EQ(sent(), 2u);
    pair.settle();
    EXPECT_EQ(pair[1].word(1), 2u);
    EXPECT_EQ(pair[0].producer(0).n_gathering.load(std::memory_order_relaxed), 0u);
}

TEST_F(StreamTest, StreamsThatGoIdleInOneTurnShareAFence) {
    const uint64_t before = base::counters->heavy_fences.read();
    for (uint32_t stream_set = 0; stream_set < 2; ++stream_set)
        for (uint64_t i = 0; i < 2; ++i) put_word(pair[0].to_other(stream_set), 8 * i, i + 1);  // the second gathers
    pair[0].channel().poll();
    for (int turn = 0; turn < 2; ++turn) {
        EXPECT_EQ(base::counters->heavy_fences.read(), before) << turn;
        pair[1].channel().poll();
        pair[0].channel().poll();
    }
    EXPECT_EQ(base::counters->heavy_fences.read(), before + 1);
    EXPECT_FALSE(pair[0].is_active());
    for (uint32_t stream_set = 0; stream_set < 2; ++stream_set) {
        put_word(pair[0].to_other(stream_set), 8 * stream_set, 7);
        EXPECT_FALSE(pair[0].to_other(stream_set).is_quiet());
        pair.settle();
        EXPECT_EQ(pair[1].word(stream_set), 7u);
    }
}

TEST_F(StreamTest, AFullMessageLeavesWhileOthersAreInFlight) {
    grow_ring();
    put_word(stream, 0, 1);
    EXPECT_EQ(sent(), 1u);
    const uint64_t begin = stream.position();
    while (stream.position() < begin + 3 * kMessageBytes) put_word(stream, 8, stream.position());
    EXPECT_GE(sent(), 3u);
    EXPECT_LE(sent(), 4u);
    const std::vector<Header>& all = pair[0].cable().sent;
    for (size_t i = sent_before + 3; i < all.size(); ++i)  // between two that were full
        EXPECT_EQ(all[i].as<RecordsHeader>().position - all[i - 1].as<RecordsHeader>().position, kMessageBytes);
    pair.settle();
    EXPECT_TRUE(stream.is_quiet());
}

TEST(StreamAlone, WithoutBatchesEveryRecordLeavesInAMessageOfItsOwn) {
    Pair pair({}, 4096, 1);
    const Waiting waiting{nullptr};
    constexpr size_t kRecords = 12;
    for (size_t i = 0; i < kRecords; ++i) put_word(pair[0].to_other(), 8 * i, i + 1);
    EXPECT_EQ(pair[0].sent(MessageKind::kRecords), kRecords);  // nothing has been acknowledged
    pair.settle();
    for (size_t i = 0; i < kRecords; ++i) EXPECT_EQ(pair[1].word(i), i + 1);
}

TEST_F(StreamTest, AcknowledgementsAreCumulative) {
    for (uint64_t i = 0; i < 5; ++i) {
        put_word(stream, 8 * i, i);
        stream.flush();
        pair[0].channel().poll();
    }
    EXPECT_EQ(sent(), 5u);
    pair[1].channel().poll();
    EXPECT_EQ(pair[1].sent(MessageKind::kAck), 1u);
    EXPECT_EQ(pair[1].cable().sent.back().as<AckHeader>().position, stream.position());
    EXPECT_FALSE(stream.is_complete(1));
    pair[0].channel().poll();
    EXPECT_TRUE(stream.is_complete(stream.position()));
}

TEST_F(StreamTest, AReplyAcknowledgesWhatCameWithIt) {
    uint64_t value = 0;
    pair[1].word(3) = 77;
    get(stream, &value, 24, sizeof value);
    EXPECT_FALSE(stream.has_returned(1));
    pair.settle();
    EXPECT_EQ(value, 77u);
    EXPECT_TRUE(stream.has_returned(1) && stream.is_quiet());
    EXPECT_EQ(pair[1].sent(MessageKind::kReply), 1u);
    EXPECT_EQ(pair[1].sent(MessageKind::kAck), 0u);
}

TEST_F(StreamTest, TheRingGrowsAndWrapsWithoutLosingARecord) {
    size_t total = 0;
    for (uint64_t i = 0; total < 20 * kMaxRing; ++i) {
        const size_t bytes = i * 977 % (kLargeBytes - 1) + 1;
        const std::string data = pattern(bytes, i);
        put(stream, i % 64, data.data(), bytes);
        total += bytes;
        if (i % 7 == 0) {
            pair.settle();
            ASSERT_EQ(there(i % 64, bytes), data) << "put " << i;
        }
    }
    pair.settle();
    EXPECT_TRUE(stream.is_quiet());
}

TEST_F(StreamTest, ARecordOfALargerSizeThanTheFirstRingFits) {
    const std::string data = pattern(kLargeBytes - 1), control = pattern(20000);
    put(stream, 0, data.data(), data.size());
    pair.settle();
    EXPECT_EQ(there(0, data.size()), data);
    Stream& other = pair[0].to_other(1);
    publish(other, record::control_bytes(control.size()),
            [&](char* at) { return record::control(at, {5}, control.data(), control.size()); });
    pair.settle();
    std::string read(control.size(), 'x');
    size_t length = 0;
    ASSERT_TRUE(pair[1].control_inbox.take({5}, 0, read.data(), read.size(), &length));
    EXPECT_EQ(length, control.size());
    EXPECT_EQ(read, control);
}

TEST_F(StreamTest, WithoutMemoryForALargerRingTheFirstGoesOnButTakesNoLargerRecord) {
    if (HEDDLE_UNDER_SANITIZER)
        GTEST_SKIP() << "a sanitizer needs address space";
    const std::string data = pattern(kLargeBytes - 1);
    const auto without_memory = [&] {
        put_word(stream, 0, 1);  // the ring's memory is the rest of a piece
        for (int i = 0; i < 7; ++i) pair[0].ring_slab.take(kMaxRing);
        for (int i = 0; i < 3; ++i) pair[0].ring_slab.take(kMaxRing / 4);
        mallopt(M_TRIM_THRESHOLD, INT_MAX);  // what the fake transport needs is there
        std::vector<std::string>(50, std::string(100 * 1024, 'm')).clear();
        const rlimit limit = {1, 1};  // of address space: nothing more is mapped
        setrlimit(RLIMIT_AS, &limit);
        for (size_t i = 0; i < 100; ++i) put(stream, 0, data.data(), 1000);
        pair.settle();
        if (there(0, 1000) != data.substr(0, 1000))
            _exit(2);
        put(stream, 0, data.data(), data.size());
        _exit(3);
    };
    EXPECT_EXIT(without_memory(), testing::ExitedWithCode(1),
                "no memory for a ring that takes a record of 32784 bytes");
}

// The producer fills the ring while nothing is told to be sent: it waits, and overwrites nothing.
TEST_F(StreamTest, TheRingIsNotOverwrittenBeforeTheTransportHasLetGoOfIt) {
    grow_ring();
    const std::string mark = pattern(1000, 1), junk(kLargeBytes - 1, 'j');
    pair[0].cable().holds = true;
    put(stream, 0, mark.data(), mark.size());
    int polls = 0;
    pair.instead = [&] {
        if (++polls == 50)
            pair[0].cable().holds = false;
        return pair.poll();
    };
    for (size_t i = 0; i < 10; ++i) put(stream, 2000, junk.data(), junk.size());
    EXPECT_GE(polls, 50);
    pair.settle();
    EXPECT_EQ(there(0, mark.size()), mark);
    EXPECT_EQ(there(2000, junk.size()), junk);
}

TEST_F(StreamTest, NoMoreMessagesThanThereArePlacesAreWithTheTransport) {
    grow_ring();
    pair[0].cable().keeps = true;
    for (uint64_t i = 0; i < 40; ++i) {
        put_word(stream, 8 * i, i + 1);
        stream.flush();
        pair[0].channel().poll();
    }
    EXPECT_EQ(sent(), 16u);
    pair.poll();
    pair.poll();
    EXPECT_EQ(sent(), 16u);
    pair[0].cable().keeps = false;
    pair.settle();
    for (uint64_t i = 0; i < 40; ++i) EXPECT_EQ(pair[1].word(i), i + 1);
    EXPECT_TRUE(stream.is_quiet());
}

TEST_F(StreamTest, NoMoreThanTheWindowIsInFlight) {
    grow_ring();
    const std::string data = pattern(kLargeBytes - 1);
    const uint64_t begin = pair[0].cable().sent_bytes;
    int waits = 0;
    uint64_t in_flight = 0;
    pair.instead = [&] {  // the other PE is away for a while
        if (++waits < 200)
            return pair[0].channel().poll();
        if (in_flight == 0)
            in_flight = pair[0].cable().sent_bytes - begin;
        return pair.poll();
    };
    for (size_t i = 0; i < 2 * kWindow / data.size(); ++i) put(stream, 0, data.data(), data.size());
    EXPECT_GE(in_flight, kWindow);
    EXPECT_LT(in_flight, kWindow + kMessageBytes + kLargeBytes + 2 * record::kWord);
    pair.settle();
    EXPECT_TRUE(stream.is_quiet());
    EXPECT_EQ(there(0, data.size()), data);
}

TEST_F(StreamTest, GetsAndAtomicsSeeWhatCameBeforeThemAndNothingElse) {
    constexpr uint64_t kRounds = 3000;
    std::vector<uint64_t> gotten(kRounds, ~uint64_t{0}), fetched(kRounds, ~uint64_t{0});
    for (uint64_t i = 0; i < kRounds; ++i) {
        put_word(stream, 0, i);
        get(stream, &gotten[i], 0, 8);
        fetch_add(stream, &fetched[i], 64, 3);
    }
    pair.settle();
    for (uint64_t i = 0; i < kRounds; ++i) {
        ASSERT_EQ(gotten[i], i);
        ASSERT_EQ(fetched[i], 3 * i);
    }
    EXPECT_EQ(stream.returns(), 2 * kRounds);
    EXPECT_TRUE(stream.has_returned(2 * kRounds) && stream.is_quiet());
}

TEST_F(StreamTest, GetsOfEverySizeToAnyAddress) {
    const std::string data = pattern(kMaxRing + 16);
    memcpy(pair[1].heap(), data.data(), data.size());
    std::vector<size_t> sizes = {kLargeBytes - 1, kLargeBytes, kLargeBytes + 1, kMaxRing + 5};
    for (size_t bytes = 1; bytes <= 40; ++bytes) sizes.push_back(bytes);
    for (const size_t bytes : sizes) {
        for (const size_t shift : {0, 1, 4}) {
            std::string to(bytes + 16, '#');
            get(stream, to.data() + shift, 3, bytes);
            pair.settle();
            std::string expected(bytes + 16, '#');
            expected.replace(shift, bytes, data, 3, bytes);
            ASSERT_TRUE(to == expected) << bytes << " bytes";
        }
    }
    EXPECT_EQ(pair[1].sent(MessageKind::kLargeReply), 9u);
}

TEST_F(StreamTest, MoreRepliesThanAMessageTakes) {
    const std::string data = pattern(600000);
    memcpy(pair[1].heap(), data.data(), data.size());
    std::string to(data.size(), '#');
    const size_t piece = 20001;
    for (size_t at = 0; at < data.size(); at += piece)
        get(stream, to.data() + at, at, std::min(piece, data.size() - at));
    pair.settle();
    EXPECT_TRUE(to == data);
}

TEST_F(StreamTest, NoMoreReturnsAreOutstandingThanThereArePlaces) {
    std::vector<uint64_t> values(3 * kMaxReturns, ~uint64_t{0});
    int waits = 0;
    uint64_t most = 0;
    pair.instead = [&] {
        most = std::max<uint64_t>(most, stream.returns());
        return ++waits < 50 ? pair[0].channel().poll() : pair.poll();
    };
    for (size_t i = 0; i < values.size(); ++i) fetch_add(stream, &values[i], 0, 1);
    EXPECT_GE(waits, 50);
    pair.settle();
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i);

    // And no more bytes, but for the last.
    std::vector<std::string> pieces(60, std::string(30000, '#'));
    const uint64_t before = stream.returns();
    waits = 0;
    uint64_t outstanding = 0;
    pair.instead = [&] {
        if (++waits < 50)
            return pair[0].channel().poll();
        if (outstanding == 0)
            outstanding = stream.returns() - before;
        return pair.poll();
    };
    for (std::string& to : pieces) get(stream, to.data(), 8, to.size());
    EXPECT_EQ(outstanding, (kMaxReturnBytes + 29999) / 30000);
    pair.settle();
    for (const std::string& to : pieces) EXPECT_EQ(to, there(8, to.size()));
}

TEST_F(StreamTest, LargeDataIsPassedByWhatFollowsButForWhatIsOrdered) {
    const std::string data = pattern(100000);
    pair[1].cable().keeps_large = true;
    put_word(stream, 0, 1);
    const uint64_t before_large = stream.position();
    put(stream, 4096, data.data(), data.size());
    put_word(stream, 8, 2);
    stream.order("test");
    publish(stream, record::kMaxShort, [](char* at) { return record::signal(at, {16}, 3, false); });
    put_word(stream, 24, 4);
    for (int i = 0; i < 10; ++i) {
        stream.flush();
        pair.poll();
    }
    EXPECT_EQ(pair[1].word(0), 1u);
    EXPECT_EQ(pair[1].word(1), 2u);
    EXPECT_EQ(pair[1].word(2), 0u);
    EXPECT_EQ(pair[1].word(3), 0u);
    EXPECT_TRUE(stream.is_complete(before_large));
    EXPECT_FALSE(stream.is_complete(before_large + 1));
    EXPECT_FALSE(stream.is_local());
    pair[1].cable().keeps_large = false;
    pair.settle();
    EXPECT_EQ(pair[1].word(2), 3u);
    EXPECT_EQ(pair[1].word(3), 4u);
    EXPECT_EQ(there(4096, data.size()), data);
    EXPECT_TRUE(stream.is_quiet() && stream.is_local());
}

TEST_F(StreamTest, NoOrderIsSentWhereNothingLargeCouldBePassed) {
    put_word(stream, 0, 1);
    const uint64_t before = stream.position();
    stream.order("test");
    EXPECT_EQ(stream.position(), before);
    const std::string data = pattern(kLargeBytes);
    put(stream, 0, data.data(), data.size());
    const uint64_t behind = stream.position();
    stream.order("test");
    EXPECT_EQ(stream.position(), behind + record::kWord);
    pair.settle();
    stream.order("test");
    EXPECT_EQ(stream.position(), behind + record::kWord);
}

TEST_F(StreamTest, ManyLargeBodiesAtOnce) {
    const std::string data = pattern(kLargeBytes + 200);
    for (size_t i = 0; i < 200; ++i) put(stream, i, data.data(), kLargeBytes + i);
    pair.settle();
    EXPECT_TRUE(stream.is_quiet() && stream.is_local());
    EXPECT_EQ(pair[0].sent(MessageKind::kLargeData), 200u);
    EXPECT_EQ(there(199, kLargeBytes + 199), data.substr(0, kLargeBytes + 199));
}

// The next message may be long in coming, and nobody else polls.
TEST_F(StreamTest, WhatAppliesBeforeASleepRunsTheFibersThatWaitedForIt) {
    put_word(stream, 0, 1);
    pair[0].poll();
    EXPECT_EQ(pair[1].runs, 0);
    EXPECT_FALSE(pair[1].channel().arm());
    EXPECT_EQ(pair[1].word(0), 1u);
    EXPECT_EQ(pair[1].runs, 1);
    pair.settle();
    const int runs = pair[1].runs;
    EXPECT_TRUE(pair[1].channel().arm());
    EXPECT_EQ(pair[1].runs, runs) << "nothing has moved";
}

TEST_F(StreamTest, StreamsOfTwoStreamSetsDoNotWaitForEachOther) {
    const std::string data = pattern(100000);
    pair[1].cable().keeps_large = true;
    put(stream, 4096, data.data(), data.size());
    stream.order("test");
    put_word(stream, 0, 1);
    Stream& other = pair[0].to_other(1);
    put_word(other, 8, 2);
    for (int i = 0; i < 10; ++i) pair.poll();
    EXPECT_EQ(pair[1].word(0), 0u);
    EXPECT_EQ(pair[1].word(1), 2u);
    EXPECT_TRUE(other.is_quiet());
    pair[1].cable().keeps_large = false;
    pair.settle();
    EXPECT_EQ(pair[1].word(0), 1u);
}

}  // namespace
}  // namespace heddle::fabric
