#include "fabric/channel_count.h"

#include <algorithm>

namespace heddle::fabric {

int channels_for(uint32_t cores) {
    return static_cast<int>(std::clamp<uint32_t>(cores / 2, 1, kMostOwnChannels));
}

int channels_beside(int most_pes) {
    return std::clamp(kMostChannelsOfNode / std::max(1, most_pes), 1, kMostOwnChannels);
}

int channels_to_use(uint32_t cores, int n_pes, uint64_t descriptors) {
    constexpr uint64_t kDescriptorsOfContact = 2;
    const uint64_t fitting = descriptors / 2 / (kDescriptorsOfContact * static_cast<uint64_t>(std::max(1, n_pes)));
    return static_cast<int>(std::clamp<uint64_t>(fitting, 1, static_cast<uint64_t>(channels_for(cores))));
}

}  // namespace heddle::fabric
