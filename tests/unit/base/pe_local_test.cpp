// A part of a PE is used once it is there: earlier is a mistake in the order of assembly, and found.
#include "base/pe_local.h"

#include <gtest/gtest.h>

namespace heddle::base {
namespace {

struct Engine {
    int turns = 7;
};

TEST(PePointer, IsNullUntilThePartIsThere) {
    PePointer<Engine> part;
    EXPECT_FALSE(part);
    Engine engine;
    part = &engine;
    EXPECT_EQ(part->turns + (*part).turns, 14);
    EXPECT_TRUE(part == &engine);
    part = nullptr;
    part.publish(&engine);
    EXPECT_TRUE(part);
}

TEST(PePointerDeathTest, AnEarlyUseIsFound) {
    PePointer<Engine> part;
    EXPECT_DEATH((void)part->turns, "part_ != nullptr");
    EXPECT_DEATH((void)(*part).turns, "part_ != nullptr");
}

}  // namespace
}  // namespace heddle::base
