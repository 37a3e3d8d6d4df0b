// Message headers: the fields of each kind come back as they were given, in 64 bytes, and a text names them.
#include "fabric/protocol/message.h"

#include "unit/fabric/headers.h"

#include <gtest/gtest.h>
#include <cstring>
#include <set>
#include <string>

namespace heddle::fabric {
namespace {

// The header as it comes out of the network.
Header received(const Header& header) {
    char bytes[kHeaderBytes];
    memcpy(bytes, &header, sizeof bytes);
    Header copy;
    memcpy(&copy, bytes, sizeof copy);
    return copy;
}

TEST(Message, TheFieldsOfEachKindComeBack) {
    const auto records = received(RecordsHeader{1, 2, 3, 4}).as<RecordsHeader>();
    EXPECT_EQ(records.position, 1u);
    EXPECT_EQ(records.acked, 2u);
    EXPECT_EQ(records.stream_set, 3u);
    EXPECT_EQ(records.acked_stream_set, 4u);
    const auto ack = received(AckHeader{UINT64_MAX, UINT32_MAX}).as<AckHeader>();
    EXPECT_EQ(ack.position, UINT64_MAX);
    EXPECT_EQ(ack.stream_set, UINT32_MAX);
    const auto reply = received(ReplyHeader{1, 2, 3, 4}).as<ReplyHeader>();
    EXPECT_EQ(reply.first, 1u);
    EXPECT_EQ(reply.acked, 2u);
    EXPECT_EQ(reply.count, 3u);
    EXPECT_EQ(reply.stream_set, 4u);
    const auto data = received(LargeDataHeader{1, 2}).as<LargeDataHeader>();
    EXPECT_EQ(data.position, 1u);
    EXPECT_EQ(data.stream_set, 2u);
    const auto large = received(LargeReplyHeader{1, 2}).as<LargeReplyHeader>();
    EXPECT_EQ(large.number, 1u);
    EXPECT_EQ(large.stream_set, 2u);
    const auto heartbeat = received(HeartbeatHeader{5, 1, 3, 4}).as<HeartbeatHeader>();
    EXPECT_EQ(heartbeat.lost_pe, 5);
    EXPECT_EQ(heartbeat.has_left, 1u);
    EXPECT_EQ(heartbeat.timeout_ms, 3u);
    EXPECT_EQ(heartbeat.lost_rails, 4u);
}

TEST(Message, BytesThatNoFieldNamesAreZero) {
    const Header header = AckHeader{UINT64_MAX, UINT32_MAX};
    const char* const bytes = reinterpret_cast<const char*>(&header);
    int ones = 0;
    for (size_t i = 0; i < sizeof header; ++i) ones += bytes[i] == static_cast<char>(0xff);
    EXPECT_EQ(ones, 12);
    Header nothing = header;
    nothing.set(AckHeader{});
    nothing.kind = MessageKind::kConnect;
    const Header zero;
    EXPECT_EQ(memcmp(&nothing, &zero, sizeof zero), 0);
}

TEST(MessageDeathTest, TheFieldsOfAnotherKindAreNotRead) {
    const Header header = AckHeader{};
    EXPECT_EXIT(static_cast<void>(header.as<ReplyHeader>()), testing::ExitedWithCode(1),
                "kind == Fields::kKind: kind 2");
}

TEST(Message, ATextNamesKindAndFields) {
    std::set<std::string> texts;
    for (uint32_t kind = 0; kind <= kMessageKinds; ++kind)
        texts.insert(describe(header_of(static_cast<MessageKind>(kind), 31, 41, 51, 61)).data());
    EXPECT_EQ(texts.size(), kMessageKinds + 1);
    EXPECT_STREQ(describe(AckHeader{41, 31}).data(), "an ack of stream set 31 up to position 41");
    EXPECT_STREQ(describe(RecordsHeader{.position = 41, .stream_set = 31}).data(),
                 "records from position 41 on of stream set 31");
    EXPECT_STREQ(describe(header_of(static_cast<MessageKind>(77), 0, 0)).data(), "a message of kind 77");
}

TEST(Message, ATextFitsWhateverTheFieldsAre) {
    for (uint32_t kind = 0; kind <= kMessageKinds; ++kind) {
        const Header header = header_of(static_cast<MessageKind>(kind), UINT32_MAX, UINT64_MAX, UINT32_MAX, UINT64_MAX);
        EXPECT_LT(strlen(describe(header).data()), sizeof(HeaderText) - 1) << kind;
    }
}

}  // namespace
}  // namespace heddle::fabric
