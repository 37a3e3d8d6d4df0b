// How many channels a PE opens and uses by itself.
#include "fabric/channel_count.h"

#include <gtest/gtest.h>

namespace heddle::fabric {
namespace {

TEST(ChannelCount, OneForEachTwoCores) {
    for (const auto& [cores, channels] :
         {std::pair{0u, 1}, {1u, 1}, {2u, 1}, {3u, 1}, {4u, 2}, {7u, 3}, {8u, 4}, {256u, 4}})
        EXPECT_EQ(channels_for(cores), channels) << cores << " cores";
}

TEST(ChannelCount, AtMost32OnANodeWhereCoresAreUnknown) {
    for (const auto& [pes, channels] : {std::pair{0, 4}, {1, 4}, {8, 4}, {9, 3}, {16, 2}, {17, 1}, {256, 1}})
        EXPECT_EQ(channels_beside(pes), channels) << pes << " PEs";
}

TEST(ChannelCount, ContactWithAllTakesHalfOfTheDescriptorsAtMost) {
    for (const auto& [n_pes, channels] : {std::pair{2, 4}, {64, 4}, {65, 3}, {128, 2}, {129, 1}, {100000, 1}}) {
        EXPECT_EQ(channels_to_use(64, n_pes, 1024), channels) << n_pes << " PEs";
        EXPECT_TRUE(channels == 1 || 2 * n_pes * channels <= 512);
    }
    EXPECT_EQ(channels_to_use(64, 4096, 65536), 4);
    EXPECT_EQ(channels_to_use(2, 2, 1024), 1);
    EXPECT_EQ(channels_to_use(64, 2, UINT64_MAX), 4) << "no limit";
    EXPECT_EQ(channels_to_use(0, 0, 0), 1);
}

}  // namespace
}  // namespace heddle::fabric
