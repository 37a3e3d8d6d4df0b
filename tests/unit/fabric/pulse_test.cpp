// Pulse: who has been heard and then falls silent is lost, and the ring is told; nobody else is.
#include "fabric/pulse.h"
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

class PulseTest : public testing::Test {
  protected:
    void SetUp() override {
        for (int number = 0; number < 2; ++number) start(number, kSilenceNs);
        pair.lost = [this](int pe, const std::string& reason) {
            losses.push_back("PE " + std::to_string(pe) + ": " + reason);
        };
    }
    void start(int number, uint64_t silence_ns) {
        pulses[number] = std::make_unique<Pulse>(pair[number].wire(), silence_ns);
        pair[number].pulse = pulses[number].get();
    }
    // A quarter of a second passes; these beat.
    void pass(bool first, bool second) {
        now_ns += kSecondNs / 4;
        const bool beats[] = {first, second};
        for (int number = 0; number < 2; ++number)
            if (beats[number])
                beat(*pulses[number]);
        pair.settle();
    }
    // As Network::beat does where there is one rail.
    void beat(Pulse& pulse) {
        pulse.beat(now_ns);
        if (pulse.is_silent())
            pulse.lose_neighbour();
    }

    Pair pair;
    std::unique_ptr<Pulse> pulses[2];
    uint64_t now_ns = kSecondNs;
    std::vector<std::string> losses;
};

TEST_F(PulseTest, TwiceASecondAFewBytes) {
    for (int i = 0; i < 40; ++i) pass(true, true);
    EXPECT_EQ(pair[0].sent(MessageKind::kPulse), 20u);
    EXPECT_EQ(pair[1].sent(MessageKind::kPulse), 20u);
}

TEST_F(PulseTest, WhoFallsSilentIsLostWithTheNameOfItsHost) {
    char host[64] = {};
    gethostname(host, sizeof host - 1);
    pass(true, true);
    for (int i = 0; i < 11; ++i) pass(true, false);
    EXPECT_TRUE(losses.empty());
    pass(true, false);
    EXPECT_EQ(losses, (std::vector<std::string>{"PE 1: its host " + std::string(host) + " has been silent for 3.0 s",
                                                "PE 1: as PE 0 has noticed"}));  // the other one is told so
}

TEST_F(PulseTest, WhoAsksForALongerSilenceIsLetSilent) {
    start(1, 2 * kSilenceNs);
    pass(true, true);
    for (int i = 0; i < 23; ++i) pass(true, false);
    EXPECT_TRUE(losses.empty());
    pass(true, false);
    EXPECT_FALSE(losses.empty());
}

TEST_F(PulseTest, ALossIsPassedOnAndBelieved) {
    pair[0].arrives({.position = 2, .kind = MessageKind::kPulse}, "a", 1);
    EXPECT_EQ(losses, std::vector<std::string>{"PE 1: as PE 1 has noticed"});
    ASSERT_EQ(pair[0].sent(MessageKind::kPulse), 1u);
    EXPECT_EQ(pair[0].cable().sent.back().position, 2u);
}

TEST_F(PulseTest, WhoWasNeverHeardIsNotLost) {
    for (int i = 0; i < 100; ++i) pass(true, false);
    EXPECT_TRUE(losses.empty());
}

TEST_F(PulseTest, WhoWasStoppedItselfCountsAnew) {
    pass(true, true);
    now_ns += 60 * kSecondNs;
    for (int i = 0; i < 12; ++i) pass(true, false);
    EXPECT_TRUE(losses.empty());
    pass(true, false);
    EXPECT_FALSE(losses.empty());
}

TEST_F(PulseTest, WithoutALimitNobodyIsLost) {
    start(0, 0);
    pass(true, true);
    for (int i = 0; i < 100; ++i) pass(true, false);
    EXPECT_TRUE(losses.empty());
}

TEST_F(PulseTest, WhoLeavesSaysSoOnceAndIsNotMissedBefore) {
    pass(true, true);
    const size_t sent = pair[1].sent(MessageKind::kPulse);
    for (int i = 0; i < 8; ++i) {
        pulses[1]->leave();
        pass(true, false);
    }
    EXPECT_EQ(pair[1].sent(MessageKind::kPulse), sent + 1);
    EXPECT_TRUE(losses.empty()) << "it is expected to follow";
}

TEST_F(PulseTest, WhoDoesNotFollowOneThatHasLeftLosesIt) {
    pass(true, true);
    pulses[1]->leave();
    for (int i = 0; i < 20 && losses.empty(); ++i) pass(true, false);
    ASSERT_EQ(losses.size(), 1u) << "who has left is not told of itself";
    EXPECT_EQ(losses[0].find("PE 1: left, its host "), 0u) << losses[0];
    EXPECT_EQ(pair[0].cable().sent.back().position, 2u | kHasLeft) << "the others are told which it is";
}

TEST_F(PulseTest, WhoIsBackAfterItLeftIsMissedAsOthersAre) {
    pass(true, true);
    pulses[1]->leave();
    pass(true, true);
    for (Pulse* pulse : {pulses[0].get(), pulses[1].get()}) pulse->begin();
    pass(true, true);
    for (int i = 0; i < 20 && losses.empty(); ++i) pass(true, false);
    ASSERT_FALSE(losses.empty());
    EXPECT_EQ(losses[0].find("PE 1: its host "), 0u) << losses[0];
}

TEST_F(PulseTest, ALossOfOneThatHasLeftIsPassedOn) {
    pair[0].arrives({.position = 1 | kHasLeft, .kind = MessageKind::kPulse}, "a", 1);
    ASSERT_EQ(losses.size(), 1u);
    EXPECT_EQ(losses[0].find("PE 0: left, as PE "), 0u) << losses[0];
}

TEST_F(PulseTest, APulseThatNoneWouldSendEndsThePe) {
    const std::string long_name(64, 'a');
    EXPECT_DEATH(pair[0].arrives({.position = 3, .kind = MessageKind::kPulse}, "a", 1), "a pulse that is none");
    EXPECT_DEATH(pair[0].arrives({.kind = MessageKind::kPulse}, long_name.data(), long_name.size()),
                 "a pulse that is none");
}

}  // namespace
}  // namespace heddle::fabric
