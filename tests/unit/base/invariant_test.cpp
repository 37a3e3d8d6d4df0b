// Invariants: this library has them on, a failed one says what and where, and a release build evaluates none.
#include "base/invariant.h"

#include <gtest/gtest.h>

namespace heddle::base {
namespace {

#ifndef HEDDLE_INVARIANTS
#error "the library that unit tests link checks its invariants"
#endif

TEST(Invariant, IsEvaluatedOnceAndSaysNothingWhileItHolds) {
    int evaluated = 0;
    HEDDLE_INVARIANT(++evaluated == 1);
    HEDDLE_INVARIANT_MSG(++evaluated == 2, "evaluated %d", evaluated);
    EXPECT_EQ(evaluated, 2);
}

TEST(InvariantDeathTest, EndsThePeWithPlaceAndCondition) {
    const int acked = 5, sent = 4;
    EXPECT_EXIT(HEDDLE_INVARIANT(acked <= sent), testing::ExitedWithCode(1),
                "heddle TestBody: .*invariant_test.cpp:[0-9]+: an invariant of Heddle does not hold: acked <= sent");
}

TEST(InvariantDeathTest, NamesTheValuesThatItIsGiven) {
    const int acked = 5, sent = 4;
    EXPECT_EXIT(HEDDLE_INVARIANT_MSG(acked <= sent, "acked %d, sent %d", acked, sent), testing::ExitedWithCode(1),
                "does not hold: acked <= sent: acked 5, sent 4");
}

}  // namespace
}  // namespace heddle::base
