// RingQuota: who has rings on loan where memory is short.
#include "fabric/endpoint/ring_quota.h"
#include "unit/fabric/pair.h"

#include <gtest/gtest.h>
#include <string>

namespace heddle::fabric {
namespace {

constexpr size_t kPlenty = 512 * 1024;  // of it a stream set may have 1 KiB in any case

class RingQuotaTest : public testing::Test {
  protected:
    RingSlab& slab() { return pair[0].ring_slab; }
    RingQuota& quota(uint32_t stream_set = 0) { return pair[0].producer(stream_set).quota; }
    // Of the PE's memory for rings nothing more than the shares is left.
    void take_plenty() {
        while (slab().lent() < kPlenty) slab().take(kMaxRing);
    }

    Pair pair{{}, 1024 * 1024, kMessageBytes, 1, Spread::kAnyOrder, false, kPlenty};
    const Waiting waiting{nullptr};
    Stream& stream = pair[0].to_other();
};

TEST_F(RingQuotaTest, AStreamBorrowsWhenItFirstSends) {
    EXPECT_EQ(slab().lent(), 0u);
    put_word(stream, 0, 1);
    EXPECT_EQ(slab().lent(), RingQuota::kEasyRing);
    pair.settle();
    EXPECT_EQ(pair[1].word(0), 1u);
}

TEST_F(RingQuotaTest, WhatIsNotInUseIsTakenBackAndLentAgain) {
    for (uint64_t i = 1; i <= 10; ++i) {
        uint64_t old = ~uint64_t{0};
        pair[0].cable().keeps = true;
        put_word(stream, 0, i);
        fetch_add(stream, &old, 0, 1);
        quota().take_back_all();
        EXPECT_EQ(slab().lent(), RingQuota::kEasyRing) << "the transport has it";
        pair[0].cable().keeps = false;
        pair.settle();
        EXPECT_EQ(old, i);
        quota().take_back_all();
        EXPECT_EQ(slab().lent(), 0u);
        EXPECT_EQ(pair[1].word(0), i + 1);
    }
}

TEST_F(RingQuotaTest, WhereMemoryIsShortAStreamHasTheShareOfItsSet) {
    take_plenty();
    put_word(stream, 0, 1);
    pair.settle();
    EXPECT_EQ(slab().lent(), kPlenty + kMinRing);
    for (uint64_t i = 0; i < 1000; ++i) put_word(stream, 8 * i, i);  // gathers
    pair.settle();
    EXPECT_EQ(slab().lent(), kPlenty + kMinRing) << "it does not grow";
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(pair[1].word(i), i);
}

TEST_F(RingQuotaTest, ALargeRecordGetsARingInAnyCase) {
    take_plenty();
    const std::string data(kLargeBytes - 1, 'd');
    put_word(stream, 0, 1);
    put(stream, 8, data.data(), data.size());
    pair.settle();
    EXPECT_EQ(slab().lent(), kPlenty + RingSlab::size_for(kLargeBytes + record::kWord));
    EXPECT_EQ(std::string(pair[1].heap() + 8, data.size()), data);
}

TEST_F(RingQuotaTest, AStreamBorrowsAgainWhatItHadLast) {
    const std::string data(kLargeBytes - 1, 'd');
    put(stream, 0, data.data(), data.size());
    const size_t had = slab().lent();
    EXPECT_GT(had, RingQuota::kEasyRing);
    pair.settle();
    quota().take_back_all();
    put_word(stream, 0, 1);
    EXPECT_EQ(slab().lent(), had);
    pair.settle();
}

}  // namespace
}  // namespace heddle::fabric
