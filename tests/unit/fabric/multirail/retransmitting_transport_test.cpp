// RetransmittingTransport by itself, over two rails that only note what is sent: what is kept leaves again when its
// rail is lost, and what arrives is passed on once, in order, to the channel of its rail.
#include "fabric/multirail/retransmitting_transport.h"

#include <gtest/gtest.h>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace heddle::fabric {
namespace {

constexpr uint64_t kToken = 7;
constexpr int kRails = 2, kOther = 1;  // the other PE

// A rail: what its transport has been given, and what its channel has got.
struct TestRail {
    struct Sent {
        Header header;
        std::string body;
    };
    std::vector<Sent> sent;
    bool holds = false;            // what is sent does not leave
    int looks = 0;                 // calls of progress and arm
    std::vector<std::string> got;  // by the channel; of large messages "large " and the size
    Arrival* announced = nullptr;
    bool takes_at_once = true;
    std::string large = std::string(5, '-');
    int woken = 0;
    Transport* outer = nullptr;  // as the channel sees it
    Endpoint* endpoint = nullptr;
};

Transport* inner_of(TestRail& rail) {
    return reinterpret_cast<Transport*>(&rail);
}
TestRail& rail_of(void* it) {
    return *static_cast<TestRail*>(it);
}
TestRail& rail_of(Transport* transport) {
    return *reinterpret_cast<TestRail*>(transport);
}

void receive_large(TestRail& rail) {
    RetransmittingTransport::api().receive(rail.outer, 0, kOther, rail.announced, rail.large.data(), rail.large.size(),
                                           nullptr, nullptr);
}

const TransportApi kInner = {
    .name = "test",
    .open = nullptr,
    .close = nullptr,
    .is_native = nullptr,
    .address_blob = nullptr,
    .connect = [](Transport* transport, int, int, const char*, size_t, char*,
                  size_t) { return reinterpret_cast<Endpoint*>(transport); },
    .send =
        [](Transport* transport, int, Endpoint*, const void* header, const char* body, size_t bytes, bool large,
           Done done, void* argument) {
            EXPECT_FALSE(large) << "large messages travel whole";
            TestRail::Sent sent;
            memcpy(&sent.header, header, sizeof sent.header);
            sent.body.assign(body, bytes);
            rail_of(transport).sent.push_back(sent);
            if (!rail_of(transport).holds)
                done(argument);
        },
    .receive = nullptr,
    .refuse = nullptr,
    .put = nullptr,
    .get = nullptr,
    .progress =
        [](Transport* transport, int) {
            ++rail_of(transport).looks;
            return true;
        },
    .descriptor = nullptr,
    .arm =
        [](Transport* transport, int) {
            ++rail_of(transport).looks;
            return false;
        },
};

class RetransmittingTransportTest : public testing::Test {
  protected:
    RetransmittingTransportTest() {
        lost_rails = 0;
        for (TestRail& rail : rails) {
            rail.outer = all.add_rail(inner_of(rail), {&rail, arrived, announced, nullptr});
            rail.endpoint = RetransmittingTransport::api().connect(rail.outer, 0, kOther, "", 0, nullptr, 0);
        }
    }
    // Texts that live as long as messages are kept.
    void send(int rail, const char* text, bool large = false) {
        Header header = LargeDataHeader{};
        header.token = kToken;
        RetransmittingTransport::api().send(
            rails[rail].outer, 0, rails[rail].endpoint, &header, text, strlen(text), large,
            [](void* count) { ++*static_cast<int*>(count); }, &done);
    }
    bool progress(int rail) { return RetransmittingTransport::api().progress(rails[rail].outer, 0); }
    // A message of the other PE; its own rail, its number, and how many of this PE's it has.
    void arrives(int on_rail, uint32_t own_rail, uint64_t sequence, const std::string& body, uint64_t received = 0,
                 bool large = false) {
        Header header = LargeDataHeader{};
        header.token = kToken;
        header.pe = kOther;
        header.rail = own_rail;
        header.sequence = sequence;
        header.received = received;
        header.large = large;
        all.arrived(on_rail, 0, header, body.data(), body.size());
    }
    std::vector<std::string> sent_on(int rail) {
        std::vector<std::string> texts;
        for (const TestRail::Sent& sent : rails[rail].sent) {
            std::string text = std::to_string(sent.header.rail);
            text.append(".").append(std::to_string(sent.header.sequence)).append(" ").append(sent.body);
            texts.push_back(text);
        }
        return texts;
    }
    static void arrived(void* owner, int, const void* header, const char* body, size_t bytes) {
        Header copy;
        memcpy(&copy, header, sizeof copy);
        EXPECT_EQ(copy.sequence, 0u) << "no channel sees a number";
        rail_of(owner).got.emplace_back(body, bytes);
    }
    static void announced(void* owner, int, const void*, size_t bytes, Arrival* arrival) {
        TestRail& rail = rail_of(owner);
        rail.got.push_back("large " + std::to_string(bytes));
        rail.announced = arrival;
        if (rail.takes_at_once)
            receive_large(rail);
    }

    static std::atomic<uint32_t> lost_rails;
    TestRail rails[kRails];
    int done = 0;
    RetransmittingTransport all{{.api = &kInner,
                                 .token = kToken,
                                 .n_pes = 2,
                                 .n_rails = kRails,
                                 .lost_rails = &lost_rails,
                                 .rail_lost = [](int rail, int, Loss, const char*) { lost_rails |= 1u << rail; },
                                 .endpoint_of = [](void* owner, int, int) { return rail_of(owner).endpoint; },
                                 .wake = [](void* owner, int) { ++rail_of(owner).woken; }}};
};
std::atomic<uint32_t> RetransmittingTransportTest::lost_rails;

using Texts = std::vector<std::string>;

TEST_F(RetransmittingTransportTest, AMessageIsKeptUntilTheOtherPeHasIt) {
    send(0, "a");
    send(0, "b");
    EXPECT_EQ(sent_on(0), (Texts{"0.1 a", "0.2 b"}));
    EXPECT_EQ(done, 0) << "that the transport has sent them counts for nothing";
    arrives(0, 0, 1, "", 1);
    EXPECT_EQ(done, 1);
    arrives(0, 0, 2, "", 2);
    EXPECT_EQ(done, 2);
}

TEST_F(RetransmittingTransportTest, WhatIsKeptLeavesOverTheRailThatIsLeftTheOldestFirst) {
    for (const char* text : {"a", "b", "c"}) send(0, text);
    arrives(0, 0, 1, "", 1);
    lost_rails = 1;
    EXPECT_TRUE(progress(0));
    EXPECT_FALSE(progress(0)) << "once for a loss";
    EXPECT_EQ(rails[1].woken, 2);
    EXPECT_TRUE(progress(1));
    EXPECT_EQ(sent_on(1), (Texts{"0.2 b", "0.3 c"}));
    send(0, "d");
    EXPECT_TRUE(progress(1));
    EXPECT_EQ(sent_on(1).back(), "0.4 d");
    EXPECT_EQ(done, 1);
    arrives(1, 0, 2, "", 4);
    progress(0);
    EXPECT_EQ(done, 4);
}

// UCX may wait for ever in a call on connections that take nothing any more, with the channel's lock.
TEST_F(RetransmittingTransportTest, TheTransportOfALostRailIsNotCalledAndMayKeepWhatItHolds) {
    rails[0].holds = true;
    send(0, "a");
    EXPECT_TRUE(progress(0));
    EXPECT_FALSE(RetransmittingTransport::api().arm(rails[0].outer, 0));
    EXPECT_EQ(rails[0].looks, 2);
    lost_rails = 1;
    EXPECT_TRUE(progress(0));
    send(0, "b");
    EXPECT_FALSE(progress(0));
    EXPECT_TRUE(RetransmittingTransport::api().arm(rails[0].outer, 0)) << "nothing will come";
    EXPECT_EQ(rails[0].looks, 2);
    EXPECT_EQ(sent_on(0), (Texts{"0.1 a"}));
    progress(1);
    EXPECT_EQ(sent_on(1), (Texts{"0.1 a", "0.2 b"}));
    EXPECT_EQ(done, 0) << "the other PE may not have it, and the body must stay";
    arrives(1, 0, 1, "", 2);
    progress(0);
    EXPECT_EQ(done, 2);
}

TEST_F(RetransmittingTransportTest, MessagesArePassedOnOnceAndInOrder) {
    arrives(0, 0, 1, "a");
    arrives(0, 0, 3, "c");  // the second was lost with its rail
    arrives(0, 0, 1, "a");
    arrives(0, 0, 2, "b");
    arrives(0, 0, 3, "c");
    EXPECT_EQ(rails[0].got, (Texts{"a", "b", "c"}));
}

TEST_F(RetransmittingTransportTest, AMessageOfAnotherRailGoesToItsChannelAndTellsTheLoss) {
    arrives(1, 0, 1, "a");
    EXPECT_EQ(lost_rails, 1u);
    EXPECT_TRUE(rails[0].got.empty() && rails[1].got.empty());
    EXPECT_EQ(rails[0].woken, 1);
    EXPECT_TRUE(progress(0));
    EXPECT_EQ(rails[0].got, (Texts{"a"}));
    EXPECT_TRUE(rails[1].got.empty());
}

TEST_F(RetransmittingTransportTest, ALargeMessageTravelsWholeAndIsAnnounced) {
    send(0, "12345", true);
    EXPECT_EQ(rails[0].sent[0].header.large, 1u);
    arrives(0, 0, 1, "12345", 0, true);
    EXPECT_EQ(rails[0].got, (Texts{"large 5"}));
    EXPECT_EQ(rails[0].large, "12345");
}

TEST_F(RetransmittingTransportTest, ALargeMessageWaitsForItsPlace) {
    rails[0].takes_at_once = false;
    {
        const std::string body = "abcde";
        arrives(0, 0, 1, body, 0, true);
    }
    receive_large(rails[0]);
    EXPECT_EQ(rails[0].large, "abcde");
}

using RetransmittingTransportDeathTest = RetransmittingTransportTest;

TEST_F(RetransmittingTransportDeathTest, WhatNoPeWouldSendEndsThePe) {
    EXPECT_EXIT(arrives(0, 0, 0, "a"), testing::ExitedWithCode(1), "another HEDDLE_RAIL_LOSS");
    EXPECT_EXIT(arrives(0, 2, 1, "a"), testing::ExitedWithCode(1), "a message of a rail that is none \\(large data");
    EXPECT_EXIT(arrives(0, 0, 1, "a", 1), testing::ExitedWithCode(1), "the receipt of what this PE has not sent");
}

TEST_F(RetransmittingTransportTest, AStrangersMessageIsLeftToTheChannel) {
    const Header stranger;
    all.arrived(0, 0, stranger, "x", 1);
    EXPECT_EQ(rails[0].got, (Texts{"x"}));
}

}  // namespace
}  // namespace heddle::fabric
