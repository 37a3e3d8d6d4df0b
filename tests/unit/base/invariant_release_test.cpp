// Invariants as a release build has them: compiled, never evaluated.
#undef HEDDLE_INVARIANTS
#include "base/invariant.h"

#include <gtest/gtest.h>

namespace heddle::base {
namespace {

TEST(Invariant, IsNotEvaluatedInARelease) {
    int evaluated = 0;
    HEDDLE_INVARIANT(++evaluated == 7);
    HEDDLE_INVARIANT_MSG(++evaluated == 7, "evaluated %d", ++evaluated);
    EXPECT_EQ(evaluated, 0);
}

}  // namespace
}  // namespace heddle::base
