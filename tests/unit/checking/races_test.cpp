// The race detector's rules, of PEs on its node and of others.
#include "unit/checking/races_fixture.h"

namespace heddle::checking::races {
namespace {

TEST_P(Races, UnorderedPutAndGetAreOne) {
    start(2);
    put(0, 1, kData);
    get(1, 1, kData);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_EQ(found()[0].earlier.pe, 0u);
    EXPECT_EQ(found()[0].later.pe, 1u);
    EXPECT_FALSE(found()[0].is_known);
    EXPECT_NE(cure().find("a wait"), std::string::npos) << cure();
}

// PEs meet in init and leave it one by one: the last one does not know what the first has done since.
TEST_P(Races, WhoLeavesInitLateKnowsNothing) {
    start(2);
    pe(0).learn_ended();
    put(0, 1, kData);
    pe(1).learn_ended();
    get(1, 1, kData);
    EXPECT_EQ(found().size(), 1u);
}

TEST_P(Races, AFinalizeOrders) {
    start(2);
    put(0, 1, kData);
    for (auto& one : pes_) one->end();
    begin(2);
    pe(0).learn_ended();
    put(0, 1, kFlag);
    pe(1).learn_ended();
    get(1, 1, kData);
    EXPECT_TRUE(found().empty());
    get(1, 1, kFlag);
    EXPECT_EQ(found().size(), 1u);
}

TEST_P(Races, ReadsAreNone) {
    start(2);
    get(0, 1, kData);
    get(1, 1, kData);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, ABarrierOrders) {
    start(3);
    put(0, 1, kData);
    barrier();
    get(2, 1, kData);
    barrier();
    put(1, 1, kData);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, ASyncCompletesNoPut) {
    start(3);
    put(0, 1, kData);
    sync();
    get(2, 1, kData);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_TRUE(found()[0].is_known);
    EXPECT_NE(cure().find("shmem_quiet on PE 0"), std::string::npos) << cure();
}

TEST_P(Races, ASyncBehindAQuietOrders) {
    start(3);
    put(0, 1, kData);
    pe(0).quiet(Flow::kDefault);
    sync();
    get(2, 1, kData);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, AQuietIsOfItsContext) {
    start(2);
    put(0, 1, kData, 8, Flow::kContextA);
    barrier();
    get(1, 1, kData);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_NE(cure().find("shmem_ctx_quiet"), std::string::npos) << cure();
}

TEST_P(Races, AQuietOfOnePeIsOfThatPe) {
    start(3);
    put(0, 1, kData);
    put(0, 2, kData);
    pe(0).quiet_to(Flow::kDefault, 1);
    sync();
    get(2, 1, kData);
    get(0, 1, kData);
    EXPECT_TRUE(found().empty());
    get(1, 2, kData);
    EXPECT_EQ(found().size(), 1u);
    pe(0).quiet_to(Flow::kDefault, 2);
    sync();
    for (int of = 1; of < 3; ++of) get(1, of, kData);
    EXPECT_EQ(found().size(), 1u);
}

TEST_P(Races, AFlagBehindAFenceOrders) {
    start(2);
    put(0, 1, kData, 100);
    pe(0).fence(Flow::kDefault);
    put(0, 1, kFlag);
    wait(1, kFlag);
    get(1, 1, kData, 100);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, AFlagWithoutAFenceDoesNot) {
    start(2);
    put(0, 1, kData);
    put(0, 1, kFlag);
    wait(1, kFlag);
    get(1, 1, kData);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_TRUE(found()[0].is_known);
    EXPECT_NE(cure().find("shmem_fence on PE 0"), std::string::npos) << cure();
}

TEST_P(Races, AFenceOrdersWhatGoesToOnePe) {
    start(3);
    put(0, 2, kData);
    pe(0).fence(Flow::kDefault);
    put(0, 1, kFlag);
    wait(1, kFlag);
    get(1, 2, kData);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_NE(cure().find("shmem_quiet on PE 0"), std::string::npos) << cure();
}

TEST_P(Races, AQuietBeforeTheFlagOrdersForAll) {
    start(3);
    put(0, 2, kData);
    pe(0).quiet(Flow::kDefault);
    put(0, 1, kFlag);
    wait(1, kFlag);
    get(1, 2, kData);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, WhatAFlagSaysIsHandedOn) {
    start(3);
    put(0, 1, kData);
    pe(0).fence(Flow::kDefault);
    put(0, 1, kFlag);
    wait(1, kFlag);
    put(1, 2, kFlag);
    wait(2, kFlag);
    get(2, 1, kData);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, AFenceSaysNothingOfOtherPesToThirdOnes) {
    start(3);
    put(0, 2, kData);
    pe(0).fence(Flow::kDefault);
    put(0, 1, kFlag);
    wait(1, kFlag);
    put(1, 2, kFlag);
    wait(2, kFlag);
    get(2, 2, kData);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_NE(cure().find("shmem_quiet on PE 0"), std::string::npos) << cure();
}

// Also what has arrived at several PEs, by as many fences and flags, is known there by all who hear of it.
TEST_P(Races, WhatHasArrivedAtSeveralPesIsHandedOn) {
    start(5);
    for (int round = 0; round < 3; ++round)
        for (int to = 1; to < 4; ++to) {
            const size_t at = 8 * static_cast<size_t>(round);
            put(0, to, kData + at);
            pe(0).fence(Flow::kDefault);
            put(0, to, kFlag + at);
            wait(to, kFlag + at);
            add(to, 4, kFlag);
        }
    wait(4, kFlag);
    for (int of = 1; of < 4; ++of) get(4, of, kData, 24);
    sync();
    for (int who = 1; who < 5; ++who)
        for (int of = 1; of < 4; ++of) get(who, of, kData, 24);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, AFlagOrdersReadsWithoutAFence) {
    start(2);
    get(0, 1, kData);
    put(0, 1, kFlag);
    wait(1, kFlag);
    put(1, 1, kData);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, ANonBlockingGetIsOverAtAQuiet) {
    start(2);
    get_nbi(0, 1, kData);
    put(0, 1, kFlag);
    wait(1, kFlag);
    put(1, 1, kData);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_NE(cure().find("shmem_quiet"), std::string::npos) << cure();
}

TEST_P(Races, ASignalSaysThatItsDataIsThere) {
    start(2);
    put_signal(0, 1, kData, 1000, kFlag);
    wait(1, kFlag);
    get(1, 1, kData, 1000);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, ASignalSaysNothingOfEarlierPuts) {
    start(2);
    put(0, 1, kData + 4096);
    put_signal(0, 1, kData, 100, kFlag);
    wait(1, kFlag);
    get(1, 1, kData + 4096);
    EXPECT_EQ(found().size(), 1u);
}

TEST_P(Races, AWaitForDataIsNoWaitForItsSignal) {
    start(2);
    put_signal(0, 1, kData, 1000, kFlag);
    wait(1, kData + 992);
    get(1, 1, kData, 8);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_NE(cure().find("shmem_signal_wait_until"), std::string::npos) << cure();
}

TEST_P(Races, WhatAWaitHasSeenIsThere) {
    start(2);
    put(0, 1, kFlag);
    wait(1, kFlag);
    put(1, 1, kFlag);  // resets the flag
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, AllThatCountAreSeen) {
    start(4);
    for (int from = 1; from < 4; ++from) {
        put(from, 0, kData + static_cast<size_t>(from) * 8);
        pe(from).fence(Flow::kDefault);
        add(from, 0, kFlag);
    }
    wait(0, kFlag);
    get(0, 0, kData, 64);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, AtomicsAreNoneWithEachOther) {
    start(3);
    add(0, 2, kData);
    add(1, 2, kData);
    EXPECT_TRUE(found().empty());
    get(2, 2, kData);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_NE(cure().find("atomics on both sides"), std::string::npos) << cure();
}

TEST_P(Races, PutsOfOnePeMayArriveInAnyOrder) {
    start(2);
    put(0, 1, kData);
    put(0, 1, kData);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_NE(cure().find("shmem_fence"), std::string::npos) << cure();
    pe(0).fence(Flow::kDefault);
    put(0, 1, kData);
    EXPECT_EQ(found().size(), 1u);
    get(0, 1, kData);
    EXPECT_EQ(found().size(), 2u) << "a fence orders no get";
    pe(0).quiet(Flow::kDefault);
    get(0, 1, kData);
    EXPECT_EQ(found().size(), 2u);
}

TEST_P(Races, NeighboursInAGranuleAreNone) {
    start(4);
    for (int from = 0; from < 4; ++from) put(from, 3, kData + static_cast<size_t>(from) * 2, 2);
    EXPECT_TRUE(found().empty());
    put(0, 3, kData + 3, 1);
    EXPECT_EQ(found().size(), 1u);
}

TEST_P(Races, LongTransfersAreCheckedAgainstParts) {
    start(2);
    put(0, 1, 0, 100 * Shadow::kBlockBytes + 24);
    get(1, 1, 50 * Shadow::kBlockBytes + 8, 8);
    ASSERT_EQ(found().size(), 1u);
    EXPECT_EQ(found()[0].position, 50 * Shadow::kBlockBytes + 8);
    barrier();
    get(1, 1, 77, 1);
    put(0, 1, 0, 1024);
    ASSERT_EQ(found().size(), 2u);
    EXPECT_EQ(found()[1].position, 77u);
}

TEST_P(Races, AWaitOnAWordOfALongPutSeesThatWordAlone) {
    start(2);
    put(0, 1, 0, Shadow::kBlockBytes);
    wait(1, 64);
    get(1, 1, 64);
    EXPECT_TRUE(found().empty());
    get(1, 1, 72);
    EXPECT_EQ(found().size(), 1u);
}

TEST_P(Races, ALockOrders) {
    start(2);
    pe(0).take_lock(kFlag);
    put(0, 1, kData);
    pe(0).release_lock(kFlag);
    pe(1).take_lock(kFlag);
    get(1, 1, kData);
    pe(1).release_lock(kFlag);
    EXPECT_TRUE(found().empty());
}

TEST_P(Races, ABufferOfACollectiveIsUsedAtItsEntry) {
    start(2);
    const CollectiveKey key = {0, 1};
    add(0, 1, kData);
    for (auto& one : pes_) one->enter_collective(key, true);
    pe(1).access_in_collective({.owner = 1, .position = kData, .bytes = 8}, {"reduce", nullptr});
    ASSERT_EQ(found().size(), 1u);
    for (auto& one : pes_) one->leave_collective(key, true);
    pe(1).access_in_collective({.owner = 1, .position = kFlag, .bytes = 8}, {"reduce", nullptr});
    sync();
    put(0, 1, kFlag);
    EXPECT_EQ(found().size(), 1u);
}

TEST_P(Races, AStoreThatNobodySeesMayBeAFlag) {
    start(2);
    put(0, 1, kData);
    pe(0).quiet(Flow::kDefault);
    wait(1, kFlag);
    get(1, 1, kData);
    EXPECT_EQ(found().size(), 1u);
    barrier();
    pe(0).expect_stores();
    put(0, 1, kData);
    pe(0).quiet(Flow::kDefault);
    wait(1, kFlag);
    get(1, 1, kData);
    EXPECT_EQ(found().size(), 1u);
}

TEST_P(Races, ABufferIsBusyUntilItsQuiet) {
    start(2);
    char buffer[64];
    pe(0).hold(buffer, sizeof buffer, false, Flow::kDefault, {"put_nbi", nullptr});
    pe(0).touch(buffer, 8, false, {"put", nullptr});
    EXPECT_TRUE(found().empty());
    pe(0).touch(buffer + 60, 8, true, {"get", nullptr});
    ASSERT_EQ(found().size(), 1u);
    EXPECT_NE(cure().find("before the buffer is used again"), std::string::npos) << cure();
    pe(0).hold(buffer, sizeof buffer, true, Flow::kDefault, {"get_nbi", nullptr});
    pe(0).quiet(Flow::kDefault);
    pe(0).touch(buffer, 8, false, {"put", nullptr});
    EXPECT_EQ(found().size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Here, Races, testing::Values(Where::kHere));
INSTANTIATE_TEST_SUITE_P(Elsewhere, Races, testing::Values(Where::kElsewhere));
INSTANTIATE_TEST_SUITE_P(Both, Races, testing::Values(Where::kBoth));

}  // namespace
}  // namespace heddle::checking::races
