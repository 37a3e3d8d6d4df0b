// BlockBytes: some of the bytes of a block of memory, a bit each. A block is what the shadow keeps as one, and what a
// program tells of as one (heddle_recent). Threads: those of the owner.
#pragma once

#include <heddle/accesses.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace heddle::checking::races {

constexpr size_t kBlockBytes = HEDDLE_RECENT_BYTES;

using BlockBytes = std::array<uint64_t, kBlockBytes / 64>;

constexpr bool is_whole(const BlockBytes& bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](uint64_t word) { return word == ~uint64_t{0}; });
}

constexpr bool is_none(const BlockBytes& bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](uint64_t word) { return word == 0; });
}

// The end of the run that begins at a byte.
inline size_t end_of_run(const BlockBytes& bytes, size_t begin) {
    size_t end = begin;
    while (end < kBlockBytes && (bytes[end / 64] >> (end % 64) & 1) != 0)
        end += static_cast<size_t>(std::countr_one(bytes[end / 64] >> (end % 64)));
    return end;
}

// Calls use(begin, end) for each run of bytes, in order.
template <class Use>
void for_each_run(const BlockBytes& bytes, Use use) {
    for (size_t at = 0; at < kBlockBytes;) {
        const uint64_t rest = bytes[at / 64] >> (at % 64);
        if (rest == 0) {
            at = (at / 64 + 1) * 64;
            continue;
        }
        at += static_cast<size_t>(std::countr_zero(rest));
        const size_t end = end_of_run(bytes, at);
        use(at, end);
        at = end;
    }
}

}  // namespace heddle::checking::races
