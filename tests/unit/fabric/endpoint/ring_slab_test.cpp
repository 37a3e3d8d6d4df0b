// RingSlab: pieces that do not overlap, are used again, and count.
#include "fabric/endpoint/ring_slab.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace heddle::fabric {
namespace {

TEST(RingSlab, SizesAreThoseOfPieces) {
    EXPECT_EQ(RingSlab::size_for(0), kMinRing);
    EXPECT_EQ(RingSlab::size_for(kMinRing), kMinRing);
    EXPECT_EQ(RingSlab::size_for(kMinRing + 1), 4 * kMinRing);
    EXPECT_EQ(RingSlab::size_for(kMaxRing), kMaxRing);
    EXPECT_EQ(RingSlab::size_for(kMaxRing + 1), 0u);
}

struct Piece {
    char* memory;
    size_t size;
    char mark;
};

// Takes and gives pieces of random sizes; each has its own content for as long as it is lent.
void use(RingSlab& slab, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Piece> pieces;
    for (int i = 0; i < 2000; ++i) {
        if (pieces.size() < 20 && random() % 2 == 0) {
            const size_t size = kMinRing << 2 * (random() % 5);
            char* const memory = slab.take(size);
            ASSERT_TRUE(memory);
            pieces.push_back({memory, size, static_cast<char>(random())});
            memset(memory, pieces.back().mark, size);
        } else if (!pieces.empty()) {
            std::swap(pieces[random() % pieces.size()], pieces.back());
            const Piece piece = pieces.back();
            pieces.pop_back();
            for (const size_t at : {size_t{0}, piece.size / 2, piece.size - 1}) ASSERT_EQ(piece.memory[at], piece.mark);
            slab.give(piece.memory, piece.size);
        }
    }
    for (const Piece& piece : pieces) slab.give(piece.memory, piece.size);
}

TEST(RingSlab, PiecesOfThreadsDoNotOverlap) {
    RingSlab slab;
    std::vector<std::thread> threads;
    for (uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back([&, seed] { use(slab, seed); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(slab.lent(), 0u);
}

TEST(RingSlab, WhatWasGivenIsTakenAgain) {
    RingSlab slab;
    char* const first = slab.take(kMinRing);
    EXPECT_EQ(slab.lent(), kMinRing);
    slab.give(first, kMinRing);
    EXPECT_EQ(slab.take(kMinRing), first);
    slab.give(first, kMinRing);
}

TEST(RingSlab, TheSmallestPiecesFillAMapping) {
    RingSlab slab;
    std::vector<char*> pieces;
    for (int i = 0; i < 2048; ++i) pieces.push_back(slab.take(kMinRing));
    std::sort(pieces.begin(), pieces.end());
    EXPECT_EQ(pieces.back() - pieces.front(), 2047 * static_cast<ptrdiff_t>(kMinRing));
    for (char* piece : pieces) slab.give(piece, kMinRing);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(RingSlabDeathTest, WithoutMemoryThereIsNoPiece) {
    const auto without_memory = [] {
        RingSlab slab;
        const rlimit limit = {1, 1};  // of address space
        setrlimit(RLIMIT_AS, &limit);
        _exit(slab.take(kMaxRing) ? 1 : 0);
    };
    EXPECT_EXIT(without_memory(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace heddle::fabric
