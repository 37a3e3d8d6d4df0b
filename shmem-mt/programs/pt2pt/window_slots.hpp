// How many messages of a size a window has, in the programs of message-rate and bandwidth and in those that stand
// beside them.
#pragma once

#include <algorithm>

#include "programs/common/payload.hpp"

namespace shmem_mt {

// message-rate: 8 KiB of 8-byte messages, 16 KiB of larger ones; a first-level cache holds window and source.
inline long rate_slots(long size_bytes) {
    long slots = 1024;
    while (slots > 4 && slots * size_bytes > (16L << 10)) slots /= 2;
    return slots;
}

// bandwidth: 64 messages, fewer when they would not fit 4 MiB, but at least 4.
inline long bandwidth_slots(long size_bytes, bool cold, int threads) {
    if (cold)
        return std::max(4L, cold_slots(std::max(8L, size_bytes) * threads));
    long slots = 64;
    while (slots > 4 && slots * size_bytes > (4L << 20)) slots /= 2;
    return slots;
}

}  // namespace shmem_mt
