// Accesses of a program between two calls of the library: what is told of by bits alone, and when no more.
#include "checking/races/accesses.h"
#include "operations/observer.h"

#include <gtest/gtest.h>
#include <vector>

namespace heddle::checking::races {
namespace {

class AccessesTest : public testing::Test {
  protected:
    void TearDown() override { accesses.flush(); }
    // An access as the program tells of it: by a bit where that is possible. True then.
    bool access(size_t at, size_t bytes, const void* caller = kHere, bool writes = false) {
        if (heddle_is_recent(&operations::watched_accesses, &recent, address(at), bytes, caller) != 0)
            return true;
        accesses.add(reinterpret_cast<uintptr_t>(address(at)), bytes, writes, caller, &recent);
        return false;
    }
    std::vector<std::pair<size_t, size_t>> flushed() {
        blocks.clear();
        accesses.flush();
        std::vector<std::pair<size_t, size_t>> found;
        for (const Accesses::OfBlock& block : blocks)
            for_each_run(block.bytes, [&](size_t begin, size_t end) {
                found.emplace_back(block.begin + begin - reinterpret_cast<uintptr_t>(memory), end - begin);
            });
        return found;
    }
    const char* address(size_t at) const { return memory + at; }
    static void visit(void* to, const std::vector<Accesses::OfBlock>& visited) {
        auto& all = static_cast<AccessesTest*>(to)->blocks;
        all.insert(all.end(), visited.begin(), visited.end());
    }

    static constexpr const void* kHere = "an instruction";
    static constexpr const void* kElsewhere = "another one";
    alignas(HEDDLE_RECENT_BYTES) char memory[4096 * HEDDLE_RECENT_BYTES] = {};
    std::vector<Accesses::OfBlock> blocks;
    Accesses accesses{&AccessesTest::visit, this};
    heddle_recent recent = {};
};

using Runs = std::vector<std::pair<size_t, size_t>>;

TEST_F(AccessesTest, ALoopOverABlockIsOneRunAndOneCall) {
    EXPECT_FALSE(access(0, 8));
    for (size_t at = 8; at < HEDDLE_RECENT_BYTES; at += 8) EXPECT_TRUE(access(at, 8)) << at;
    EXPECT_FALSE(access(HEDDLE_RECENT_BYTES, 8));
    EXPECT_EQ(flushed(), (Runs{{0, HEDDLE_RECENT_BYTES}, {HEDDLE_RECENT_BYTES, 8}}));
    EXPECT_EQ(flushed(), Runs{});
}

TEST_F(AccessesTest, EachSizeKeepsItsBytes) {
    EXPECT_FALSE(access(1, 1));
    EXPECT_TRUE(access(3, 2));
    EXPECT_TRUE(access(60, 4));
    EXPECT_FALSE(access(124, 8)) << "across a word of bits";
    EXPECT_TRUE(access(48, 16));
    EXPECT_EQ(flushed(), (Runs{{1, 1}, {3, 2}, {48, 16}, {124, 8}}));
}

TEST_F(AccessesTest, AfterAFlushABitIsToldOfAnew) {
    access(0, 8);
    EXPECT_TRUE(access(8, 8));
    EXPECT_EQ(flushed(), (Runs{{0, 16}}));
    EXPECT_FALSE(access(24, 8));
    EXPECT_EQ(flushed(), (Runs{{24, 8}}));
}

TEST_F(AccessesTest, AnotherInstructionTellsForItself) {
    access(0, 8);
    EXPECT_FALSE(access(8, 8, kElsewhere));
    EXPECT_FALSE(access(16, 8, kHere));
    EXPECT_EQ(flushed().size(), 3u);
    EXPECT_EQ(blocks.size(), 2u);
}

TEST_F(AccessesTest, ARangeThatChangesEndsWhatIsRecent) {
    access(0, 8);
    Accesses::watch(Accesses::kOfBuffers, reinterpret_cast<uintptr_t>(memory), 64);
    EXPECT_FALSE(access(8, 8));
    Accesses::watch(Accesses::kOfBuffers, reinterpret_cast<uintptr_t>(memory), 64);
    EXPECT_TRUE(access(16, 8)) << "the same as before";
    Accesses::watch_none();
}

// The parts of the address space are what a program looks at first.
TEST_F(AccessesTest, EachAddressOfARangeIsInAPartThatMayBeWatched) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    const auto may_be = [](uintptr_t at) {
        return heddle_may_be_watched(&operations::watched_accesses, reinterpret_cast<const void*>(at)) != 0;
    };
    const uintptr_t far = begin + (uintptr_t{5} << 30), part = uintptr_t{1} << HEDDLE_LEAST_PART_BITS;
    EXPECT_FALSE(may_be(begin));
    Accesses::watch(Accesses::kOfNode, begin, sizeof memory);
    Accesses::watch(Accesses::kOfBuffers, far, 3 * part);
    for (size_t at = 0; at < sizeof memory; at += 4096) EXPECT_TRUE(may_be(begin + at)) << at;
    for (size_t at = 0; at < 3 * part; at += 4096) EXPECT_TRUE(may_be(far + at)) << at;
    EXPECT_FALSE(may_be(far + 5 * part));
    Accesses::watch(Accesses::kOfBuffers, far + 2 * part, 3 * part);  // they overlap
    EXPECT_FALSE(may_be(far));
    EXPECT_TRUE(may_be(far + 3 * part - 1));
    EXPECT_TRUE(may_be(far + 4 * part));
    Accesses::watch(Accesses::kOfBuffers, 0x1000, begin);  // wider than all parts
    EXPECT_TRUE(may_be(far + 9 * part));
    Accesses::watch(Accesses::kOfBuffers, 0, 0);
    EXPECT_FALSE(may_be(far + 9 * part));
    EXPECT_TRUE(may_be(begin));
    Accesses::watch_none();
    EXPECT_FALSE(may_be(begin));
}

// A node with much memory leaves most parts to the rest.
TEST_F(AccessesTest, PartsAreLargerWhereTheNodeHasMuchMemory) {
    const uintptr_t begin = uintptr_t{1} << 40, bytes = uintptr_t{1} << 36;
    Accesses::watch(Accesses::kOfNode, begin, bytes);
    size_t parts = 0;
    for (const unsigned char part : operations::watched_accesses.parts) parts += part != 0;
    EXPECT_LE(parts, size_t{HEDDLE_PARTS} / 4);
    EXPECT_NE(heddle_may_be_watched(&operations::watched_accesses, reinterpret_cast<void*>(begin + bytes - 1)), 0);
    Accesses::watch_none();
}

// As another thread's flush meets the one that sets a bit.
TEST_F(AccessesTest, ABitThatComesBehindItsEpochIsNoAccess) {
    access(0, 8);
    const heddle_recent late = recent;
    EXPECT_EQ(flushed(), (Runs{{0, 8}}));
    late.bits[0] |= 0xff00;
    access(32, 8);
    EXPECT_EQ(flushed(), (Runs{{32, 8}}));
}

// Two that fall on one place of the table do not drive each other out, which would end what is recent of all threads.
TEST_F(AccessesTest, WhatFitsIntoATableStaysUntilTheFlush) {
    const uint64_t epoch = heddle_epoch(&operations::watched_accesses);
    for (int round = 0; round < 2; ++round)
        for (size_t block = 0; block < 1000; ++block)
            for (const void* const caller : {kHere, kElsewhere})
                access(block * HEDDLE_RECENT_BYTES, 8, caller, caller == kElsewhere);
    EXPECT_EQ(heddle_epoch(&operations::watched_accesses), epoch);
    EXPECT_TRUE(blocks.empty());
    flushed();
    EXPECT_EQ(blocks.size(), 2000u);
}

// More blocks than a table has room for.
TEST_F(AccessesTest, AFullTableIsToldOfOnceAndNoMoreByBits) {
    constexpr size_t kBlocks = sizeof memory / HEDDLE_RECENT_BYTES;
    access(0, 8);
    const heddle_recent first = recent;
    for (size_t block = 1; block < kBlocks; ++block) {
        EXPECT_FALSE(access(block * HEDDLE_RECENT_BYTES, 8));
        EXPECT_TRUE(access(block * HEDDLE_RECENT_BYTES + 8, 8));
    }
    EXPECT_EQ(heddle_is_recent(&operations::watched_accesses, &first, address(8), 8, kHere), 0);
    accesses.flush();
    ASSERT_EQ(blocks.size(), kBlocks);
    for (const Accesses::OfBlock& block : blocks)
        EXPECT_EQ(end_of_run(block.bytes, 0), block.begin == reinterpret_cast<uintptr_t>(memory) ? 8u : 16u);
}

}  // namespace
}  // namespace heddle::checking::races
