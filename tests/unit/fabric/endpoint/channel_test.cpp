// Channel: what one poll does for others.
#include "fabric/endpoint/channel.h"
#include "unit/fabric/pair.h"

#include <gtest/gtest.h>
#include <cstdint>

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
        EXPECT_EQ(pair[0].sent(MessageKind::kRecords), 4u) << "the caller's record, and two of the others, have left";
        EXPECT_FALSE(pair[0].channel().arm()) << "the others go on";
        last = static_cast<uint64_t>(others.rounds);
    }
    pair.settle();
    EXPECT_EQ(pair[1].word(2), 2u);
    EXPECT_EQ(pair[1].word(1), last);
    EXPECT_EQ(pair[0].left, 1);
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

}  // namespace
}  // namespace heddle::fabric
