// What the collectives move: the buffers that each needs, what a PE gives, and what it must find afterwards.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>

#include "programs/common/validation.hpp"

namespace shmem_mt {

enum class Collective {
    kBarrierAll,
    kSyncAll,
    kTeamSync,
    kTeamBarrier,
    kBroadcast,  // this and what follows move data
    kCollect,
    kFcollect,
    kAlltoall,
    kAlltoalls,
    kSumReduce,
    kMaxReduce,
    kSumInscan,
    kCopy,  // no collective: every PE copies size_bytes from its source to its dest, all at the same time
};

// What a collective of n PEs needs, in blocks of size_bytes. The floor of its time is that each PE must have
// its dest written, that is, copied_bytes = dest_blocks * size_bytes at the bandwidth of `copy`. (The root of a
// broadcast need not copy anything; the others decide.)
struct Shape {
    long source_blocks;
    long dest_blocks;
    long stride;  // elements from one element of a block to the next; alltoalls leaves every second one out
};

inline Shape shape_of(Collective op, long n) {
    switch (op) {
        case Collective::kBarrierAll:
        case Collective::kSyncAll:
        case Collective::kTeamSync:
        case Collective::kTeamBarrier:
            return {0, 0, 1};
        case Collective::kCollect:
        case Collective::kFcollect:
            return {1, n, 1};
        case Collective::kAlltoall:
            return {n, n, 1};
        case Collective::kAlltoalls:
            return {n, n, 2};
        default:
            return {1, 1, 1};
    }
}

inline long buffer_bytes(Collective op, long n, long size_bytes) {
    const Shape shape = shape_of(op, n);
    return std::max(shape.source_blocks, shape.dest_blocks) * shape.stride * size_bytes;
}

// The PEs that take part.
struct Team {
    std::string name;
    int size;
    int me;  // number in the team; -1: no member

    bool member() const { return me >= 0; }
};

// Elements are 8 bytes; nelems make a block.
struct Call {
    Collective op;
    Team team;
    void* source;
    void* dest;
    size_t nelems;
};

constexpr uint64_t kPoison = 0xa5a5a5a5a5a5a5a5u;

inline uint64_t bits_of(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// What element `word` of block `block` of the source of PE `pe` of the team is in one round. Doubles are
// integers below 2^40, so that sums are exact in any order.
inline uint64_t source_word(Collective op, int pe, long token, long block, long word) {
    const uint64_t pattern = pattern_word(make_base(pe, 0, token), block, word);
    if (op != Collective::kSumReduce && op != Collective::kSumInscan)
        return pattern;
    return bits_of(static_cast<double>(pattern >> 24));
}

inline double sum_of(const Call& call, int pes, long token, long word) {
    double sum = 0;
    for (int pe = 0; pe < pes; ++pe) {
        const uint64_t bits = source_word(call.op, pe, token, 0, word);
        double value;
        std::memcpy(&value, &bits, sizeof value);
        sum += value;
    }
    return sum;
}

// What the dest of this PE must have there. `fills_root`: a broadcast also writes the root's dest.
inline uint64_t expected_word(const Call& call, long token, long block, long word, bool fills_root) {
    switch (call.op) {
        case Collective::kBroadcast:
            if (call.team.me == 0 && !fills_root)
                return kPoison;
            return source_word(call.op, 0, token, 0, word);
        case Collective::kCollect:
        case Collective::kFcollect:
            return source_word(call.op, static_cast<int>(block), token, 0, word);
        case Collective::kAlltoall:
        case Collective::kAlltoalls:
            return source_word(call.op, static_cast<int>(block), token, call.team.me, word);
        case Collective::kSumReduce:
            return bits_of(sum_of(call, call.team.size, token, word));
        case Collective::kSumInscan:
            return bits_of(sum_of(call, call.team.me + 1, token, word));
        case Collective::kMaxReduce: {
            long most = std::numeric_limits<long>::min();
            for (int pe = 0; pe < call.team.size; ++pe)
                most = std::max(most, static_cast<long>(source_word(call.op, pe, token, 0, word)));
            return static_cast<uint64_t>(most);
        }
        default:
            return source_word(call.op, call.team.me, token, 0, word);
    }
}

// Of members of the team.
inline void fill_source(const Call& call, long token) {
    const Shape shape = shape_of(call.op, call.team.size);
    const long nelems = static_cast<long>(call.nelems);
    auto* source = static_cast<uint64_t*>(call.source);
    for (long i = 0; i < shape.source_blocks * nelems; ++i)
        source[i * shape.stride] = source_word(call.op, call.team.me, token, i / nelems, i % nelems);
}

// The words of a block that a timed pass looks at: the first, the last, and one between them that the token chooses.
inline std::array<long, 3> marked_words(const Call& call, long token) {
    const long nelems = static_cast<long>(call.nelems);
    const long between = static_cast<long>(pattern_word(token, 0, 0) % static_cast<uint64_t>(std::max(1L, nelems)));
    return {0, between, std::max(0L, nelems - 1)};
}

// Gives those words of the source values that only this token has, and wipes them out in dest. Of members of the team.
inline void mark_ends(const Call& call, long token) {
    const Shape shape = shape_of(call.op, call.team.size);
    const long block_words = static_cast<long>(call.nelems) * shape.stride;
    for (const long word : marked_words(call, token)) {
        for (long block = 0; block < shape.source_blocks; ++block)
            static_cast<uint64_t*>(call.source)[block * block_words + word * shape.stride] =
                source_word(call.op, call.team.me, token, block, word);
        for (long block = 0; block < shape.dest_blocks; ++block)
            static_cast<uint64_t*>(call.dest)[block * block_words + word * shape.stride] = kPoison;
    }
}

// How many words of dest are marked.
inline size_t count_ends(const Call& call) {
    return marked_words(call, 0).size() * static_cast<size_t>(shape_of(call.op, call.team.size).dest_blocks);
}

// Copies the marked words of dest to `seen`: all that a timed pass spends on its check.
inline void read_ends(const Call& call, long token, uint64_t* seen) {
    const Shape shape = shape_of(call.op, call.team.size);
    const long block_words = static_cast<long>(call.nelems) * shape.stride;
    for (const long word : marked_words(call, token)) {
        for (long block = 0; block < shape.dest_blocks; ++block)
            *seen++ = static_cast<const uint64_t*>(call.dest)[block * block_words + word * shape.stride];
    }
}

// Whether the words that read_ends has seen are what the marked words of all sources make.
inline void check_ends(Checker& checker, const Call& call, long token, bool fills_root, const uint64_t* seen) {
    const Shape shape = shape_of(call.op, call.team.size);
    for (const long word : marked_words(call, token)) {
        for (long block = 0; block < shape.dest_blocks; ++block) {
            const uint64_t right = expected_word(call, token, block, word, fills_root);
            checker.compare(seen++, &right, 8);
        }
    }
}

// And the word behind the end.
inline void poison_dest(const Call& call) {
    const Shape shape = shape_of(call.op, call.team.size);
    auto* dest = static_cast<uint64_t*>(call.dest);
    std::fill(dest, dest + shape.dest_blocks * static_cast<long>(call.nelems) * shape.stride + 1, kPoison);
}

// Looks at all of dest, at the elements that a stride leaves out, and at the word behind the end.
inline void check_dest(Checker& checker, const Call& call, long token, bool fills_root) {
    const auto* dest = static_cast<const uint64_t*>(call.dest);
    const Shape shape = shape_of(call.op, call.team.size);
    const long nelems = static_cast<long>(call.nelems);
    const long dest_words = shape.dest_blocks * nelems * shape.stride;
    for (long i = 0; i < dest_words; ++i) {
        const long element = i / shape.stride;
        const uint64_t word = i % shape.stride != 0
                                  ? kPoison
                                  : expected_word(call, token, element / nelems, element % nelems, fills_root);
        checker.compare(dest + i, &word, 8);
    }
    checker.compare(dest + dest_words, &kPoison, 8);
}

}  // namespace shmem_mt
