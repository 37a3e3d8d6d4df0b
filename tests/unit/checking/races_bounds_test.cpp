// The race detector where its memory is full, and what reports say, of PEs on its node and of others.
#include "unit/checking/races_fixture.h"

namespace heddle::checking::races {
namespace {

class RacesBounds : public Races {};

// More states than a history holds: what is found there instead knows more, so that nothing false is found.
TEST_P(RacesBounds, OldStatesAreReplacedByLaterOnes) {
    start(3);
    put(0, 1, kData);
    pe(0).fence(Flow::kDefault);
    put(0, 1, kFlag);
    for (uint64_t i = 0; i < 3 * Histories::kStates; ++i) {
        put(0, 2, kData + 8 * i);
        pe(0).fence(Flow::kDefault);
    }
    wait(1, kFlag);
    get(1, 1, kData);
    EXPECT_TRUE(found().empty());
}

TEST_P(RacesBounds, APartThatIsWrittenAgainHidesNothingOfTheRest) {
    start(2);
    put(0, 1, 0, Shadow::kBlockBytes);
    pe(0).quiet(Flow::kDefault);
    put(0, 1, 0);
    get(1, 1, 256);
    EXPECT_EQ(found().size(), 1u);
}

TEST_P(RacesBounds, TheLastWriteIsKnown) {
    start(8);
    if (!is_here(0))
        GTEST_SKIP() << "a PE elsewhere would have to wait for the answer";
    const auto last = [&](size_t position, size_t bytes = 8) {
        int from = -1;
        base::CallText call;
        return pe(0).try_last_write(position, bytes, &from, &call) ? std::to_string(from) + " " + call.data() : "";
    };
    EXPECT_EQ(last(kFlag), "");
    put(3, 0, kFlag);
    EXPECT_EQ(last(kFlag), "3 put");
    for (int from = 7; from > 1; --from) add(from, 0, kFlag);  // more than a granule keeps
    EXPECT_EQ(last(kFlag), "2 add");
    signal(5, 0, kFlag);
    get(4, 0, kFlag);
    EXPECT_EQ(last(kFlag), "5 signal");
    wait(0, kFlag);
    EXPECT_EQ(last(kFlag), "5 signal");
    put(6, 0, kFlag + 4, 4);
    EXPECT_EQ(last(kFlag, 4), "5 signal");
    EXPECT_EQ(last(kFlag + 4, 4), "6 put");
    put(1, 0, kFlag, Shadow::kBlockBytes);
    EXPECT_EQ(last(kFlag), "1 put");
    pe(1).quiet(Flow::kDefault);
    put(1, 0, kFlag + 8);  // another word of the block
    EXPECT_EQ(last(kFlag), "1 put");
    put(2, 0, kFlag);
    wait(0, kFlag + 16);  // hands what the block has on to its words
    EXPECT_EQ(last(kFlag), "2 put");
    EXPECT_EQ(last(kData), "");
    EXPECT_EQ(last(kFlag + 4), "") << "of two granules";
}

// More words than the tables hold: no order is lost.
TEST_P(RacesBounds, FullTablesFindNothingFalse) {
    start(2);
    for (size_t i = 0; i < 2 * Contributions::kWords; ++i) {
        const size_t data = 8 * i, flag = kPositions / 2 + 8 * i;
        put(0, 1, data);
        pe(0).fence(Flow::kDefault);
        add(0, 1, flag);
        wait(1, flag);
        get(1, 1, data);
        ASSERT_TRUE(found().empty()) << i;
    }
}

TEST_P(RacesBounds, ManyPlainFlagsInOneGranule) {
    start(8);
    for (int from = 0; from < 8; ++from) {
        put(from, 0, kData + 64 * static_cast<size_t>(from));
        pe(from).fence(Flow::kDefault);
        put(from, 0, kFlag + static_cast<size_t>(from), 1);
    }
    for (int from = 0; from < 8; ++from) {
        pe(0).see(0, kFlag + static_cast<size_t>(from), 1, Edge::kWait);
        get(0, 0, kData + 64 * static_cast<size_t>(from));
    }
    EXPECT_TRUE(found().empty());
}

TEST_P(RacesBounds, EachPairIsReportedOnce) {
    start(2);
    const base::CallText a = {"a"}, b = {"b"};
    EXPECT_TRUE(pe(0).is_new(a, b));
    EXPECT_FALSE(pe(1).is_new(b, a));
    EXPECT_TRUE(pe(1).is_new(a, a));
}

TEST_P(RacesBounds, AReportHasBothCalls) {
    start(2);
    put(0, 1, kData);
    get(1, 1, kData);
    ASSERT_EQ(found().size(), 1u);
    const std::string text = describe(found()[0], {"shmem_long_put (called at a+0x1)"},
                                      {"shmem_long_get (called at a+0x2)"}, "8 bytes into the heap");
    EXPECT_NE(text.find("shmem_long_get (called at a+0x2) on PE 1 reads 8 bytes of PE 1's memory, 8 bytes into the "
                        "heap, which shmem_long_put (called at a+0x1) on PE 0 writes; missing: a wait"),
              std::string::npos)
        << text;
}

TEST_P(RacesBounds, ACallsTextIsKnownToAll) {
    start(2);
    put(0, 1, kData);
    get(1, 1, kData);
    ASSERT_EQ(found().size(), 1u);
    for (int who : {0, 1}) {
        EXPECT_STREQ(pe(who).text_of(0, found()[0].earlier.place).data(), "put");
        EXPECT_STREQ(pe(who).text_of(1, found()[0].later.place).data(), "get");
    }
}

TEST_P(RacesBounds, MoreAccessesAtOnceThanAMessageHoldsAreAllKept) {
    start(2);
    const size_t many = 3 * kMostAtOnce + 1;
    std::vector<RaceDetector::AtOnce> accesses;
    for (size_t i = 0; i < many; ++i)
        accesses.push_back({{.owner = 1, .position = 16 * i, .bytes = 8}, {"load", nullptr}});
    pe(1).access_at_once(accesses);
    for (size_t i = 0; i < many; ++i) put(0, 1, 16 * i);
    EXPECT_EQ(found().size(), many);
}

// Of a block that is read here and there: a race with each earlier call, none with a put between what is read.
TEST_P(RacesBounds, SomeBytesOfABlockRaceWithEachEarlierCall) {
    start(2);
    const base::Call one = {"one put", nullptr}, other = {"another put", nullptr};
    const auto put_by = [&](const base::Call& call, size_t position) {
        pe(0).access({1, position, 8, true, false, Completion::kOrdered, Flow::kDefault}, call);
    };
    put_by(one, kData + 32);
    put_by(one, kData + 48);
    put_by(other, kData + 504);
    BlockBytes bytes = {};
    for (size_t at = 0; at < kBlockBytes; at += 32) bytes[at / 64] |= uint64_t{0xffff} << (at % 64);
    pe(1).access_blocks({{1, kData, false, {kLoad, nullptr}, bytes}});
    ASSERT_EQ(found().size(), 1u);
    EXPECT_EQ(found().back().position, kData + 32);
    EXPECT_EQ(found().back().bytes, 16u);
    bytes[7] |= uint64_t{0xf} << 60;
    pe(1).access_blocks({{1, kData, false, {kStore, nullptr}, bytes}, {1, kData, true, {kStore, nullptr}, {}}});
    ASSERT_EQ(found().size(), 3u);
    EXPECT_EQ(found().back().position, kData + 508);
    EXPECT_EQ(found().back().bytes, 4u);
}

// What the shadow keeps of some bytes races with a later call, as the same bytes one by one.
TEST_P(RacesBounds, SomeBytesOfABlockAreKept) {
    start(2);
    BlockBytes bytes = {0, 0xff00, 0, 0, 0, 0, 0, 0};
    pe(1).access_blocks({{1, kData, true, {kStore, nullptr}, bytes}});
    put(0, 1, kData + 64);
    put(0, 1, kData + 80);
    EXPECT_TRUE(found().empty());
    pe(1).access_blocks({{1, kData, true, {kStore, nullptr}, bytes}});
    put(0, 1, kData + 72);
    EXPECT_EQ(found().size(), 1u);
    bytes.fill(~uint64_t{0});
    pe(1).access_blocks({{1, kData + kBlockBytes, true, {kStore, nullptr}, bytes}});
    put(0, 1, kData + 2 * kBlockBytes - 8);
    EXPECT_EQ(found().size(), 2u);
}

TEST_P(RacesBounds, MoreRacesThanAnAnswerHoldsAreAllTold) {
    start(2);
    const size_t many = 2 * kMostRaces + 1;
    for (size_t i = 0; i < many; ++i) {
        put(0, 1, 16 * i);
        put(1, 1, 16 * i);
    }
    EXPECT_EQ(found().size(), many);
}

INSTANTIATE_TEST_SUITE_P(Here, RacesBounds, testing::Values(Where::kHere));
INSTANTIATE_TEST_SUITE_P(Elsewhere, RacesBounds, testing::Values(Where::kElsewhere));
INSTANTIATE_TEST_SUITE_P(Both, RacesBounds, testing::Values(Where::kBoth));

}  // namespace
}  // namespace heddle::checking::races
