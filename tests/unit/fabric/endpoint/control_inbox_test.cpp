// ControlInbox: each control message is read once, by all fields of its key and its sender, in the order in which a
// sender's control messages came.
#include "fabric/endpoint/control_inbox.h"

#include <gtest/gtest.h>
#include <cstring>
#include <string>
#include <thread>

namespace heddle::fabric {
namespace {

void deliver(ControlInbox& control_inbox, const ControlKey& key, int from, const std::string& text) {
    EXPECT_TRUE(control_inbox.deliver(key, from, text.data(), text.size()));
}

// The control message's text, or "(none)".
std::string take(ControlInbox& control_inbox, const ControlKey& key, int from) {
    char text[64];
    size_t length = 0;
    return control_inbox.take(key, from, text, sizeof text, &length) ? std::string(text, length) : "(none)";
}

TEST(ControlInbox, AMessageIsTakenOnceByItsKeyAndSender) {
    ControlInbox control_inbox;
    EXPECT_EQ(take(control_inbox, {1}, 2), "(none)");
    deliver(control_inbox, {1}, 2, "hello");
    EXPECT_EQ(take(control_inbox, {2}, 2), "(none)");
    EXPECT_EQ(take(control_inbox, {1}, 1), "(none)");
    EXPECT_EQ(take(control_inbox, {1}, 2), "hello");
    EXPECT_EQ(take(control_inbox, {1}, 2), "(none)");
}

TEST(ControlInbox, MessagesOfOneKeyAndSenderKeepTheirOrder) {
    const ControlKey kHighest = {UINT64_MAX, record::kOffsetMask, UINT32_MAX, UINT16_MAX, UINT64_MAX};
    ControlInbox control_inbox;
    for (const char* text : {"a", "b", "c"}) {
        deliver(control_inbox, {5}, 1, text);
        deliver(control_inbox, {5}, 2, std::string(text) + text);
    }
    deliver(control_inbox, kHighest, INT32_MAX, "far");
    for (const char* text : {"a", "b", "c"}) EXPECT_EQ(take(control_inbox, {5}, 2), std::string(text) + text);
    for (const char* text : {"a", "b", "c"}) EXPECT_EQ(take(control_inbox, {5}, 1), text);
    EXPECT_EQ(take(control_inbox, {5}, 1), "(none)");
    EXPECT_EQ(take(control_inbox, kHighest, INT32_MAX), "far");
}

TEST(ControlInbox, EveryFieldOfTheKeyTellsMessagesApart) {
    const ControlKey key = {4, 3, 2, 1};
    for (const ControlKey& other : {ControlKey{5, 3, 2, 1}, ControlKey{4, 4, 2, 1}, ControlKey{4, 3, 3, 1},
                                    ControlKey{4, 3, 2, 2}, ControlKey{4, 3, 2, 1, 1}, ControlKey{1, 2, 3, 4}}) {
        ControlInbox control_inbox;
        deliver(control_inbox, other, 0, "other");
        EXPECT_EQ(take(control_inbox, key, 0), "(none)");
        EXPECT_EQ(take(control_inbox, other, 0), "other");
    }
}

// The stray that a reader is told of which finds no message; its sender is -1 where there is none.
ControlInbox::Stray stray_of(ControlInbox& control_inbox, const ControlKey& key) {
    size_t length = 0;
    ControlInbox::Stray stray;
    EXPECT_FALSE(control_inbox.take(key, 0, nullptr, 0, &length, &stray));
    return stray;
}

TEST(ControlInbox, AMessageOfAnotherCallIsAStray) {
    constexpr uint64_t kTeam = 7, kStep = 10, kOwn = 1, kOther = 2;
    const ControlKey mine = {kTeam, kStep, 0, 0, kOwn};
    for (const bool others_first : {false, true}) {
        ControlInbox control_inbox;
        deliver(control_inbox, {kTeam, kStep, 3, 0, others_first ? kOther : kOwn}, 5, "first");
        EXPECT_EQ(stray_of(control_inbox, mine).pe, others_first ? 5 : -1);
        deliver(control_inbox, {kTeam, kStep, 3, 0, others_first ? kOwn : kOther}, 6, "second");
        const ControlInbox::Stray stray = stray_of(control_inbox, mine);
        EXPECT_EQ(stray.pe, others_first ? 5 : 6);
        EXPECT_EQ(stray.step, kStep);
        EXPECT_EQ(stray.call, kOther);
        // What can be read is read before.
        EXPECT_EQ(take(control_inbox, {kTeam, kStep, 3, 0, kOwn}, others_first ? 6 : 5),
                  others_first ? "second" : "first");
        EXPECT_EQ(stray_of(control_inbox, mine).call, kOther);
    }
}

TEST(ControlInbox, AMessageOfAnEarlierStepIsAStray) {
    ControlInbox control_inbox;
    deliver(control_inbox, {7, 9, 0, 0, 1}, 5, "earlier");
    EXPECT_EQ(stray_of(control_inbox, {7, 9, 1, 0, 1}).pe, -1);
    EXPECT_EQ(stray_of(control_inbox, {7, 10, 0, 0, 2}).step, 9u);
    EXPECT_EQ(stray_of(control_inbox, {7, 10, 0, 0, 2}).pe, 5);
    EXPECT_EQ(take(control_inbox, {7, 9, 0, 0, 1}, 5), "earlier");
    EXPECT_EQ(stray_of(control_inbox, {7, 10, 0, 0, 2}).pe, -1);
}

TEST(ControlInbox, LaterStepsAndOtherTeamsHaveNoStrays) {
    ControlInbox control_inbox;
    for (const uint64_t team : {6, 8})
        for (const uint64_t step : {1, 10, 20}) deliver(control_inbox, {team, step, 0, 0, 3}, 5, "another team");
    deliver(control_inbox, {7, 11, 0, 0, 3}, 5, "later");
    EXPECT_EQ(stray_of(control_inbox, {7, 10, 0, 0, 1}).pe, -1);
}

// Keys were once hashed to 64 bits: team ^ step * kGolden ^ (piece << 33 | round << 1). Two steps of a team whose
// numbers are both odd had a round and a piece for which the hashes were equal, and the reader of one got the other's
// message.
TEST(ControlInbox, KeysThatOneHashCouldNotTellApartAreApart) {
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
    const auto hash = [](const ControlKey& key, uint64_t piece) {
        return key.team ^ key.step * kGolden ^ (piece << 33 | uint64_t{key.round} << 1);
    };
    int found = 0;
    for (uint64_t step = 3; found < 3; step += 2) {
        const uint64_t difference = step * kGolden ^ kGolden;
        const uint64_t piece = difference >> 33;
        if (piece > UINT16_MAX)
            continue;
        const ControlKey first = {77, 1, static_cast<uint32_t>(difference >> 1), static_cast<uint16_t>(piece)};
        const ControlKey second = {77, step, 0, 0};
        ASSERT_EQ(hash(first, piece), hash(second, 0));
        ControlInbox control_inbox;
        deliver(control_inbox, first, 0, "first");
        deliver(control_inbox, second, 0, "second");
        EXPECT_EQ(take(control_inbox, second, 0), "second");
        EXPECT_EQ(take(control_inbox, first, 0), "first");
        ++found;
    }
}

TEST(ControlInbox, OfAMessageThatDoesNotFitNothingIsCopied) {
    ControlInbox control_inbox;
    deliver(control_inbox, {1}, 0, "0123456789");
    char text[4] = {'x', 'x', 'x', 'x'};
    size_t length = 0;
    ASSERT_TRUE(control_inbox.take({1}, 0, text, 3, &length));
    EXPECT_EQ(length, 10u);
    EXPECT_EQ(std::string(text, 4), "xxxx");
    EXPECT_EQ(take(control_inbox, {1}, 0), "(none)");
}

TEST(ControlInbox, EmptyMessagesAreMessagesToo) {
    ControlInbox control_inbox;
    EXPECT_TRUE(control_inbox.deliver({1}, 0, nullptr, 0));
    size_t length = 9;
    EXPECT_TRUE(control_inbox.take({1}, 0, nullptr, 0, &length));
    EXPECT_EQ(length, 0u);
    EXPECT_FALSE(control_inbox.take({1}, 0, nullptr, 0, &length));
}

TEST(ControlInbox, AnEventCountAdvancesWithTheMessagesOfTheTeamThatItWatches) {
    ControlInbox inbox;
    sync::EventCount messages{};
    inbox.watch(7, &messages);
    EXPECT_TRUE(inbox.deliver({.team = 6}, 1, "a", 1));
    EXPECT_FALSE(messages.reached(1));
    EXPECT_TRUE(inbox.deliver({.team = 7}, 1, "a", 1));
    EXPECT_TRUE(inbox.deliver({.team = 7, .step = 1}, 2, "a", 1));
    EXPECT_TRUE(messages.holds(2));
    inbox.watch(7, nullptr);
    EXPECT_TRUE(inbox.deliver({.team = 7}, 1, "a", 1));
    EXPECT_TRUE(messages.holds(2));
}

TEST(ControlInbox, MessagesAreCountedAsTheyCome) {
    ControlInbox control_inbox;
    EXPECT_EQ(control_inbox.received(), 0u);
    deliver(control_inbox, {1}, 0, "read");
    deliver(control_inbox, {1}, 0, "not read");
    EXPECT_EQ(take(control_inbox, {1}, 0), "read");
    EXPECT_EQ(control_inbox.received(), 2u);
}

TEST(ControlInbox, TheMostThatWaitedAreKnown) {
    ControlInbox control_inbox;
    EXPECT_EQ(control_inbox.most_waiting(), 0u);
    for (const uint64_t team : {1, 2, 3}) deliver(control_inbox, {team}, 0, "x");
    EXPECT_EQ(take(control_inbox, {2}, 0), "x");
    deliver(control_inbox, {2}, 1, "x");
    EXPECT_EQ(control_inbox.most_waiting(), 3u);
}

// Bytes, or messages of none: what one PE sends has a bound, whatever the keys. Others are not concerned.
TEST(ControlInbox, MoreOfOnePeThanMayWaitIsRefused) {
    constexpr int64_t kTeamBytes = 1 << 20;
    for (const size_t bytes : {size_t{0}, size_t{16 * 1024}}) {
        ControlInbox control_inbox;
        const std::vector<char> data(bytes);
        const auto fill = [&](uint64_t step) {
            size_t sent = 0;
            while (control_inbox.deliver({1, step++}, 7, data.data(), bytes)) ++sent;
            return sent;
        };
        const size_t without = fill(0);
        EXPECT_TRUE(control_inbox.deliver({1}, 8, data.data(), bytes)) << "of another PE";
        control_inbox.allow(kTeamBytes);
        const size_t more = fill(1'000'000'000);
        EXPECT_GE(more, kTeamBytes / (bytes + ControlInbox::kOverheadBytes) - 2);
        EXPECT_LE(more, kTeamBytes / (bytes + ControlInbox::kOverheadBytes));
        char room[16 * 1024];
        size_t length = 0;
        for (uint64_t step = 0; step < without; ++step)
            ASSERT_TRUE(control_inbox.take({1, step}, 7, room, sizeof room, &length));
        control_inbox.allow(-kTeamBytes);
        EXPECT_TRUE(control_inbox.deliver({1}, 7, data.data(), bytes)) << "what has been read waits no more";
    }
}

TEST(ControlInbox, ThreadsDeliverAndTakeAtOnce) {
    constexpr int kSenders = 3, kMessages = 2000;
    ControlInbox control_inbox;
    std::vector<std::thread> senders;
    for (int sender = 0; sender < kSenders; ++sender)
        senders.emplace_back([&control_inbox, sender] {
            for (int i = 0; i < kMessages; ++i)
                EXPECT_TRUE(control_inbox.deliver({.round = static_cast<uint32_t>(i % 3)}, sender,
                                                  reinterpret_cast<const char*>(&i), sizeof i));
        });
    for (int i = 0; i < kMessages; ++i) {
        for (int sender = 0; sender < kSenders; ++sender) {
            int value = -1;
            size_t length = 0;
            while (!control_inbox.take({.round = static_cast<uint32_t>(i % 3)}, sender, &value, sizeof value, &length))
                std::this_thread::yield();
            ASSERT_EQ(value, i);
            ASSERT_EQ(length, sizeof value);
        }
    }
    for (std::thread& sender : senders) sender.join();
}

}  // namespace
}  // namespace heddle::fabric
