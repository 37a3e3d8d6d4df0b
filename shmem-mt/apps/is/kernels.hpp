// The loops over keys of integer sort.
#pragma once

#include <cstdint>

#include "apps/common/range.hpp"

namespace shmem_mt {

// Adds the sizes of the keys' buckets to `sizes`.
[[gnu::noinline]] inline void count_buckets(const int32_t* keys, long count, int shift, uint32_t* sizes) {
    for (long i = 0; i < count; ++i) ++sizes[keys[i] >> shift];
}

// Puts each key where its bucket ends so far. In the order of buckets keys are counted from the nearest cache.
[[gnu::noinline]] inline void pack_keys(const int32_t* keys, long count, int shift, uint32_t* ends, int32_t* packed) {
    for (long i = 0; i < count; ++i) packed[ends[keys[i] >> shift]++] = keys[i];
}

// Likewise, but a table says which stream the keys of a bucket belong to, and `ends` counts streams.
[[gnu::noinline]] inline void pack_streams(const int32_t* keys, long count, int shift, const uint16_t* streams,
                                           uint32_t* ends, int32_t* packed) {
    for (long i = 0; i < count; ++i) packed[ends[streams[keys[i] >> shift]]++] = keys[i];
}

// Adds how often each key occurs to `counts`.
[[gnu::noinline]] inline void count_keys(const int32_t* keys, long count, uint32_t* counts) {
    for (long i = 0; i < count; ++i) ++counts[keys[i]];
}

// Makes ranks of counts: how many keys lie below each of `keys`, when so many lie below all.
[[gnu::noinline]] inline void rank_keys(const Range& keys, long below, uint32_t* counts) {
    uint32_t rank = static_cast<uint32_t>(below);
    for (long key = keys.begin; key < keys.end; ++key) {
        const uint32_t count = counts[key];
        counts[key] = rank;
        rank += count;
    }
}

}  // namespace shmem_mt
