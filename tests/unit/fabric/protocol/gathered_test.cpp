// Gathered messages: what is written is read, section by section, and bytes that are no sections are refused.
#include "fabric/protocol/gathered.h"

#include <gtest/gtest.h>
#include <cstring>
#include <string>

namespace heddle::fabric {
namespace {

// The sections of a body as text, then why the rest was refused.
std::string read(const GatheredHeader& header, const std::string& body) {
    std::string text;
    const char* const wrong = read_gathered(
        header, body.data(), body.size(),
        [&](const AckSection& ack) {
            text += "ack " + std::to_string(ack.stream_set) + " " + std::to_string(ack.position) + "\n";
        },
        [&](const RecordsSection& section, const char* records) {
            text += "records " + std::to_string(section.stream_set) + " " + std::to_string(section.position) + " " +
                    std::string(records, section.bytes) + "\n";
        });
    return text + (wrong ? wrong : "");
}

std::string take(GatheredMessage& message, GatheredHeader* header) {
    *header = message.header();
    const size_t bytes = message.bytes();
    char* const body = message.take_body();
    const std::string text(body, bytes);
    GatheredMessage::release(body);
    return text;
}

TEST(Gathered, WhatIsWrittenIsRead) {
    GatheredMessage message;
    EXPECT_TRUE(message.is_empty());
    message.add({.position = 16, .stream_set = 3});
    message.add({.position = 24, .stream_set = 65535});
    message.add({.position = 8, .stream_set = 1, .bytes = 8}, "one word");
    message.add({.position = 0, .stream_set = 2, .bytes = 16}, "two words of it.");
    GatheredHeader header;
    const std::string body = take(message, &header);
    EXPECT_EQ(read(header, body), "ack 3 16\nack 65535 24\nrecords 1 8 one word\nrecords 2 0 two words of it.\n");
    EXPECT_EQ(read(header, "x" + body).substr(0, 4), "ack ") << "at any address";
    EXPECT_TRUE(message.is_empty());
    message.add({.position = 8, .stream_set = 4});
    const std::string next = take(message, &header);
    EXPECT_EQ(read(header, next), "ack 4 8\n");
}

TEST(Gathered, AMessageHasRoomForItsBytes) {
    GatheredMessage message;
    const std::string records(4088, 'r');
    size_t count = 0;
    for (; message.has_room(records.size()); ++count)
        message.add({.position = 0, .stream_set = 0, .bytes = static_cast<uint32_t>(records.size())}, records.data());
    EXPECT_EQ(count, GatheredMessage::kBytes / (records.size() + sizeof(RecordsSection)));
    EXPECT_LE(message.bytes(), GatheredMessage::kBytes);
    EXPECT_FALSE(message.has_room(GatheredMessage::kBytes));
}

TEST(Gathered, BytesThatAreNoSectionsAreRefused) {
    GatheredMessage message;
    message.add({.position = 16, .stream_set = 3});
    message.add({.position = 8, .stream_set = 1, .bytes = 8}, "one word");
    GatheredHeader header;
    const std::string body = take(message, &header);
    for (size_t bytes = 0; bytes < body.size(); ++bytes)
        EXPECT_NE(read(header, body.substr(0, bytes)).find("in the middle of a section"), std::string::npos) << bytes;
    EXPECT_NE(read(header, body + "x").find("with more than its sections"), std::string::npos);
    EXPECT_NE(read({.acks = UINT32_MAX, .streams = UINT32_MAX}, body).find("in the middle"), std::string::npos);
    EXPECT_EQ(read({}, ""), "");
    for (const uint32_t bytes : {1u, 7u, 9u, 16u, UINT32_MAX, UINT32_MAX - 7}) {
        std::string forged = body;
        memcpy(forged.data() + sizeof(AckSection) + offsetof(RecordsSection, bytes), &bytes, sizeof bytes);
        EXPECT_EQ(read(header, forged).find("records"), std::string::npos) << bytes;
    }
}

}  // namespace
}  // namespace heddle::fabric
