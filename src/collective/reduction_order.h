// The order in which a reduction combines the members' values. It depends on the type, the number of members and the
// bytes of a member, and on nothing else: not on where members are, on the algorithm or on time. docs/decisions/0032.
//
// Values are combined in the order of the members' ranks, one after the other; or as a tree over the ranks. In the tree
// a block is 2^k members that begin at a multiple of 2^k. Its value is its left half's combined with its right half's.
// A right half without members leaves the left half's value.
#pragma once

#include "base/invariant.h"
#include "base/settings.h"
#include "collective/node/kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace heddle::collective {

constexpr size_t kMaxTreeBytes = 16 * 1024;  // of one member: what a control message takes

// True when any order gives the same bits: integers, which wrap around.
inline bool has_any_order(Kind kind) {
    return kind <= Kind::kU64;
}

// True when a reduction of `bytes` of each of `size` members is combined as the tree. No such choice for has_any_order.
inline bool is_tree_order(Kind kind, int size, size_t bytes) {
    return !has_any_order(kind) && bytes <= kMaxTreeBytes &&
           static_cast<uint64_t>(size) > base::settings.test_serial_members;
}

// True when a scan of `bytes` of each of `size` members on several nodes sends its sums along the tree of a reduction.
// Only where any order gives the same bits: other values are combined in the order of the ranks.
inline bool is_tree_scan(Kind kind, int size, size_t bytes) {
    return has_any_order(kind) && bytes <= kMaxTreeBytes &&
           static_cast<uint64_t>(size) > base::settings.test_serial_members;
}

// dest = the tree's value of `size` members (1 to 2^23), where part(i) is the value of member i. dest is no part, and
// overlaps none. Cost: size - 1 calls of the kernel for each KiB, and 24 KiB of stack.
template <class Part>
void combine_as_tree(Kernel kernel, char* dest, int size, Part part, size_t nelems, size_t element_bytes) {
    constexpr size_t kPieceBytes = 1024;
    constexpr int kLevels = 24;
    alignas(64) char sums[kLevels][kPieceBytes];
    HEDDLE_INVARIANT(size > 0 && size >> (kLevels - 1) == 0);
    const auto n = static_cast<unsigned>(size);
    const size_t piece = kPieceBytes / element_bytes;
    for (size_t at = 0; at < nelems; at += piece) {
        const size_t count = std::min(piece, nelems - at);
        // By level: the value of the last whole block of 2^level members, where it has no right half's value yet. A
        // combined one is in `sums` of its level.
        const char* values[kLevels];
        for (unsigned i = 0; i < n; ++i) {
            const char* value = part(static_cast<int>(i)) + at * element_bytes;
            const int last = std::countr_one(i);
            for (int level = 0; level < last; ++level) {
                kernel(sums[last], values[level], value, count);
                value = sums[last];
            }
            values[last] = value;
        }
        char* const to = dest + at * element_bytes;
        int level = std::countr_zero(n);
        const char* value = values[level];
        for (++level; n >> level != 0; ++level) {
            if (!(n >> level & 1))
                continue;
            kernel(to, values[level], value, count);
            value = to;
        }
        if (value != to)
            memcpy(to, value, count * element_bytes);
    }
}

}  // namespace heddle::collective
