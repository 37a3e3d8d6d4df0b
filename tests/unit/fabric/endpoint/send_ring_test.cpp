// SendRing by itself: when records leave, how messages end, what may be overwritten, and which positions cannot be.
#include "fabric/endpoint/send_ring.h"

#include "os/asymmetric_fence.h"

#include <gtest/gtest.h>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace heddle::fabric {
namespace {

constexpr size_t kRecord = 2 * record::kWord;
constexpr size_t kFull = 8 * kRecord;

class SendRingTest : public testing::Test {
  protected:
    SendRingTest() {
        if (!os::prepare_heavy_fence())
            abort();
        producer.thread.store(this_thread(), std::memory_order_relaxed);
        ring.set_memory(memory.data(), kSize);
    }
    // Publishes records of one word, the position of each; true when the sender is to be called.
    bool publish(size_t count = 1) {
        bool calls = false;
        for (size_t i = 0; i < count; ++i) {
            if (!ring.has_room(kRecord) && !ring.find_room(kRecord))
                ADD_FAILURE() << "no room";
            calls = ring.publish(ring.position_of(record::put_word(ring.place(), {}, ring.position(), 8)));
            if (calls)
                ring.end_message();
        }
        return calls;
    }
    // The bytes of the next message, 0: none leaves. Its records are those that were published there.
    size_t take(uint64_t limit = UINT64_MAX) {
        SendRing::Message message;
        if (!ring.take_message(std::min(limit, ring.published()), nullptr, &message))
            return 0;
        for (size_t at = 0; at < message.bytes; at += kRecord) {
            uint64_t value;
            memcpy(&value, message.records + at + record::kWord, sizeof value);
            EXPECT_EQ(value, message.position + at);
        }
        sending.push_back(message.sending);
        return message.bytes;
    }
    // A message of a record is in flight, and another record gathers.
    void begin_pressure() {
        publish();
        EXPECT_EQ(take(), kRecord);
        publish();
        EXPECT_EQ(take(), 0u);
    }
    void sent(size_t index) { ring.on_sent(sending[index]); }

    static constexpr size_t kSize = 16 * 1024;
    std::vector<char> memory = std::vector<char>(kSize), other = std::vector<char>(4 * kSize);
    SendRing ring{kFull};
    Producer producer;
    std::vector<SendRing::Sending*> sending;
};

TEST_F(SendRingTest, ALoneRecordLeavesAtOnceAndOthersGatherBehindIt) {
    EXPECT_TRUE(publish());
    EXPECT_EQ(take(), kRecord);
    EXPECT_TRUE(publish()) << "the sender is still idle";
    EXPECT_EQ(take(), 0u) << "the first is in flight";
    EXPECT_FALSE(publish(2)) << "the sender is not idle any more";
    EXPECT_EQ(take(), 0u);
    EXPECT_TRUE(ring.on_ack(kRecord));
    EXPECT_EQ(take(), 3 * kRecord);
    EXPECT_FALSE(publish()) << "pressure lasts until nothing is in flight or waits";
}

TEST_F(SendRingTest, OneMessageAtATimeNeverEndsIdleness) {
    for (uint64_t i = 1; i <= 100; ++i) {
        EXPECT_TRUE(publish());
        EXPECT_EQ(take(), kRecord);
        EXPECT_TRUE(ring.is_idle());
        sent(i - 1);
        ASSERT_TRUE(ring.on_ack(i * kRecord));
    }
}

TEST_F(SendRingTest, WhatIsFlushedLeavesBesideWhatIsInFlight) {
    publish();
    EXPECT_EQ(take(), kRecord);
    publish(2);
    ring.flush();
    publish();
    EXPECT_EQ(take(), 3 * kRecord) << "and what was published since";
    publish();
    EXPECT_EQ(take(), 0u);
}

TEST_F(SendRingTest, FullMessagesEndWhereTheProducerSaid) {
    begin_pressure();
    for (int i = 0; i < 3; ++i)
        while (!publish()) continue;
    EXPECT_EQ(take(), 7 * kRecord) << "the first record counts for the first message";
    EXPECT_EQ(take(), kFull);
    EXPECT_EQ(take(), kFull);
    EXPECT_EQ(take(), 0u);
}

TEST_F(SendRingTest, EndsThatAreForgottenOnlyMakeAMessageLonger) {
    begin_pressure();
    constexpr size_t kEnds = SendRing::kMaxMessageEnds + 5;
    for (size_t i = 0; i < kEnds; ++i)
        while (!publish()) continue;
    const size_t all = kEnds * kFull - kRecord;
    EXPECT_EQ(take(), all - (SendRing::kMaxMessageEnds - 1) * kFull);
    for (size_t i = 1; i < SendRing::kMaxMessageEnds - 1; ++i) EXPECT_EQ(take(), kFull) << i;
}

TEST_F(SendRingTest, NothingLeavesBehindALimit) {
    publish(4);
    EXPECT_EQ(take(2 * kRecord), 2 * kRecord);
    ring.flush();
    EXPECT_EQ(take(3 * kRecord), kRecord);
}

TEST_F(SendRingTest, RoomComesBackInTheOrderOfMessages) {
    for (int i = 0; i < 3; ++i) {
        publish();
        ring.flush();
        EXPECT_EQ(take(), kRecord);
    }
    sent(1);
    EXPECT_FALSE(ring.is_free());
    sent(2);
    EXPECT_FALSE(ring.is_free()) << "the first is still in use";
    sent(0);
    EXPECT_TRUE(ring.is_free());
    EXPECT_FALSE(ring.is_drained()) << "nothing has been acknowledged";
}

TEST_F(SendRingTest, NoMoreMessagesThanTheTransportMayHave) {
    for (uint32_t i = 0; i < SendRing::kMaxSending + 1; ++i) {
        publish();
        ring.flush();
        EXPECT_EQ(take(), i < SendRing::kMaxSending ? kRecord : 0);
    }
    sent(0);
    EXPECT_EQ(take(), kRecord);
}

// Records of one size in 16 KiB, with up to so many messages that the transport has.
void fill(SendRing& ring, size_t bytes, size_t held) {
    std::deque<SendRing::Message> messages;
    const uint64_t begin = ring.position();
    const auto let_go = [&] {
        const SendRing::Message message = messages.front();
        messages.pop_front();
        for (size_t at = 0; at < message.bytes; at += record::put_bytes(bytes)) {
            const std::string expected(bytes,
                                       static_cast<char>((message.position + at - begin) / record::put_bytes(bytes)));
            const char* const data = message.records + at + record::put_bytes(bytes) - record::padded(bytes);
            ASSERT_EQ(std::string(data, bytes), expected) << "at " << message.position + at;
        }
        ring.on_sent(message.sending);
        ASSERT_TRUE(ring.on_ack(message.position + message.bytes));
    };
    for (uint64_t i = 0; i < 500; ++i) {
        while (!ring.find_room(record::put_bytes(bytes))) {
            ASSERT_FALSE(messages.empty()) << "room for the record comes when messages are sent";
            let_go();
            if (testing::Test::HasFatalFailure())
                return;
        }
        const std::string data(bytes, static_cast<char>(i));
        char* const at = ring.place();
        ring.publish(ring.position_of(record::put(at, {}, data.data(), bytes)));
        ring.flush();
        SendRing::Message message;
        ASSERT_TRUE(ring.take_message(ring.published(), nullptr, &message));
        messages.push_back(message);
        while (messages.size() > held) let_go();
    }
    while (!messages.empty()) let_go();
}

TEST_F(SendRingTest, ARecordIsInOnePieceAndOverwritesNone) {
    for (const size_t bytes : {8, 504, 505, 600, 4088, 5000, 8000, 8200, 16000})
        for (const size_t held : {0, 1, 2, 3, 7}) {
            fill(ring, bytes, held);
        }
}

TEST_F(SendRingTest, AMessageEndsWithItsLap) {
    const size_t lap = kSize - kSize % 48;
    for (size_t i = 0; i < lap / 48; ++i) {
        const std::string data(40, 'd');
        ASSERT_TRUE(ring.find_room(48));
        ring.publish(ring.position_of(record::put(ring.place(), {}, data.data(), data.size())));
    }
    EXPECT_FALSE(ring.find_room(48)) << "nothing has been sent";
    SendRing::Message first, second;
    ASSERT_TRUE(ring.take_message(96, nullptr, &first));
    ring.on_sent(first.sending);
    ASSERT_TRUE(ring.find_room(48)) << "at the beginning";
    EXPECT_EQ(ring.place(), memory.data());
    ring.publish(ring.position_of(record::put_word(ring.place(), {}, 1, 8)));
    ring.flush();
    ASSERT_TRUE(ring.take_message(ring.published(), nullptr, &first));
    EXPECT_EQ(first.position + first.bytes, lap);
    EXPECT_EQ(first.records, memory.data() + 96);
    ASSERT_TRUE(ring.take_message(ring.published(), nullptr, &second));
    EXPECT_EQ(second.position, lap);
    EXPECT_EQ(second.records, memory.data());
    EXPECT_EQ(second.bytes, kRecord);
}

TEST_F(SendRingTest, WhatIsLeftOfALapIsSentWithoutMore) {
    constexpr size_t kLong = 9 * 1024;
    SendRing one(kLong);
    one.set_memory(memory.data(), kSize);
    const auto publish_word = [&] {
        ASSERT_TRUE(one.find_room(kRecord));
        if (one.publish(one.position_of(record::put_word(one.place(), {}, 0, 8))))
            one.end_message();
    };
    SendRing::Message message;
    const auto take_word = [&] { return one.take_message(one.published(), nullptr, &message) ? message.bytes : 0; };
    publish_word();
    EXPECT_EQ(take_word(), kRecord);
    one.on_sent(message.sending);
    while (one.position() != kSize) publish_word();
    EXPECT_EQ(take_word(), kLong - kRecord);
    EXPECT_EQ(take_word(), 0u);
    publish_word();
    EXPECT_EQ(take_word(), kSize - kLong);
    EXPECT_EQ(take_word(), 0u) << "the new lap gathers";
}

TEST_F(SendRingTest, ALapBeginsWhereNothingIsInUse) {
    publish(2);
    take();
    ring.rewind();
    EXPECT_NE(ring.place(), memory.data()) << "the transport may read it";
    sent(0);
    publish();
    ring.rewind();
    EXPECT_NE(ring.place(), memory.data()) << "a record is to leave";
    ASSERT_TRUE(ring.on_ack(ring.sent()));
    take();
    sent(1);
    ring.rewind();
    EXPECT_EQ(ring.place(), memory.data());
    size_t bytes = 0;
    for (; ring.has_room(kRecord); bytes += kRecord) publish();
    EXPECT_GT(bytes, kSize - kFull) << "the lap has the whole memory";
    EXPECT_FALSE(ring.find_room(kRecord)) << "nothing of it is sent";
    ring.flush();
    EXPECT_GT(take(), 0u);
}

TEST_F(SendRingTest, ItsMemoryIsLent) {
    publish(2);
    take();
    EXPECT_FALSE(ring.is_free());
    sent(0);
    ASSERT_TRUE(ring.is_free());
    EXPECT_EQ(ring.set_memory(nullptr, 0), memory.data());
    EXPECT_FALSE(ring.has_room(kRecord));
    EXPECT_FALSE(ring.is_simple(ring.position() + kRecord));
    EXPECT_FALSE(ring.find_room(kRecord));
    EXPECT_EQ(ring.last_size(), kSize);
    memory.assign(kSize, '#');  // another stream's
    EXPECT_EQ(ring.set_memory(other.data(), other.size()), nullptr);
    EXPECT_TRUE(ring.has_room(other.size()));
    EXPECT_EQ(ring.place(), other.data());
    publish(2);
    ring.flush();
    EXPECT_EQ(take(), 2 * kRecord);
}

TEST_F(SendRingTest, FullMessagesFillALapButForLessThanOne) {
    SendRing large(3 * 1024);
    large.set_memory(memory.data(), kSize);
    for (int lap = 0; lap < 3; ++lap) {
        for (size_t i = 0; i < 15 * 1024; i += kRecord) {
            ASSERT_TRUE(large.find_room(kRecord)) << i;
            if (large.publish(large.position_of(record::put_word(large.place(), {}, 0, 8))))
                large.end_message();
        }
        EXPECT_FALSE(large.has_room(kRecord));
        EXPECT_FALSE(large.find_room(kRecord)) << "nothing is sent";
        SendRing::Message message;
        while (large.sent() != large.published()) {
            ASSERT_TRUE(large.take_message(large.published(), nullptr, &message));
            EXPECT_EQ(message.bytes, 3 * 1024);
            large.on_sent(message.sending);
            ASSERT_TRUE(large.on_ack(large.sent()));
        }
    }
}

TEST_F(SendRingTest, AnIdleSenderIsCalled) {
    EXPECT_TRUE(ring.is_idle());
    begin_pressure();
    EXPECT_FALSE(ring.is_idle());
    EXPECT_FALSE(publish());
    ring.flush();
    take();
    ASSERT_TRUE(ring.on_ack(ring.sent()));
    EXPECT_TRUE(ring.is_drained());
    EXPECT_FALSE(ring.go_idle(producer)) << "this thread knows";
    EXPECT_TRUE(publish());
}

TEST_F(SendRingTest, AnotherThreadIsFencedBeforeItKnows) {
    for (const void* const thread : {static_cast<const void*>(nullptr), ended_thread()}) {
        producer.thread.store(thread, std::memory_order_relaxed);
        EXPECT_TRUE(ring.go_idle(producer));
    }
}

TEST_F(SendRingTest, AcksAreCumulativeAndOfWhatWasSent) {
    publish(3);
    take();
    EXPECT_FALSE(ring.on_ack(4 * kRecord));
    EXPECT_TRUE(ring.on_ack(2 * kRecord));
    EXPECT_TRUE(ring.on_ack(kRecord)) << "an old one changes nothing";
    EXPECT_EQ(ring.acked(), 2 * kRecord);
    EXPECT_TRUE(ring.is_complete(2 * kRecord));
    EXPECT_FALSE(ring.is_complete(3 * kRecord));
}

using SendRingDeathTest = SendRingTest;

TEST_F(SendRingDeathTest, AMessageIsLetGoOfOnce) {
    publish();
    take();
    publish();
    ring.flush();
    take();
    sent(1);
    EXPECT_EXIT(sent(1), testing::ExitedWithCode(1), "!sending->done");
}

TEST_F(SendRingDeathTest, ARecordBeyondTheRoomIsNotPublished) {
    EXPECT_EXIT(ring.publish(kSize + 8), testing::ExitedWithCode(1), "end <= room_end_");
    EXPECT_EXIT(ring.publish(4), testing::ExitedWithCode(1), "end % record::kWord == 0");
}

TEST_F(SendRingDeathTest, MemoryInUseIsNotGivenBack) {
    publish();
    EXPECT_EXIT(ring.set_memory(nullptr, 0), testing::ExitedWithCode(1), "is_free\\(\\)");
}

TEST_F(SendRingDeathTest, NothingGoesIdleWhileSomethingIsInFlight) {
    publish();
    take();
    EXPECT_EXIT(ring.go_idle(producer), testing::ExitedWithCode(1), "is_drained\\(\\)");
}

}  // namespace
}  // namespace heddle::fabric
