// Messages of a rendezvous, unique ids, and names of PEs. What whole PEs and the server do with any bytes is the subject
// of tests/launcher/test_rendezvous.py.
#include "bootstrap/rendezvous/message.h"
#include "bootstrap/rendezvous/server.h"
#include "bootstrap/rendezvous/unique_id.h"

#include <gtest/gtest.h>
#include <random>
#include <string>

namespace heddle::bootstrap::rendezvous {
namespace {

TEST(RendezvousMessage, ComesWholeByTheByte) {
    std::string bytes;
    append_message(&bytes, Kind::kGet, "payload");
    append_message(&bytes, Kind::kLeave);
    Inbox inbox;
    Message message;
    std::vector<Kind> kinds;
    for (const char byte : bytes) {
        inbox.append(&byte, 1);
        while (inbox.next(100, &message) == Inbox::State::kWhole) {
            kinds.push_back(message.kind);
            EXPECT_EQ(message.payload, message.kind == Kind::kGet ? "payload" : "");
        }
    }
    EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kGet, Kind::kLeave}));
    EXPECT_EQ(inbox.next(100, &message), Inbox::State::kIncomplete);
}

TEST(RendezvousMessage, WhatIsNoMessageIsBroken) {
    std::string right;
    append_message(&right, Kind::kGet, "payload");
    const auto state_of = [](const std::string& bytes, size_t max_bytes) {
        Inbox inbox;
        Message message;
        inbox.append(bytes.data(), bytes.size());
        return inbox.next(max_bytes, &message);
    };
    EXPECT_EQ(state_of(right, 7), Inbox::State::kWhole);
    EXPECT_EQ(state_of(right, 6), Inbox::State::kBroken) << "too long";
    EXPECT_EQ(state_of("", 7), Inbox::State::kIncomplete);
    EXPECT_EQ(state_of("G", 7), Inbox::State::kBroken) << "by the first byte";
    for (const char kind : {'\0', '\x63'}) {
        std::string other = right;
        other[offsetof(Header, kind)] = kind;
        EXPECT_EQ(state_of(other, 7), Inbox::State::kBroken);
    }
}

TEST(RendezvousMessage, EntriesAreTakenApart) {
    std::string payload;
    append_entry(&payload, {3, "key", std::string_view("a\0b", 3)});
    append_entry(&payload, {4, "other", {}});
    std::string_view rest = payload;
    Entry entry;
    ASSERT_TRUE(take_entry(&rest, &entry));
    EXPECT_TRUE(entry.pe == 3 && entry.key == "key" && entry.value == std::string_view("a\0b", 3));
    ASSERT_TRUE(take_entry(&rest, &entry));
    EXPECT_TRUE(entry.pe == 4 && entry.key == "other" && entry.value.empty() && rest.empty());
    for (size_t bytes = 0; bytes < 18; ++bytes) {
        rest = std::string_view(payload).substr(0, bytes);
        EXPECT_FALSE(take_entry(&rest, &entry)) << bytes;
    }
}

TEST(RendezvousMessage, AnyBytesAreTaken) {
    std::mt19937 random(static_cast<unsigned>(GTEST_FLAG_GET(random_seed)));
    for (int round = 0; round < 20000; ++round) {
        std::string bytes;
        append_message(&bytes, static_cast<Kind>(random() % 16), std::string(random() % 40, '\1'));
        for (unsigned i = random() % 3; i > 0; --i) bytes[random() % bytes.size()] = static_cast<char>(random());
        Inbox inbox;
        inbox.append(bytes.data(), random() % (bytes.size() + 1));
        Message message;
        if (inbox.next(64, &message) != Inbox::State::kWhole)
            continue;
        Entry entry;
        while (take_entry(&message.payload, &entry)) EXPECT_LE(entry.value.size(), kMaxValueBytes);
    }
}

TEST(RendezvousMessage, TextOfOthersIsPrintable) {
    EXPECT_EQ(printable("a\n\033[31m\xff z", 9), "a??[31m? ");
}

TEST(UniqueId, CarriesTokenAndPlace) {
    IdBytes id;
    char why[256] = "";
    Place place;
    write_id(0x1234567890abcdef, 4455, "", &id);
    ASSERT_TRUE(read_id(id, &place, {why, sizeof why})) << why;
    EXPECT_EQ(place.token, 0x1234567890abcdef);
    ASSERT_FALSE(place.endpoints.empty());
    for (const Endpoint& endpoint : place.endpoints) EXPECT_TRUE(endpoint.text().ends_with(":4455")) << endpoint.text();
}

TEST(UniqueId, AnyChangeIsNoticed) {
    IdBytes id;
    char why[256] = "";
    Place place;
    write_id(17, 4455, "", &id);
    for (size_t i = 0; i < id.size(); ++i) {
        IdBytes other = id;
        other[i] ^= 0x40;
        EXPECT_FALSE(read_id(other, &place, {why, sizeof why})) << i;
    }
}

TEST(UniqueId, APortIsTakenOnce) {
    char why[256] = "";
    const int first = listen_on(0, true, {why, sizeof why});
    ASSERT_GE(first, 0) << why;
    const Endpoint endpoint = own_endpoint(first);
    const uint16_t port = ntohs(reinterpret_cast<const sockaddr_in*>(&endpoint.address)->sin_port);
    EXPECT_EQ(listen_on(port, true, {why, sizeof why}), -1);
    EXPECT_EQ(std::string(why), "cannot listen on port " + std::to_string(port) + ": Address already in use");
    close(first);
}

TEST(Server, NamesPes) {
    EXPECT_EQ(name_pes({1}), "PE 1");
    EXPECT_EQ(name_pes({1, 3}), "PE 1 and 3");
    EXPECT_EQ(name_pes({1, 2}), "PE 1 and 2");
    EXPECT_EQ(name_pes({1, 3, 4, 5, 9}), "PE 1, 3 to 5 and 9");
    std::vector<int> many;
    for (int pe = 0; pe < 100; pe += 2) many.push_back(pe);
    EXPECT_TRUE(name_pes(many).ends_with(", 22 and others"));
}

}  // namespace
}  // namespace heddle::bootstrap::rendezvous
