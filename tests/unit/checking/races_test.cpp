// The race detector's rules: several PEs' detectors over one memory, driven step by step. PEs of other nodes reach it by
// messages; the rules are theirs, too.
#include "checking/races/detector.h"
#include "checking/races/detector_server.h"
#include "checking/races/remote_detector.h"
#include "checking/races/report.h"
#include "unit/checking/search_memory.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace heddle::checking::races {
namespace {

constexpr size_t kFlag = 4096, kData = 8192;

enum class Where { kHere, kElsewhere, kBoth };

// Messages that a server carries out at once.
class DirectLink final : public DetectorLink {
  public:
    DirectLink(DetectorServer& server, int pe) : server_(server), pe_(pe) {}
    void send(std::string_view message) override { EXPECT_TRUE(server_.carry_out(pe_, message, &answer_)); }
    size_t receive(char* message, size_t bytes) override {
        EXPECT_LE(answer_.size(), bytes);
        return answer_.copy(message, bytes);
    }

  private:
    DetectorServer& server_;
    const int pe_;
    std::string answer_;
};

class Races : public testing::TestWithParam<Where> {
  protected:
    bool is_here(int pe) const { return GetParam() == Where::kHere || (GetParam() == Where::kBoth && pe % 2 == 0); }
    void start(int n_pes) {
        memory_ = std::make_unique<SearchMemory>(n_pes);
        begin(n_pes);
    }
    // A life of the PEs, from init to finalize.
    void begin(int n_pes) {
        pes_.clear();
        links_.clear();
        server_ = std::make_unique<DetectorServer>(memory_->get(), kPositions, n_pes);
        for (int pe = 0; pe < n_pes; ++pe) {
            links_.push_back(std::make_unique<DirectLink>(*server_, pe));
            if (is_here(pe))
                pes_.push_back(std::make_unique<Detector>(memory_->get(), kPositions, pe, n_pes, &Races::note, this));
            else
                pes_.push_back(std::make_unique<RemoteDetector>(*links_.back(), n_pes, &Races::note, this));
        }
    }
    std::vector<Race>& found() {
        for (auto& one : pes_) one->settle();
        return found_;
    }
    static void note(void* to, const Race& race) { static_cast<Races*>(to)->found_.push_back(race); }

    RaceDetector& pe(int number) { return *pes_[static_cast<size_t>(number)]; }

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
        pe(from).update({to, position, 8, true, true, Completion::kOrdered, Flow::kDefault}, {"add", nullptr}, false);
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
    std::string cure() { return found().empty() ? "" : describe_cure(found().back()); }

    std::unique_ptr<SearchMemory> memory_;
    std::unique_ptr<DetectorServer> server_;
    std::vector<std::unique_ptr<DirectLink>> links_;
    std::vector<std::unique_ptr<RaceDetector>> pes_;
    std::vector<Race> found_;
    uint32_t step_ = 0;
};

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

// More states than a history holds: what is found there instead knows more, so that nothing false is found.
TEST_P(Races, OldStatesAreReplacedByLaterOnes) {
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

// More words than the tables hold: no order is lost.
TEST_P(Races, FullTablesFindNothingFalse) {
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

TEST_P(Races, ManyPlainFlagsInOneGranule) {
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

TEST_P(Races, EachPairIsReportedOnce) {
    start(2);
    const base::CallText a = {"a"}, b = {"b"};
    EXPECT_TRUE(pe(0).is_new(a, b));
    EXPECT_FALSE(pe(1).is_new(b, a));
    EXPECT_TRUE(pe(1).is_new(a, a));
}

TEST_P(Races, AReportHasBothCalls) {
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

TEST_P(Races, ACallsTextIsKnownToAll) {
    start(2);
    put(0, 1, kData);
    get(1, 1, kData);
    ASSERT_EQ(found().size(), 1u);
    for (int who : {0, 1}) {
        EXPECT_STREQ(pe(who).text_of(0, found()[0].earlier.place).data(), "put");
        EXPECT_STREQ(pe(who).text_of(1, found()[0].later.place).data(), "get");
    }
}

TEST_P(Races, MoreAccessesAtOnceThanAMessageHoldsAreAllKept) {
    start(2);
    const size_t many = 3 * kMostAtOnce + 1;
    std::vector<RaceDetector::AtOnce> accesses;
    for (size_t i = 0; i < many; ++i)
        accesses.push_back({{.owner = 1, .position = 16 * i, .bytes = 8}, {"load", nullptr}});
    pe(1).access_at_once(accesses);
    for (size_t i = 0; i < many; ++i) put(0, 1, 16 * i);
    EXPECT_EQ(found().size(), many);
}

TEST_P(Races, MoreRacesThanAnAnswerHoldsAreAllTold) {
    start(2);
    const size_t many = 2 * kMostRaces + 1;
    for (size_t i = 0; i < many; ++i) {
        put(0, 1, 16 * i);
        put(1, 1, 16 * i);
    }
    EXPECT_EQ(found().size(), many);
}

INSTANTIATE_TEST_SUITE_P(Here, Races, testing::Values(Where::kHere));
INSTANTIATE_TEST_SUITE_P(Elsewhere, Races, testing::Values(Where::kElsewhere));
INSTANTIATE_TEST_SUITE_P(Both, Races, testing::Values(Where::kBoth));

}  // namespace
}  // namespace heddle::checking::races
