// BodyQueue by itself: bodies start in the order of posting, so many at a time, and are counted when they are sent.
#include "fabric/endpoint/body_queue.h"

#include <gtest/gtest.h>

namespace heddle::fabric {
namespace {

Body body_at(uint64_t position) {
    return {.position = position, .from = nullptr, .bytes = 1};
}

TEST(BodyQueue, BodiesStartInTheOrderOfPosting) {
    BodyQueue queue;
    EXPECT_EQ(queue.next(), nullptr);
    EXPECT_TRUE(queue.is_sent());
    for (const uint64_t position : {8, 8, 24}) queue.post(body_at(position));
    EXPECT_FALSE(queue.is_sent());
    for (const uint64_t position : {8, 8, 24}) {
        ASSERT_NE(queue.next(), nullptr);
        EXPECT_EQ(queue.next()->position, position);
        EXPECT_EQ(queue.start().position, position);
    }
    EXPECT_EQ(queue.next(), nullptr);
    EXPECT_FALSE(queue.is_sent());
    for (int i = 0; i < 3; ++i) queue.on_sent();
    EXPECT_TRUE(queue.is_sent());
}

TEST(BodyQueue, SoManyArePostedAndNotSent) {
    BodyQueue queue;
    for (uint64_t i = 0; i < 3 * BodyQueue::kMaxBodies; ++i) {
        if (i >= BodyQueue::kMaxBodies) {
            ASSERT_FALSE(queue.has_space());
            EXPECT_EQ(queue.start().position, i - BodyQueue::kMaxBodies);
            queue.on_sent();
        }
        ASSERT_TRUE(queue.has_space());
        queue.post(body_at(i));
    }
}

TEST(BodyQueueDeathTest, NoneIsPostedWithoutSpaceOrOutOfOrderAndNoneIsSentThatWasNotStarted) {
    BodyQueue queue;
    EXPECT_EXIT(queue.start(), testing::ExitedWithCode(1), "next\\(\\) != nullptr");
    EXPECT_EXIT(queue.on_sent(), testing::ExitedWithCode(1), "< started_");
    queue.post(body_at(16));
    EXPECT_EXIT(queue.post(body_at(8)), testing::ExitedWithCode(1), "body.position >=");
    for (uint32_t i = 1; i < BodyQueue::kMaxBodies; ++i) queue.post(body_at(16));
    EXPECT_EXIT(queue.post(body_at(16)), testing::ExitedWithCode(1), "has_space\\(\\)");
}

}  // namespace
}  // namespace heddle::fabric
