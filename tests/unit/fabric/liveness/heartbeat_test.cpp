// Heartbeat: who falls silent, or is never heard, is lost, and the ring is told; nobody else is.
#include "fabric/liveness/heartbeat.h"
#include "unit/fabric/pair.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <memory>
#include <string>
#include <vector>

namespace heddle::fabric {
namespace {

constexpr uint64_t kSecondNs = 1000000000;
constexpr uint64_t kSilenceNs = 3 * kSecondNs;

class HeartbeatTest : public testing::Test {
  protected:
    void SetUp() override {
        for (int number = 0; number < 2; ++number) start(number, kSilenceNs);
        pair.lost = [this](int pe, const std::string& reason) {
            losses.push_back("PE " + std::to_string(pe) + ": " + reason);
        };
    }
    void start(int number, uint64_t heartbeat_timeout_ns) {
        heartbeats[number] = std::make_unique<Heartbeat>(pair[number].channel(), heartbeat_timeout_ns);
        pair[number].heartbeat = heartbeats[number].get();
    }
    // A quarter of a second passes; these beat.
    void transmit(bool first, bool second) {
        now_ns += kSecondNs / 4;
        const bool beats[] = {first, second};
        for (int number = 0; number < 2; ++number)
            if (beats[number])
                tick(*heartbeats[number]);
        pair.settle();
    }
    // As Network::beat does where there is one rail.
    void tick(Heartbeat& heartbeat) {
        heartbeat.tick(now_ns);
        if (heartbeat.is_silent())
            heartbeat.lose_neighbour();
    }
    HeartbeatHeader last_sent() { return pair[0].cable().sent.back().as<HeartbeatHeader>(); }

    Pair pair;
    std::unique_ptr<Heartbeat> heartbeats[2];
    uint64_t now_ns = kSecondNs;
    std::vector<std::string> losses;
};

TEST_F(HeartbeatTest, TwiceASecondAFewBytes) {
    for (int i = 0; i < 40; ++i) transmit(true, true);
    EXPECT_EQ(pair[0].sent(MessageKind::kHeartbeat), 20u);
    EXPECT_EQ(pair[1].sent(MessageKind::kHeartbeat), 20u);
}

TEST_F(HeartbeatTest, WhoFallsSilentIsLostWithTheNameOfItsHost) {
    char host[64] = {};
    gethostname(host, sizeof host - 1);
    transmit(true, true);
    for (int i = 0; i < 11; ++i) transmit(true, false);
    EXPECT_TRUE(losses.empty());
    transmit(true, false);
    EXPECT_EQ(losses, (std::vector<std::string>{"PE 1: its host " + std::string(host) + " has been silent for 3.0 s",
                                                "PE 1: as PE 0 has noticed"}));  // the other one is told so
}

TEST_F(HeartbeatTest, WhoAsksForALongerSilenceIsLetSilent) {
    start(1, 2 * kSilenceNs);
    transmit(true, true);
    for (int i = 0; i < 23; ++i) transmit(true, false);
    EXPECT_TRUE(losses.empty());
    transmit(true, false);
    EXPECT_FALSE(losses.empty());
}

TEST_F(HeartbeatTest, ALossIsPassedOnAndBelieved) {
    pair[0].arrives(HeartbeatHeader{.lost_pe = 1}, "a", 1);
    EXPECT_EQ(losses, std::vector<std::string>{"PE 1: as PE 1 has noticed"});
    ASSERT_EQ(pair[0].sent(MessageKind::kHeartbeat), 1u);
    EXPECT_EQ(last_sent().lost_pe, 1);
}

// Its host died before the first heartbeat.
TEST_F(HeartbeatTest, WhoIsNeverHeardIsLostWhenThereWasTimeToConnect) {
    constexpr uint64_t kTicks = (Heartbeat::kConnectNs + kSilenceNs) / (kSecondNs / 4);
    for (uint64_t i = 0; i < kTicks; ++i) transmit(true, false);
    EXPECT_TRUE(losses.empty());
    transmit(true, false);
    ASSERT_FALSE(losses.empty());
    EXPECT_EQ(losses[0], "PE 1: nothing has been heard of it since shmem_init, for 13.0 s");
}

TEST_F(HeartbeatTest, WhoIsHeardLateIsNotLost) {
    for (uint64_t i = 0; i < 4 * Heartbeat::kConnectNs / kSecondNs; ++i) transmit(true, false);
    for (int i = 0; i < 40; ++i) transmit(true, true);
    EXPECT_TRUE(losses.empty());
}

TEST_F(HeartbeatTest, WhoWasStoppedItselfCountsAnew) {
    transmit(true, true);
    now_ns += 60 * kSecondNs;
    for (int i = 0; i < 12; ++i) transmit(true, false);
    EXPECT_TRUE(losses.empty());
    transmit(true, false);
    EXPECT_FALSE(losses.empty());
}

TEST_F(HeartbeatTest, WithoutALimitNobodyIsLost) {
    start(0, 0);
    transmit(true, true);
    for (int i = 0; i < 100; ++i) transmit(true, false);
    EXPECT_TRUE(losses.empty());
}

// The neighbour may come out of the last barrier much later.
TEST_F(HeartbeatTest, WhoHasLeftSaysSoOnceAndIsNotMissed) {
    transmit(true, true);
    const size_t sent = pair[1].sent(MessageKind::kHeartbeat);
    heartbeats[1]->leave();
    for (int i = 0; i < 100; ++i) transmit(true, false);
    EXPECT_EQ(pair[1].sent(MessageKind::kHeartbeat), sent + 1);
    EXPECT_TRUE(losses.empty());
}

TEST_F(HeartbeatTest, WhoIsBackAfterItLeftIsMissedAsOthersAre) {
    transmit(true, true);
    heartbeats[1]->leave();  // heard when the next life has begun
    for (Heartbeat* heartbeat : {heartbeats[0].get(), heartbeats[1].get()}) heartbeat->begin();
    transmit(true, true);
    for (int i = 0; i < 2; ++i) transmit(true, true);
    for (int i = 0; i < 20 && losses.empty(); ++i) transmit(true, false);
    ASSERT_FALSE(losses.empty());
    EXPECT_EQ(losses[0].find("PE 1: its host "), 0u) << losses[0];
}

// A PE that has all its answers does not end by a loss, and may be started again.
TEST_F(HeartbeatTest, ALossThatDidNotEndThePeHidesNoneBehindTheNextStart) {
    for (int life = 1; life <= 2; ++life) {
        losses.clear();
        pair[0].arrives(HeartbeatHeader{.lost_pe = 1}, "a", 1);
        EXPECT_EQ(losses.size(), 1u) << "life " << life;
        heartbeats[0]->begin();
    }
}

TEST_F(HeartbeatTest, AHeartbeatThatNoneWouldSendEndsThePe) {
    const std::string long_name(64, 'a');
    for (const HeartbeatHeader& header : {HeartbeatHeader{.lost_pe = 2}, HeartbeatHeader{.lost_pe = -2},
                                          HeartbeatHeader{.has_left = 2}, HeartbeatHeader{.lost_rails = 2}})
        EXPECT_DEATH(pair[0].arrives(header, "a", 1), "a malformed heartbeat");
    EXPECT_DEATH(pair[0].arrives(HeartbeatHeader{}, long_name.data(), long_name.size()), "a malformed heartbeat");
}

}  // namespace
}  // namespace heddle::fabric
