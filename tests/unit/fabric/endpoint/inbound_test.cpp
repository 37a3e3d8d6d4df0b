// What arrives: records of messages in any order are applied in theirs; messages that no PE of the job would send end
// the PE with the reason, and those of strangers are refused.
#include "fabric/endpoint/inbound.h"
#include "unit/fabric/headers.h"
#include "unit/fabric/pair.h"
#include "unit/fabric/records.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

namespace heddle::fabric {
namespace {

constexpr uint32_t kStreamSet = 1;

class InboundTest : public testing::Test {
  protected:
    // Messages of PE 1 as they would come to PE 0.
    void records(uint64_t position, const Records& records) {
        me.arrives(RecordsHeader{.position = position, .stream_set = kStreamSet}, records.data(), records.size());
    }
    void message(MessageKind kind, uint64_t position, const std::string& body = "", uint32_t count = 0,
                 uint64_t acked = 0, uint32_t stream_set = 0) {
        me.arrives(header_of(kind, stream_set, position, count, acked), body.data(), body.size());
    }
    // The announcement of a large message; its body comes with the next poll once it has a place.
    Arrival* announce(MessageKind kind, uint64_t position, const std::string& body, uint32_t stream_set = kStreamSet,
                      uint64_t token = kToken, int32_t from = 1) {
        const Header header = sent_by(header_of(kind, stream_set, position), from, token);
        cable.receiving.push_back(std::make_unique<Arrival>(
            Arrival{header, &pair[1].transport(), body.data(), body.size(), nullptr, nullptr}));
        Arrival* const arrival = cable.receiving.back().get();
        me.channel().announced(header, body.size(), arrival);
        return arrival;
    }
    // What PE 0 has last acknowledged.
    uint64_t acknowledged() {
        me.channel().poll();
        me.channel().poll();  // what was held back
        for (auto sent = cable.sent.rbegin(); sent != cable.sent.rend(); ++sent)
            if (sent->kind == MessageKind::kAck || sent->kind == MessageKind::kReply)
                return sent->kind == MessageKind::kAck ? sent->as<AckHeader>().position : sent->as<ReplyHeader>().acked;
        return 0;
    }
    std::string control(const ControlKey& key) {
        char text[64];
        size_t length = 0;
        return me.control_inbox.take(key, 1, text, sizeof text, &length) ? std::string(text, length) : "(none)";
    }

    Pair pair;
    const Waiting waiting{nullptr};
    Pe& me = pair[0];
    Transport::Channel& cable = me.cable();
};
using InboundDeathTest = InboundTest;

TEST_F(InboundTest, MessagesInEveryOrderAreAppliedInTheirs) {
    constexpr size_t kMessages = 6;
    const std::string large(50000, 'L');
    uint64_t begin = 0, value = 0;
    std::vector<size_t> order(kMessages);
    std::iota(order.begin(), order.end(), size_t{0});
    do {
        std::vector<Records> parts(kMessages);
        const uint64_t last = value;
        // Each step changes the word from what the one before made of it.
        for (Records& part : parts) {
            part.atomic({0}, HEDDLE_AMO_COMPARE_SWAP, value + 1, value, 8, false);
            part.put_word({8}, value + 1).control({9}, std::to_string(value + 1));
            ++value;
        }
        std::vector<uint64_t> positions = {begin};
        for (const Records& part : parts) positions.push_back(positions.back() + part.size());
        std::vector<bool> here(kMessages);
        for (const size_t which : order) {
            records(positions[which], parts[which]);
            here[which] = true;
            const auto count = static_cast<size_t>(std::find(here.begin(), here.end(), false) - here.begin());
            ASSERT_EQ(me.word(0), last + count);
            ASSERT_EQ(acknowledged(), positions[count]);
        }
        for (size_t i = 0; i < kMessages; ++i) ASSERT_EQ(control({9}), std::to_string(last + i + 1));
        ASSERT_EQ(me.word(1), value);
        begin = positions.back();
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(InboundTest, LargeDataMayBeAnnouncedBeforeItsRecordOrBehindIt) {
    const std::string first(40000, '1'), second(40000, '2');
    Records both;
    both.large({0}, first.size()).large({50000}, second.size()).order().put_word({8 * 20000}, 7);
    announce(MessageKind::kLargeData, both.ends()[0], second);
    EXPECT_EQ(acknowledged(), 0u);
    records(0, both);
    me.channel().poll();
    EXPECT_EQ(std::string(me.heap() + 50000, second.size()), second);
    EXPECT_EQ(me.word(20000), 0u);  // the first is not there
    EXPECT_EQ(acknowledged(), 0u);
    announce(MessageKind::kLargeData, 0, first);
    me.channel().poll();
    EXPECT_EQ(std::string(me.heap(), first.size()), first);
    EXPECT_EQ(me.word(20000), 7u);
    EXPECT_EQ(acknowledged(), both.size());
}

TEST_F(InboundTest, WhatIsCompleteIsAcknowledgedUpToTheFirstLargeThatIsNot) {
    const std::string body(1000, 'b');
    Records all;
    all.put_word({0}, 1).large({8}, body.size()).put_word({2000}, 2).large({4000}, body.size()).put_word({8000}, 3);
    records(0, all);
    EXPECT_EQ(acknowledged(), all.ends()[0]);
    announce(MessageKind::kLargeData, all.ends()[2], body);
    EXPECT_EQ(acknowledged(), all.ends()[0]);
    announce(MessageKind::kLargeData, all.ends()[0], body);
    EXPECT_EQ(acknowledged(), all.size());
}

TEST_F(InboundTest, WhatStandsBehindAnOrderIsHeldWithTheMessagesThatFollow) {
    const std::string body(1000, 'b');
    Records first, second;
    first.large({0}, body.size()).order().put_word({2000}, 1);
    second.put_word({2000}, 2).order().put_word({2008}, 3);
    records(0, first);
    records(first.size(), second);
    EXPECT_EQ(acknowledged(), 0u);
    EXPECT_EQ(me.word(250), 0u);
    announce(MessageKind::kLargeData, 0, body);
    EXPECT_EQ(acknowledged(), first.size() + second.size());
    EXPECT_EQ(me.word(250), 2u);
    EXPECT_EQ(me.word(251), 3u);
}

TEST_F(InboundTest, EachStreamSetHasAStreamOfItsOwn) {
    const uint32_t sets[] = {kMaxStreamSets - 1, 0, 5, 3, 4, 4096};
    for (uint64_t round = 0; round < 3; ++round)
        for (const uint32_t set : sets) {
            Records word;
            word.put_word({8 * uint64_t{set % 1000}}, 10 * set + round);
            me.arrives(RecordsHeader{.position = round * word.size(), .stream_set = set}, word.data(), word.size());
            ASSERT_EQ(me.word(set % 1000), 10 * set + round);
        }
}

TEST_F(InboundTest, ManyMessagesBehindOneThatIsMissingAreAppliedInOrder) {
    constexpr uint64_t kMessages = 2000;
    const size_t each = Records().put_word({0}, 1).size();
    for (uint64_t i = kMessages; i-- > 0;) {
        Records word;
        records(i * each, word.put_word({8 * (i % 7)}, i));
        ASSERT_EQ(acknowledged(), i == 0 ? kMessages * each : 0u);
    }
    for (uint64_t i = kMessages - 7; i < kMessages; ++i) EXPECT_EQ(me.word(i % 7), i);
}

TEST_F(InboundTest, RepliesAreNumberedInTheOrderOfTheRecordsThatAsk) {
    memset(me.heap(), 'r', 100000);
    Records asks;
    asks.get({0}, 5).atomic({8}, HEDDLE_AMO_FETCH, 0, 0, 8, true).get({0}, kLargeBytes).get({16}, 8).get({0}, 70000);
    records(0, asks);
    me.channel().poll();
    std::vector<Header> replies;
    for (const Header& header : cable.sent)
        if (header.kind == MessageKind::kReply || header.kind == MessageKind::kLargeReply)
            replies.push_back(header);
    ASSERT_EQ(replies.size(), 4u);
    for (const size_t i : {0, 2}) ASSERT_EQ(replies[i].kind, MessageKind::kReply);
    for (const size_t i : {1, 3}) ASSERT_EQ(replies[i].kind, MessageKind::kLargeReply);
    EXPECT_EQ(replies[0].as<ReplyHeader>().first, 0u);
    EXPECT_EQ(replies[0].as<ReplyHeader>().count, 2u);
    EXPECT_EQ(replies[1].as<LargeReplyHeader>().number, 2u);
    EXPECT_EQ(replies[2].as<ReplyHeader>().first, 3u);
    EXPECT_EQ(replies[2].as<ReplyHeader>().count, 1u);
    EXPECT_EQ(replies[3].as<LargeReplyHeader>().number, 4u);
}

TEST_F(InboundTest, WhatBringsALetterIsAcknowledgedByTheAnswerOrByTheNextPoll) {
    const auto acks = [&] { return me.sent(MessageKind::kAck); };
    const auto last_records = [&] {
        return std::find_if(cable.sent.rbegin(), cable.sent.rend(),
                            [](const Header& header) { return header.kind == MessageKind::kRecords; })
            ->as<RecordsHeader>();
    };
    Records first, second, third;
    records(0, first.put_word({0}, 1).control({9}, "a"));
    me.channel().poll();
    EXPECT_EQ(acks(), 0u);
    publish(me.to_other(), record::kMaxShort, [](char* at) { return record::control(at, {9}, nullptr, 0); });
    EXPECT_EQ(acks(), 0u);
    EXPECT_EQ(last_records().acked_stream_set, kStreamSet + 1);
    EXPECT_EQ(last_records().acked, first.size());
    me.channel().poll();
    EXPECT_EQ(acks(), 0u);  // it has been told

    records(first.size(), second.control({9}, "b"));
    me.channel().poll();
    EXPECT_EQ(acks(), 0u);
    EXPECT_TRUE(me.channel().ack_pending());
    me.channel().poll();
    EXPECT_EQ(acks(), 1u);
    EXPECT_FALSE(me.channel().ack_pending());

    records(first.size() + second.size(), third.put_word({0}, 2));
    me.channel().poll();
    EXPECT_EQ(acks(), 2u);  // no control message: at once
}

TEST_F(InboundTest, StrangersAreRefusedAndTouchNothing) {
    Records word;
    word.put_word({0}, 7);
    const std::string large(50000, 'L');
    testing::internal::CaptureStderr();
    announce(MessageKind::kLargeData, 0, large, kStreamSet, kToken ^ 1);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "heddle network: refused a message that does not come from this job\n");
    testing::internal::CaptureStderr();
    for (const Header& header :
         {sent_by(RecordsHeader{}, 1, 0), sent_by(RecordsHeader{}, 1, kToken + 1), sent_by(RecordsHeader{}, 2, kToken),
          sent_by(RecordsHeader{}, -1, kToken), sent_by(AckHeader{UINT64_MAX}, 1, 1),
          sent_by(header_of(static_cast<MessageKind>(99), 0, 0), 1, 1)})
        me.channel().arrived(header, word.data(), word.size());
    announce(MessageKind::kLargeData, 0, large, kStreamSet, kToken, 2);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // once
    EXPECT_EQ(cable.refused, 2u);
    EXPECT_EQ(me.word(0), 0u);
    // And those of the job go on.
    records(0, word);
    EXPECT_EQ(me.word(0), 7u);
}

TEST_F(InboundTest, AnAcknowledgementThatComesLateIsNone) {
    Stream& stream = me.to_other();
    put_word(stream, 0, 1);
    message(MessageKind::kAck, 16);
    EXPECT_TRUE(stream.is_complete(16));
    message(MessageKind::kAck, 8);
    EXPECT_TRUE(stream.is_complete(16));
}

// --- What ends the PE

#define NOT_SENT "an acknowledgement of what this PE has not sent"
#define NOT_ASKED "a reply to what this PE has not asked"
#define EXPECT_BROKEN(statement, reason)               \
    EXPECT_EXIT(statement, testing::ExitedWithCode(1), \
                "heddle network: PE 1 has sent what no PE of this job would send: " reason)

TEST_F(InboundDeathTest, RecordsAtAWrongPosition) {
    Records word;
    word.put_word({0}, 7);
    records(0, word);
    EXPECT_BROKEN(records(0, word), "records that have been sent before");
    EXPECT_BROKEN(records(8, word), "records that have been sent before");
    EXPECT_BROKEN(records(17, word), "records that have been sent before");
    EXPECT_BROKEN(records(16, Records()), "records that have been sent before");
    records(32, word);
    EXPECT_BROKEN(records(32, word), "records that have been sent before");  // they wait
    const uint64_t furthest = word.size() + kWindow + kMaxRing;
    EXPECT_BROKEN(records(furthest + 8, word), "records further ahead than its window lets it send");
    EXPECT_BROKEN(records(0 - uint64_t{8}, word), "records further ahead than its window lets it send");
    records(furthest, word);
}

TEST_F(InboundDeathTest, RecordsOfAStreamSetThatNoPeHas) {
    const std::string put = "sixteen bytes...";
    EXPECT_BROKEN(message(MessageKind::kRecords, 0, put, 0, 0, kMaxStreamSets),
                  "records of a stream set that no PE has");
}

TEST_F(InboundDeathTest, RecordsThatApplyRefuses) {
    EXPECT_BROKEN(records(0, Records().put_word({uint64_t{1} << 40}, 1)),
                  "a record names memory outside of the region");
    EXPECT_BROKEN(records(0, Records().words({record::head(Kind::kPut, {0}, 8)})), "it ends in the middle of a record");
    // Also when they had to wait.
    Records first, bad;
    first.put_word({0}, 1);
    bad.words({record::head(static_cast<Kind>(12), {0}, 8)});
    records(first.size(), bad);
    EXPECT_BROKEN(records(0, first), "a record of an unknown kind");
}

TEST_F(InboundDeathTest, AcknowledgementsOfWhatHasNotBeenSent) {
    Stream& stream = me.to_other();
    put_word(stream, 0, 1);
    put_word(stream, 8, 1);  // published, and not sent
    EXPECT_BROKEN(message(MessageKind::kAck, 17), NOT_SENT);
    EXPECT_BROKEN(message(MessageKind::kAck, 32), NOT_SENT);
    EXPECT_BROKEN(message(MessageKind::kAck, UINT64_MAX), NOT_SENT);
    const std::string put(16, '\0');
    EXPECT_BROKEN(message(MessageKind::kRecords, 0, put, 1, 32, kStreamSet), NOT_SENT);
    EXPECT_BROKEN(message(MessageKind::kRecords, 0, put, kStreamSets + 1, 0, kStreamSet),
                  "an answer to what this PE has not sent");
    EXPECT_BROKEN(message(MessageKind::kAck, 0, "", 0, 0, kStreamSets), "an answer to what this PE has not sent");
    EXPECT_BROKEN(message(MessageKind::kReply, 0, "", 0, 0, UINT32_MAX), "an answer to what this PE has not sent");
}

TEST_F(InboundDeathTest, RepliesThatNobodyAskedFor) {
    Stream& stream = me.to_other();
    const std::string word(8, 'w'), two(16, 'w'), short_one(7, 'w'), large(kLargeBytes, 'l');
    EXPECT_BROKEN(message(MessageKind::kReply, 0, word, 1), NOT_ASKED);
    uint64_t values[2];
    std::string big(kLargeBytes, '#');
    for (uint64_t& value : values) get(stream, &value, 0, 8);
    get(stream, big.data(), 0, big.size());
    const uint64_t sent = 2 * record::kWord;
    EXPECT_BROKEN(message(MessageKind::kReply, 0, word, 2), NOT_ASKED);  // too short
    EXPECT_BROKEN(message(MessageKind::kReply, 0, short_one, 1), NOT_ASKED);
    EXPECT_BROKEN(message(MessageKind::kReply, 0, two, 1), NOT_ASKED);    // too long
    EXPECT_BROKEN(message(MessageKind::kReply, 2, large, 1), NOT_ASKED);  // is large
    EXPECT_BROKEN(message(MessageKind::kReply, 3, word, 1), NOT_ASKED);
    EXPECT_BROKEN(message(MessageKind::kReply, 4, "", 0), NOT_ASKED);
    EXPECT_BROKEN(message(MessageKind::kReply, 1, word, UINT32_MAX), NOT_ASKED);
    EXPECT_BROKEN(message(MessageKind::kReply, UINT64_MAX, word, 1), NOT_ASKED);
    EXPECT_BROKEN(message(MessageKind::kReply, 0, word, 1, sent + 1), NOT_ASKED);
    message(MessageKind::kReply, 0, word, 1, sent);
    EXPECT_EQ(memcmp(&values[0], word.data(), 8), 0);
    EXPECT_BROKEN(message(MessageKind::kReply, 0, word, 1), NOT_ASKED);  // again
    const auto announce_reply = [&](uint64_t number, const std::string& body) {
        announce(MessageKind::kLargeReply, number, body, 0);
    };
    EXPECT_BROKEN(announce_reply(1, word), "a large reply to what this PE has not asked");  // is small
    EXPECT_BROKEN(announce_reply(0, word), "a large reply to what this PE has not asked");
    EXPECT_BROKEN(announce_reply(3, large), "a large reply to what this PE has not asked");
    EXPECT_BROKEN(announce_reply(2, large + "x"), "a large reply to what this PE has not asked");
    announce_reply(2, large);
    EXPECT_BROKEN(announce_reply(2, large), "a large reply to what this PE has not asked");  // it is on its way
    me.channel().poll();
    EXPECT_EQ(big, large);
    EXPECT_BROKEN(announce_reply(2, large), "a large reply to what this PE has not asked");
    message(MessageKind::kReply, 1, word, 1);
    EXPECT_TRUE(stream.has_returned(3));
}

TEST_F(InboundDeathTest, LargeDataThatNobodyAskedFor) {
    const std::string body(1000, 'b'), other(1001, 'b');
    Records large;
    large.put_word({0}, 1).large({8}, body.size()).put_word({0}, 1);
    records(0, large);
    const uint64_t position = large.ends()[0];
    const auto data = [&](uint64_t at, const std::string& text) { announce(MessageKind::kLargeData, at, text); };
    EXPECT_BROKEN(data(0, body), "large data that no record asked for");
    EXPECT_BROKEN(data(large.size() + kWindow + kMaxRing + 8, body),
                  "large data further ahead than its window lets it send");
    EXPECT_BROKEN(data(position, other), "large data that no record asked for");
    cable.keeps_large = true;
    data(position, body);
    EXPECT_BROKEN(data(position, body), "large data that no record asked for");
    // Announced first, and its record says otherwise.
    const uint64_t behind = large.size();
    data(behind, other);
    Records next;
    next.large({8}, body.size());
    EXPECT_BROKEN(records(behind, next), "large data of another size than its record says");
}

TEST_F(InboundDeathTest, KindsThatThereAreNot) {
    EXPECT_BROKEN(message(static_cast<MessageKind>(kMessageKinds), 0), "a message of an unknown kind");
    EXPECT_BROKEN(message(MessageKind::kLargeData, 0), "a message of an unknown kind");
    const std::string body(1000, 'b');
    EXPECT_BROKEN(announce(MessageKind::kRecords, 0, body), "a large message of an unknown kind");
    EXPECT_BROKEN(announce(static_cast<MessageKind>(77), 0, body), "a large message of an unknown kind");
    EXPECT_BROKEN(message(MessageKind::kConnect, 0, ""), "an address blob of no or too many bytes");
    EXPECT_BROKEN(message(MessageKind::kConnect, 0, std::string(kMaxAddressBlobBytes + 1, 'c')),
                  "an address blob of no or too many bytes");
}

}  // namespace
}  // namespace heddle::fabric
