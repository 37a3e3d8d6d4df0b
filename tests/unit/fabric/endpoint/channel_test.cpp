// Channel: what one poll does for others.
#include "fabric/endpoint/channel.h"
#include "unit/fabric/headers.h"
#include "unit/fabric/pair.h"
#include "unit/fabric/records.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heddle::fabric {
namespace {

constexpr int kMany = 500;  // rounds; a poll that goes on so long has no bound

// Every round of this PE's channel finds that another thread has published and queued, until there were many.
struct NeverQuiet {
    NeverQuiet(Pe& its_pe, Stream& stream) : pe(its_pe) {
        pe.cable().on_progress = [this, &stream] {
            if (++rounds >= kMany)
                return;
            put_word(stream, 8, static_cast<uint64_t>(rounds));
            stream.channel().queue(&stream);
        };
    }
    ~NeverQuiet() { pe.cable().on_progress = nullptr; }
    Pe& pe;
    int rounds = 0;
};

TEST(Channel, APollIsBoundedWhileOthersQueue) {
    Pair pair;
    Stream& mine = pair[0].to_other(0);
    Stream& theirs = pair[0].to_other(1);
    put_word(theirs, 0, 1);
    pair.settle();
    uint64_t last = 0;
    {
        put_word(mine, 16, 2);
        const NeverQuiet others(pair[0], theirs);
        pair[0].channel().poll();
        EXPECT_LE(others.rounds, Channel::kTurns * Channel::kRounds);
        EXPECT_EQ(pair[0].left, 1) << "somebody is told that something is left";
        EXPECT_EQ(pair[0].sent(MessageKind::kRecords), 3u) << "the caller's record, and one of the others, have left";
        EXPECT_FALSE(pair[0].channel().arm()) << "the others go on";
        last = static_cast<uint64_t>(others.rounds);
    }
    pair.settle();
    EXPECT_EQ(pair[1].word(2), 2u);
    EXPECT_EQ(pair[1].word(1), last);
    EXPECT_EQ(pair[0].left, 1);
}

// Each endpoint of a PE's cable: the kinds of messages that it has taken, in order.
std::vector<std::vector<MessageKind>> kinds_by_endpoint(Pe& pe) {
    std::vector<const Endpoint*> endpoints;
    std::vector<std::vector<MessageKind>> kinds;
    for (const auto& [endpoint, kind] : pe.cable().ways) {
        const auto found = std::find(endpoints.begin(), endpoints.end(), endpoint);
        const auto index = static_cast<size_t>(found - endpoints.begin());
        if (found == endpoints.end()) {
            endpoints.push_back(endpoint);
            kinds.emplace_back();
        }
        kinds[index].push_back(kind);
    }
    return kinds;
}

TEST(Channel, LargeDataHasAnEndpointOfItsOwn) {
    for (const bool parts_large : {false, true}) {
        Pair pair({.parts_large = parts_large});
        const std::string data(2 * kLargeBytes, 'a');
        std::string back(data.size(), ' ');
        put_word(pair[0].to_other(), 0, 1);
        pair.settle();
        EXPECT_EQ(kinds_by_endpoint(pair[0]).size(), 1u) << "it comes with the first large data";
        put(pair[0].to_other(), 64, data.data(), data.size());
        pair.settle();
        put(pair[0].to_other(), 64, data.data(), data.size());
        get(pair[0].to_other(), back.data(), 64, back.size());
        pair.settle();
        EXPECT_EQ(back, data);
        for (const int pe : {0, 1}) {
            const MessageKind large = pe == 0 ? MessageKind::kLargeData : MessageKind::kLargeReply;
            const auto kinds = kinds_by_endpoint(pair[pe]);
            ASSERT_EQ(kinds.size(), parts_large ? 2u : 1u);
            for (const auto& of_endpoint : kinds) EXPECT_EQ(of_endpoint.front(), MessageKind::kConnect);
            EXPECT_EQ(std::count(kinds.back().begin(), kinds.back().end(), large), pe == 0 ? 2 : 1);
            EXPECT_TRUE(!parts_large || kinds.back().size() == (pe == 0 ? 3u : 2u)) << "nothing else";
        }
    }
}

// Streams to the other PE are connected, and pair[0]'s service thread has armed its channel; it sleeps, or has woken up.
void arm(Pair& pair, uint32_t n_streams, bool is_asleep) {
    for (uint32_t i = 0; i < n_streams; ++i) put_word(pair[0].to_other(i), 8 * i, 1);
    pair.settle();
    ASSERT_TRUE(pair[0].channel().arm());
    pair[0].is_asleep = is_asleep;
}

// What waits in the transport for room at its PE has no event: the service thread must not sleep on as if nothing did.
TEST(Channel, WhatAPollLeavesInTheTransportEndsTheSleepThatWasArmedBefore) {
    for (const bool is_asleep : {true, false})
        for (const bool holds : {true, false}) {
            SCOPED_TRACE(testing::Message() << "asleep " << is_asleep << ", holds " << holds);
            Pair pair;
            arm(pair, 1, is_asleep);
            pair[0].cable().holds = holds;
            put_word(pair[0].to_other(), 8, 2);
            EXPECT_EQ(pair[0].left, is_asleep && holds) << "the service thread is told";
            pair[0].poll();
            EXPECT_EQ(pair[0].left, is_asleep && holds) << "once";
            pair[0].cable().holds = false;
            pair.settle();
            EXPECT_EQ(pair[1].word(1), 2u);
        }
}

// A poll that moves nothing, and one that leaves nothing behind, cost the sleeping service thread nothing.
TEST(Channel, PollsThatLeaveNothingInTheTransportLetTheServiceThreadSleep) {
    Pair pair;
    arm(pair, 1, true);
    for (uint64_t round = 0; round < 3; ++round) {
        put_word(pair[0].to_other(), 8, round);
        pair[0].poll();
        pair.settle();
        pair[0].poll();
    }
    EXPECT_EQ(pair[0].left, 0);
}

// The poll takes it, and the next one may be long in coming.
TEST(Channel, AnAckThatAPollDelaysEndsTheSleep) {
    for (const bool is_asleep : {true, false}) {
        Pair pair;
        arm(pair, 1, is_asleep);
        publish(pair[1].to_other(), record::kMaxShort,
                [](char* at) { return record::control(at, {9}, "message.", 8); });
        pair[1].poll();
        EXPECT_TRUE(pair[0].poll());
        EXPECT_FALSE(pair[1].is_quiet(0));
        EXPECT_EQ(pair[0].left, is_asleep);
        pair[0].poll();
        EXPECT_EQ(pair[0].left, is_asleep);
        pair.settle();
        EXPECT_TRUE(pair[1].is_quiet(0));
    }
}

// A transport is armed where all of its events have been looked at. A call that only sends has not.
TEST(Channel, ACallThatOnlySendsEndsTheSleep) {
    Pair pair;
    arm(pair, 2, true);
    pair[0].cable().on_send = [] { return true; };  // nothing is left in the transport
    put_word(pair[0].to_other(0), 0, 2);
    EXPECT_EQ(pair[0].left, 0);
    put_word(pair[0].to_other(1), 8, 2);
    EXPECT_EQ(pair[0].left, 1);
    pair[0].cable().on_send = nullptr;
    pair.settle();
}

// Two streams to the PE are busy, and the call for a third one's record only sends.
TEST(Channel, ACallThatOnlySendsTellsWhoWaits) {
    Pair pair;
    for (uint32_t i = 0; i < 3; ++i) put_word(pair[0].to_other(i), 8 * i, 1);  // connects
    pair.settle();
    for (uint32_t i = 0; i < 2; ++i) put_word(pair[0].to_other(i), 8 * i, 2);
    int looks = 0;
    pair[0].cable().on_progress = [&] { ++looks; };
    Stream& third = pair[0].to_other(2);
    const int notices = pair[0].notices, runs = pair[0].runs;
    put_word(third, 16, 2);
    EXPECT_EQ(pair[0].sent(MessageKind::kRecords), 6u);
    EXPECT_EQ(pair[0].notices, notices + 1);
    EXPECT_EQ(pair[0].runs, runs + 1) << "fibers that are ready";
    third.channel().queue(&third);
    EXPECT_TRUE(third.channel().poll(1));
    EXPECT_FALSE(third.channel().poll(1)) << "nothing is left to send";
    EXPECT_EQ(looks, 0);
    pair[0].cable().on_progress = nullptr;
    pair.settle();
}

// Another thread publishes a record whenever one leaves, and waits for it. No ack comes.
struct NeverEmpty {
    NeverEmpty(Pe& its_pe, Stream& stream, size_t bytes, bool at_once) : pe(its_pe), record(bytes, 'r') {
        pe.cable().on_send = [this, &stream, at_once] {
            if (++messages < kMost) {
                put(stream, 0, record.data(), record.size());
                stream.flush();
            }
            return at_once;
        };
    }
    ~NeverEmpty() { pe.cable().on_send = nullptr; }
    static constexpr uint64_t kMost = 100000;  // a turn that sends so many has no bound
    Pe& pe;
    const std::string record;
    uint64_t messages = 0;
};

// Each time that a stream is looked at within a turn it sends, or it is not looked at again. How much it sends ahead of
// an ack, or of what the transport lets go, is the bound of the turn.
TEST(Channel, ATurnEndsAtTheWindowWhateverProducersPublish) {
    for (const bool waits_for_acks : {false, true}) {
        Pair pair;
        Stream& stream = pair[0].to_other(0);
        put_word(stream, 0, 1);
        pair.settle();
        for (uint32_t i = 1; waits_for_acks && i <= kMaxBusy; ++i) put_word(pair[0].to_other(i), 8 * i, 1);
        {
            const NeverEmpty others(pair[0], stream, 1000, true);
            put_word(stream, 0, 2);
            if (waits_for_acks) {
                EXPECT_EQ(others.messages, 0u);
                for (uint32_t i : {1, 2})
                    pair[0].arrives(AckHeader{.position = pair[0].to_other(i).position(), .stream_set = i}, nullptr, 0);
                pair[0].channel().poll();
            }
            const uint64_t most = kWindow / record::put_bytes(1000) + 2;
            EXPECT_LE(others.messages, most);
            EXPECT_GE(others.messages, most - 2);
        }
        pair.settle();
        EXPECT_TRUE(stream.is_quiet());
    }
}

TEST(Channel, ATurnEndsWhereTheTransportKeepsWhatItHas) {
    Pair pair;
    Stream& stream = pair[0].to_other(0);
    put_word(stream, 0, 1);
    pair.settle();
    pair[0].cable().holds = true;
    {
        const NeverEmpty others(pair[0], stream, sizeof(uint64_t), false);
        put_word(stream, 0, 2);
        EXPECT_EQ(others.messages, SendRing::kMaxSending);
    }
    pair[0].cable().holds = false;
    pair.settle();
    EXPECT_TRUE(stream.is_quiet());
}

// Two rails whose channels wake each other for ever.
TEST(Channel, APollIsBoundedWhileOtherRailsWakeIt) {
    Pair pair({}, 1024 * 1024, kMessageBytes, 2);
    int rounds = 0;
    for (int rail = 0; rail < 2; ++rail)
        pair[0].cable(rail).on_progress = [&pair, &rounds, rail] {
            if (++rounds < kMany)
                pair[0].channel(rail).wake(1 - rail);
        };
    pair[0].channel().wake();
    pair[0].channel().poll();
    EXPECT_LT(rounds, kMany);
    EXPECT_GE(pair[0].left, 1);
    for (int rail = 0; rail < 2; ++rail) pair[0].cable(rail).on_progress = nullptr;
    pair.settle();
}

// Another rail brings what an inbound stream waits for, while a call that only sends has the lock. No further message
// need come that would make anybody poll.
TEST(Channel, ACallThatOnlySendsGoesOnWithWhatOtherRailsLetGoOn) {
    Pair pair({}, 4096, kMessageBytes, 2, Spread::kOneRail);
    for (const uint32_t i : {0, 2, 4}) put_word(pair[0].to_other(i), 8 * i, 1);  // on rail 0: connects
    pair.settle();
    const auto arrives_on_1 = [&] {
        const Records awaited = Records().put_word({8}, 1);
        const Header header = sent_by(RecordsHeader{.position = 0, .stream_set = 0}, 1, kToken);
        pair[0].channel(1).arrived(header, awaited.data(), awaited.size());
        pair[0].channel(1).poll();
    };
    const Records waiting = Records().after(1, 2 * record::kWord).put_word({16}, 2);
    pair[0].arrives(RecordsHeader{.position = 0, .stream_set = 0}, waiting.data(), waiting.size());
    pair[0].poll();
    for (const uint32_t i : {0, 2}) put_word(pair[0].to_other(i), 8 * i, 2);
    bool has_arrived = false;
    pair[0].cable().on_send = [&] {
        if (!std::exchange(has_arrived, true))
            arrives_on_1();
        return false;
    };
    EXPECT_EQ(pair[0].word(2), 0u);
    put_word(pair[0].to_other(4), 32, 2);
    EXPECT_TRUE(has_arrived);
    EXPECT_EQ(pair[0].word(1), 1u);
    EXPECT_EQ(pair[0].word(2), 2u);
    pair[0].cable().on_send = nullptr;
}

}  // namespace
}  // namespace heddle::fabric
