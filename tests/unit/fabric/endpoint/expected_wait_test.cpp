// ExpectedWait: a wait is expected where one began soon behind the record before.
#include "fabric/endpoint/expected_wait.h"

#include <gtest/gtest.h>

namespace heddle::fabric {
namespace {

constexpr uint64_t kNow = 1000000;

TEST(ExpectedWait, AWaitThatComesSoonIsExpectedAgain) {
    ExpectedWait wait;
    EXPECT_FALSE(wait.is_expected() || wait.has_posted());
    wait.posted(kNow, false);
    EXPECT_TRUE(wait.has_posted());
    EXPECT_FALSE(wait.is_expected());
    EXPECT_FALSE(wait.begin(kNow + ExpectedWait::kSoonNs - 1));
    EXPECT_TRUE(wait.is_expected());
    EXPECT_FALSE(wait.has_posted());
}

TEST(ExpectedWait, OneThatComesLateOrNotAtAllIsNot) {
    ExpectedWait wait;
    wait.posted(kNow, false);
    wait.begin(kNow + ExpectedWait::kSoonNs);
    EXPECT_FALSE(wait.is_expected());
    wait.posted(kNow, false);
    wait.begin(kNow);
    wait.posted(kNow, false);
    EXPECT_FALSE(wait.is_expected());
}

TEST(ExpectedWait, TheProducerIsToldWhatItHasLeft) {
    ExpectedWait wait;
    wait.posted(kNow, true);
    EXPECT_TRUE(wait.begin(kNow));
    wait.posted(kNow, true);
    wait.posted(kNow, false);  // takes the one before along
    EXPECT_FALSE(wait.begin(kNow));
}

}  // namespace
}  // namespace heddle::fabric
