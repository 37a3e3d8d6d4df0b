// NativeFence by itself: what it holds, until when, and that one is held at a time.
#include "fabric/endpoint/native_fence.h"

#include <gtest/gtest.h>

namespace heddle::fabric {
namespace {

class NativeFenceTest : public testing::Test {
  protected:
    NativeFenceTest() { returns.grow(); }
    // Posts a native put; finish is its end.
    ReturnRing::Return& put() {
        returns.take_native(nullptr);
        fence.on_put(returns.head());
        return returns.begin_native(returns.head() - 1);
    }

    ReturnRing returns;
    NativeFence fence{returns};
};

TEST_F(NativeFenceTest, WithoutNativePutsItIsClear) {
    EXPECT_TRUE(fence.is_clear());
    EXPECT_FALSE(fence.is_holding());
    EXPECT_TRUE(fence.lets_pass(1));
}

TEST_F(NativeFenceTest, ItHoldsWhatFollowsUntilThePutsBeforeItHaveReturned) {
    ReturnRing::Return& first = put();
    ReturnRing::Return& second = put();
    EXPECT_FALSE(fence.is_clear());
    EXPECT_FALSE(fence.is_holding()) << "nothing was fenced";
    fence.hold(64);
    EXPECT_TRUE(fence.is_held());
    EXPECT_TRUE(fence.is_holding());
    EXPECT_EQ(fence.limit(32), 32u);
    EXPECT_EQ(fence.limit(96), 64u);
    EXPECT_TRUE(fence.lets_pass(2));
    EXPECT_FALSE(fence.lets_pass(3));
    returns.finish(first);
    EXPECT_TRUE(fence.is_holding());
    returns.finish(second);
    EXPECT_FALSE(fence.is_holding());
    EXPECT_TRUE(fence.is_clear());
    EXPECT_TRUE(fence.lets_pass(3));
}

TEST_F(NativeFenceTest, ASecondFenceWaitsForTheFirst) {
    ReturnRing::Return& first = put();
    fence.hold(8);
    ReturnRing::Return& second = put();
    EXPECT_FALSE(fence.is_held()) << "not for the second put";
    EXPECT_EQ(fence.held_until(), 1u);
    returns.finish(first);
    fence.hold(16);
    EXPECT_TRUE(fence.is_held());
    EXPECT_EQ(fence.limit(100), 16u);
    returns.finish(second);
    EXPECT_FALSE(fence.is_holding());
}

using NativeFenceDeathTest = NativeFenceTest;

TEST_F(NativeFenceDeathTest, OneFenceIsHeldAtATime) {
    put();
    fence.hold(8);
    put();
    EXPECT_EXIT(fence.hold(16), testing::ExitedWithCode(1), "has_returned\\(held_until\\(\\)\\)");
}

TEST_F(NativeFenceDeathTest, FencesFollowEachOther) {
    returns.finish(put());
    fence.hold(16);
    returns.finish(put());
    EXPECT_EXIT(fence.hold(8), testing::ExitedWithCode(1), "position >= hold_at_");
}

}  // namespace
}  // namespace heddle::fabric
