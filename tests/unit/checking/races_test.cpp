// The race detector's rules: several PEs' detectors over one memory, driven step by step.
#include "checking/races/detector.h"
#include "checking/races/report.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace heddle::checking::races {
namespace {

constexpr size_t kPositions = 1 << 20;
constexpr size_t kFlag = 4096, kData = 8192;

class Races : public testing::Test {
  protected:
    void start(int n_pes) {
        memory_.assign(Detector::bytes(kPositions, n_pes) / sizeof(Line) + 1, Line{});
        for (int pe = 0; pe < n_pes; ++pe)
            pes_.push_back(
                std::make_unique<Detector>(memory_.front().bytes, kPositions, pe, n_pes, &Races::note, this));
    }
    static void note(void* to, const Race& race) { static_cast<Races*>(to)->found_.push_back(race); }

    Detector& pe(int number) { return *pes_[static_cast<size_t>(number)]; }

    void put(int from, int to, size_t position, size_t bytes = 8, Flow flow = Flow::kDefault) {
        pe(from).access({to, position, bytes, true, false, Completion::kOrdered, flow}, {"put", nullptr});
    }
    void get(int from, int of, size_t position, size_t bytes = 8) {
        pe(from).access({of, position, bytes, false, false, Completion::kAtReturn, Flow::kDefault}, {"get", nullptr});
    }
    void get_nbi(int from, int of, size_t position, size_t bytes = 8) {
        pe(from).access({of, position, bytes, false, false, Completion::kAtQuiet, Flow::kDefault},
                        {"get_nbi", nullptr});
    }
    void add(int from, int to, size_t position) {
        pe(from).update({to, position, 8, true, true, Completion::kOrdered, Flow::kDefault}, {"add", nullptr});
    }
    void signal(int from, int to, size_t position) {
        pe(from).update({to, position, 8, true, true, Completion::kOrdered, Flow::kDefault}, {"signal", nullptr}, true);
    }
    void put_signal(int from, int to, size_t position, size_t bytes, size_t flag) {
        put(from, to, position, bytes, Flow::kSignal);
        signal(from, to, flag);
    }
    void wait(int who, size_t position) { pe(who).see(who, position, 8, Edge::kWait); }
    void sync() {
        const CollectiveKey key = {0, ++step_};
        for (auto& one : pes_) one->enter_collective(key, true);
        for (auto& one : pes_) one->leave_collective(key, true);
    }
    void barrier() {
        for (auto& one : pes_) one->quiet(Flow::kDefault);
        sync();
    }
    std::string cure() const { return found_.empty() ? "" : describe_cure(found_.back()); }

    struct alignas(64) Line {
        char bytes[64];
    };
    std::vector<Line> memory_;
    std::vector<std::unique_ptr<Detector>> pes_;
    std::vector<Race> found_;
    uint32_t step_ = 0;
};

TEST_F(Races, UnorderedPutAndGetAreOne) {
    start(2);
    put(0, 1, kData);
    get(1, 1, kData);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_EQ(found_[0].earlier.pe, 0u);
    EXPECT_EQ(found_[0].later.pe, 1u);
    EXPECT_FALSE(found_[0].is_known);
    EXPECT_NE(cure().find("a wait"), std::string::npos) << cure();
}

TEST_F(Races, ReadsAreNone) {
    start(2);
    get(0, 1, kData);
    get(1, 1, kData);
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, ABarrierOrders) {
    start(3);
    put(0, 1, kData);
    barrier();
    get(2, 1, kData);
    barrier();
    put(1, 1, kData);
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, ASyncCompletesNoPut) {
    start(3);
    put(0, 1, kData);
    sync();
    get(2, 1, kData);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_TRUE(found_[0].is_known);
    EXPECT_NE(cure().find("shmem_quiet on PE 0"), std::string::npos) << cure();
}

TEST_F(Races, ASyncBehindAQuietOrders) {
    start(3);
    put(0, 1, kData);
    pe(0).quiet(Flow::kDefault);
    sync();
    get(2, 1, kData);
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, AQuietIsOfItsContext) {
    start(2);
    put(0, 1, kData, 8, Flow::kContextA);
    barrier();
    get(1, 1, kData);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_NE(cure().find("shmem_ctx_quiet"), std::string::npos) << cure();
}

TEST_F(Races, AFlagBehindAFenceOrders) {
    start(2);
    put(0, 1, kData, 100);
    pe(0).fence(Flow::kDefault);
    put(0, 1, kFlag);
    wait(1, kFlag);
    get(1, 1, kData, 100);
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, AFlagWithoutAFenceDoesNot) {
    start(2);
    put(0, 1, kData);
    put(0, 1, kFlag);
    wait(1, kFlag);
    get(1, 1, kData);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_TRUE(found_[0].is_known);
    EXPECT_NE(cure().find("shmem_fence on PE 0"), std::string::npos) << cure();
}

TEST_F(Races, AFenceOrdersWhatGoesToOnePe) {
    start(3);
    put(0, 2, kData);
    pe(0).fence(Flow::kDefault);
    put(0, 1, kFlag);
    wait(1, kFlag);
    get(1, 2, kData);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_NE(cure().find("shmem_quiet on PE 0"), std::string::npos) << cure();
}

TEST_F(Races, AQuietBeforeTheFlagOrdersForAll) {
    start(3);
    put(0, 2, kData);
    pe(0).quiet(Flow::kDefault);
    put(0, 1, kFlag);
    wait(1, kFlag);
    get(1, 2, kData);
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, WhatAFlagSaysIsHandedOn) {
    start(3);
    put(0, 1, kData);
    pe(0).fence(Flow::kDefault);
    put(0, 1, kFlag);
    wait(1, kFlag);
    put(1, 2, kFlag);
    wait(2, kFlag);
    get(2, 1, kData);
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, AFlagOrdersReadsWithoutAFence) {
    start(2);
    get(0, 1, kData);
    put(0, 1, kFlag);
    wait(1, kFlag);
    put(1, 1, kData);
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, ANonBlockingGetIsOverAtAQuiet) {
    start(2);
    get_nbi(0, 1, kData);
    put(0, 1, kFlag);
    wait(1, kFlag);
    put(1, 1, kData);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_NE(cure().find("shmem_quiet"), std::string::npos) << cure();
}

TEST_F(Races, ASignalSaysThatItsDataIsThere) {
    start(2);
    put_signal(0, 1, kData, 1000, kFlag);
    wait(1, kFlag);
    get(1, 1, kData, 1000);
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, ASignalSaysNothingOfEarlierPuts) {
    start(2);
    put(0, 1, kData + 4096);
    put_signal(0, 1, kData, 100, kFlag);
    wait(1, kFlag);
    get(1, 1, kData + 4096);
    EXPECT_EQ(found_.size(), 1u);
}

TEST_F(Races, AWaitForDataIsNoWaitForItsSignal) {
    start(2);
    put_signal(0, 1, kData, 1000, kFlag);
    wait(1, kData + 992);
    get(1, 1, kData, 8);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_NE(cure().find("shmem_signal_wait_until"), std::string::npos) << cure();
}

TEST_F(Races, WhatAWaitHasSeenIsThere) {
    start(2);
    put(0, 1, kFlag);
    wait(1, kFlag);
    put(1, 1, kFlag);  // resets the flag
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, AllThatCountAreSeen) {
    start(4);
    for (int from = 1; from < 4; ++from) {
        put(from, 0, kData + static_cast<size_t>(from) * 8);
        pe(from).fence(Flow::kDefault);
        add(from, 0, kFlag);
    }
    wait(0, kFlag);
    get(0, 0, kData, 64);
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, AtomicsAreNoneWithEachOther) {
    start(3);
    add(0, 2, kData);
    add(1, 2, kData);
    EXPECT_TRUE(found_.empty());
    get(2, 2, kData);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_NE(cure().find("atomics on both sides"), std::string::npos) << cure();
}

TEST_F(Races, PutsOfOnePeMayArriveInAnyOrder) {
    start(2);
    put(0, 1, kData);
    put(0, 1, kData);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_NE(cure().find("shmem_fence"), std::string::npos) << cure();
    pe(0).fence(Flow::kDefault);
    put(0, 1, kData);
    EXPECT_EQ(found_.size(), 1u);
    get(0, 1, kData);
    EXPECT_EQ(found_.size(), 2u) << "a fence orders no get";
    pe(0).quiet(Flow::kDefault);
    get(0, 1, kData);
    EXPECT_EQ(found_.size(), 2u);
}

TEST_F(Races, NeighboursInAGranuleAreNone) {
    start(4);
    for (int from = 0; from < 4; ++from) put(from, 3, kData + static_cast<size_t>(from) * 2, 2);
    EXPECT_TRUE(found_.empty());
    put(0, 3, kData + 3, 1);
    EXPECT_EQ(found_.size(), 1u);
}

TEST_F(Races, LongTransfersAreCheckedAgainstParts) {
    start(2);
    put(0, 1, 0, 100 * Shadow::kBlockBytes + 24);
    get(1, 1, 50 * Shadow::kBlockBytes + 8, 8);
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_EQ(found_[0].position, 50 * Shadow::kBlockBytes + 8);
    barrier();
    get(1, 1, 77, 1);
    put(0, 1, 0, 1024);
    ASSERT_EQ(found_.size(), 2u);
    EXPECT_EQ(found_[1].position, 77u);
}

TEST_F(Races, AWaitOnAWordOfALongPutSeesThatWordAlone) {
    start(2);
    put(0, 1, 0, Shadow::kBlockBytes);
    wait(1, 64);
    get(1, 1, 64);
    EXPECT_TRUE(found_.empty());
    get(1, 1, 72);
    EXPECT_EQ(found_.size(), 1u);
}

TEST_F(Races, ALockOrders) {
    start(2);
    pe(0).take_lock(kFlag);
    put(0, 1, kData);
    pe(0).release_lock(kFlag);
    pe(1).take_lock(kFlag);
    get(1, 1, kData);
    pe(1).release_lock(kFlag);
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, ABufferOfACollectiveIsUsedAtItsEntry) {
    start(2);
    const CollectiveKey key = {0, 1};
    add(0, 1, kData);
    for (auto& one : pes_) one->enter_collective(key, true);
    pe(1).access_in_collective({.owner = 1, .position = kData, .bytes = 8}, {"reduce", nullptr});
    ASSERT_EQ(found_.size(), 1u);
    for (auto& one : pes_) one->leave_collective(key, true);
    pe(1).access_in_collective({.owner = 1, .position = kFlag, .bytes = 8}, {"reduce", nullptr});
    sync();
    put(0, 1, kFlag);
    EXPECT_EQ(found_.size(), 1u);
}

TEST_F(Races, AStoreThatNobodySeesMayBeAFlag) {
    start(2);
    put(0, 1, kData);
    pe(0).quiet(Flow::kDefault);
    wait(1, kFlag);
    get(1, 1, kData);
    EXPECT_EQ(found_.size(), 1u);
    barrier();
    pe(0).expect_stores();
    put(0, 1, kData);
    pe(0).quiet(Flow::kDefault);
    wait(1, kFlag);
    get(1, 1, kData);
    EXPECT_EQ(found_.size(), 1u);
}

TEST_F(Races, ABufferIsBusyUntilItsQuiet) {
    start(2);
    char buffer[64];
    pe(0).hold(buffer, sizeof buffer, false, Flow::kDefault, {"put_nbi", nullptr});
    pe(0).touch(buffer, 8, false, {"put", nullptr});
    EXPECT_TRUE(found_.empty());
    pe(0).touch(buffer + 60, 8, true, {"get", nullptr});
    ASSERT_EQ(found_.size(), 1u);
    EXPECT_NE(cure().find("before the buffer is used again"), std::string::npos) << cure();
    pe(0).hold(buffer, sizeof buffer, true, Flow::kDefault, {"get_nbi", nullptr});
    pe(0).quiet(Flow::kDefault);
    pe(0).touch(buffer, 8, false, {"put", nullptr});
    EXPECT_EQ(found_.size(), 1u);
}

// More states than a history holds: what is found there instead knows more, so that nothing false is found.
TEST_F(Races, OldStatesAreReplacedByLaterOnes) {
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
    EXPECT_TRUE(found_.empty());
}

// More words than the tables hold: no order is lost.
TEST_F(Races, APartThatIsWrittenAgainHidesNothingOfTheRest) {
    start(2);
    put(0, 1, 0, Shadow::kBlockBytes);
    pe(0).quiet(Flow::kDefault);
    put(0, 1, 0);
    get(1, 1, 256);
    EXPECT_EQ(found_.size(), 1u);
}

TEST_F(Races, TheLastWriteIsKnown) {
    start(8);
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

TEST_F(Races, FullTablesFindNothingFalse) {
    start(2);
    for (size_t i = 0; i < 2 * Contributions::kWords; ++i) {
        const size_t data = 8 * i, flag = kPositions / 2 + 8 * i;
        put(0, 1, data);
        pe(0).fence(Flow::kDefault);
        add(0, 1, flag);
        wait(1, flag);
        get(1, 1, data);
        ASSERT_TRUE(found_.empty()) << i;
    }
}

TEST_F(Races, ManyPlainFlagsInOneGranule) {
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
    EXPECT_TRUE(found_.empty());
}

TEST_F(Races, EachPairIsReportedOnce) {
    start(2);
    Reported reported(pe(0).shared_words());
    const base::CallText a = {"a"}, b = {"b"};
    EXPECT_TRUE(reported.is_new(a, b));
    EXPECT_FALSE(reported.is_new(b, a));
    EXPECT_TRUE(reported.is_new(a, a));
}

TEST_F(Races, AReportHasBothCalls) {
    start(2);
    put(0, 1, kData);
    get(1, 1, kData);
    ASSERT_EQ(found_.size(), 1u);
    const std::string text = describe(found_[0], {"shmem_long_put (called at a+0x1)"},
                                      {"shmem_long_get (called at a+0x2)"}, "8 bytes into the heap");
    EXPECT_NE(text.find("shmem_long_get (called at a+0x2) on PE 1 reads 8 bytes of PE 1's memory, 8 bytes into the "
                        "heap, which shmem_long_put (called at a+0x1) on PE 0 writes; missing: a wait"),
              std::string::npos)
        << text;
}

}  // namespace
}  // namespace heddle::checking::races
