// How many channels to the network a PE has of its own accord (docs/decisions/0079). Threads: any.
#pragma once

#include <cstdint>

namespace heddle::fabric {

// A channel takes 80 KB and 6 descriptors over TCP, and more where a network card has queues for it.
constexpr int kMostOwnChannels = 4, kMostChannelsOfNode = 32;

// A channel for each two cores: one computes and sends, the other serves what comes.
int channels_for(uint32_t cores);

// Channels that a PE opens where nobody knows all PEs' cores. most_pes: of any node.
int channels_beside(int most_pes);

// Channels that a PE uses: for its cores, and so that contact with all PEs of the job takes no more than half of the
// descriptors that it may open. Over sockets a contact takes up to two for each channel.
int channels_to_use(uint32_t cores, int n_pes, uint64_t descriptors);

}  // namespace heddle::fabric
