// The symmetric heap's allocator against a simple model, in schedules drawn from printed seeds, and the cases that
// random schedules reach seldom.
#include "memory/allocator.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <random>

namespace heddle::memory {
namespace {

constexpr size_t kUnit = Allocator::kUnit, kNone = Allocator::kNone;
constexpr size_t kMiB = size_t{1} << 20, kTiB = size_t{1} << 40;

size_t units(size_t bytes) {
    return (bytes + kUnit - 1) / kUnit * kUnit;
}

// What the allocator must agree with: the allocated blocks by offset, in whole units.
struct Model {
    size_t heap_bytes;
    std::map<size_t, size_t> blocks;  // offset to bytes

    size_t free_bytes() const {
        size_t used = 0;
        for (const auto& [offset, bytes] : blocks) used += bytes;
        return heap_bytes - used;
    }

    // The longest run of free bytes, and whether [offset, offset + bytes) is free.
    size_t largest_free() const {
        size_t largest = 0, end = 0;
        for (const auto& [offset, bytes] : blocks) {
            largest = std::max(largest, offset - end);
            end = offset + bytes;
        }
        return std::max(largest, heap_bytes - end);
    }

    bool is_free(size_t offset, size_t bytes) const {
        if (offset > heap_bytes || bytes > heap_bytes - offset)
            return false;
        const auto next = blocks.lower_bound(offset);
        if (next != blocks.end() && next->first < offset + bytes)
            return false;
        return next == blocks.begin() || std::prev(next)->first + std::prev(next)->second <= offset;
    }
};

// One schedule: the same calls to two allocators and the model.
class Schedule {
  public:
    Schedule(size_t heap_bytes, uint64_t seed)
        : one_(heap_bytes), two_(heap_bytes), model_{heap_bytes / kUnit * kUnit, {}}, random_(seed) {}

    void step() {
        switch (draw(0, 9)) {
            case 0:
            case 1:
            case 2:
            case 3:
                return allocate();
            case 4:
            case 5:
            case 6:
                return release();
            case 7:
                return resize();
            default:
                return ask();
        }
    }

    void release_all() {
        while (!model_.blocks.empty() && !testing::Test::HasFatalFailure()) release();
        EXPECT_EQ(one_.free_bytes(), model_.heap_bytes);
        EXPECT_EQ(one_.largest_free(), model_.heap_bytes) << "neighbours were not joined";
    }

  private:
    size_t draw(size_t least, size_t most) { return std::uniform_int_distribution<size_t>(least, most)(random_); }

    size_t draw_bytes() {
        const size_t limit = draw(0, 3) ? std::min<size_t>(4096, model_.heap_bytes) : model_.heap_bytes + kUnit;
        return draw(1, std::max<size_t>(limit >> draw(0, 12), 1));
    }

    size_t draw_block() {
        return std::next(model_.blocks.begin(), static_cast<long>(draw(0, model_.blocks.size() - 1)))->first;
    }

    void allocate() {
        const size_t bytes = draw_bytes(), alignment = draw(0, 2) ? kUnit : kUnit << draw(0, 8);
        const size_t largest = model_.largest_free(), offset = one_.allocate(bytes, alignment);
        ASSERT_EQ(two_.allocate(bytes, alignment), offset) << "not deterministic";
        if (offset == kNone) {
            ASSERT_TRUE(alignment > kUnit || units(bytes) > largest)
                << bytes << " refused, a block of " << largest << " free";
            return check_totals();
        }
        ASSERT_EQ(offset % alignment, 0u);
        ASSERT_TRUE(model_.is_free(offset, units(bytes))) << "overlap at " << offset;
        model_.blocks[offset] = units(bytes);
        check_totals();
    }

    void release() {
        if (model_.blocks.empty())
            return;
        const size_t offset = draw_block();
        if (!model_.blocks.count(offset + kUnit)) {
            ASSERT_FALSE(one_.release(offset + kUnit)) << "no block begins there";
        }
        ASSERT_TRUE(one_.release(offset));
        ASSERT_TRUE(two_.release(offset));
        ASSERT_FALSE(one_.release(offset)) << "released twice";
        model_.blocks.erase(offset);
        check_totals();
    }

    void resize() {
        if (model_.blocks.empty())
            return;
        const size_t offset = draw_block(), old_bytes = model_.blocks[offset], bytes = draw_bytes();
        model_.blocks.erase(offset);
        const bool fits = model_.is_free(offset, units(bytes));
        model_.blocks[offset] = fits ? units(bytes) : old_bytes;
        ASSERT_EQ(one_.resize(offset, bytes), fits);
        ASSERT_EQ(two_.resize(offset, bytes), fits);
        check_totals();
    }

    void ask() {
        const size_t offset = draw(0, model_.heap_bytes + kUnit), bytes = draw_bytes();
        const auto next = model_.blocks.upper_bound(offset);
        bool inside = false;
        if (next != model_.blocks.begin()) {
            const auto [begin, length] = *std::prev(next);
            inside = offset <= begin + length && bytes <= begin + length - offset;
        }
        ASSERT_EQ(one_.is_allocated(offset, bytes), inside) << offset << " + " << bytes;
        const auto found = model_.blocks.find(offset);
        ASSERT_EQ(one_.size_of(offset), found == model_.blocks.end() ? 0 : found->second);
    }

    void check_totals() {
        ASSERT_EQ(one_.free_bytes(), model_.free_bytes());
        ASSERT_EQ(one_.largest_free(), model_.largest_free());
        for (const auto& [offset, bytes] : model_.blocks) ASSERT_EQ(one_.size_of(offset), bytes);
    }

    Allocator one_, two_;
    Model model_;
    std::mt19937_64 random_;
};

// HEDDLE_TEST_SEED repeats one schedule; otherwise some fixed seeds and one from the clock.
TEST(Allocator, RandomSchedulesAgreeWithTheModel) {
    const char* fixed = getenv("HEDDLE_TEST_SEED");
    const auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    const std::vector<uint64_t> seeds =
        fixed ? std::vector<uint64_t>{strtoull(fixed, nullptr, 10)} : std::vector<uint64_t>{1, 2, 3, now};
    for (uint64_t seed : seeds) {
        for (size_t heap_bytes : {size_t{0}, size_t{64}, size_t{1000}, size_t{65536}, kMiB, kTiB}) {
            SCOPED_TRACE("HEDDLE_TEST_SEED=" + std::to_string(seed) + ", heap of " + std::to_string(heap_bytes));
            Schedule schedule(heap_bytes, seed);
            for (int i = 0; i < 1500 && !testing::Test::HasFatalFailure(); ++i) schedule.step();
            schedule.release_all();
            if (testing::Test::HasFailure())
                return;
        }
    }
}

TEST(Allocator, EmptyHeapGivesNothing) {
    for (size_t heap_bytes : {size_t{0}, size_t{63}}) {
        Allocator heap(heap_bytes);
        EXPECT_EQ(heap.allocate(1), kNone);
        EXPECT_EQ(heap.free_bytes(), 0u);
        EXPECT_EQ(heap.largest_free(), 0u);
        EXPECT_FALSE(heap.release(0));
        EXPECT_FALSE(heap.resize(0, 1));
        EXPECT_FALSE(heap.is_allocated(0, 1));
    }
}

TEST(Allocator, HeapOfOneUnit) {
    Allocator heap(64);
    EXPECT_EQ(heap.allocate(65), kNone);
    EXPECT_EQ(heap.allocate(64), 0u);
    EXPECT_EQ(heap.allocate(1), kNone);
    EXPECT_EQ(heap.largest_free(), 0u);
    EXPECT_TRUE(heap.release(0));
    EXPECT_EQ(heap.allocate(1), 0u);
}

TEST(Allocator, WholeHeapAtOnceWhateverItsSize) {
    for (size_t bytes : {kMiB, kMiB + 64, 17 * kUnit, 1023 * kUnit, kTiB, kTiB - kUnit, size_t{1} << 56}) {
        Allocator heap(bytes);
        EXPECT_EQ(heap.allocate(bytes + 1), kNone);
        EXPECT_EQ(heap.allocate(bytes), 0u) << bytes;
        EXPECT_EQ(heap.free_bytes(), 0u);
        EXPECT_TRUE(heap.release(0));
        EXPECT_EQ(heap.largest_free(), bytes);
    }
}

TEST(Allocator, WholeHeapAlignedAtOnce) {
    for (size_t alignment : {size_t{4096}, kMiB, 2 * kMiB, size_t{1} << 63}) {
        Allocator heap(kMiB);
        EXPECT_EQ(heap.allocate(kMiB, alignment), 0u) << "0 is a multiple of " << alignment;
    }
}

// Blocks without room to spare for the alignment, in which an aligned place lies all the same.
TEST(Allocator, FindsTheLastAlignedPlace) {
    Allocator heap(4 * kMiB);
    ASSERT_EQ(heap.allocate(64), 0u);
    for (size_t offset : {kMiB, 2 * kMiB, 3 * kMiB}) EXPECT_EQ(heap.allocate(kMiB, kMiB), offset);
    EXPECT_EQ(heap.allocate(64, kMiB), kNone);
    EXPECT_TRUE(heap.release(2 * kMiB));
    EXPECT_EQ(heap.allocate(kMiB, 2 * kMiB), 2 * kMiB);
    EXPECT_EQ(heap.allocate(kMiB - 64), 64u);
    EXPECT_EQ(heap.free_bytes(), 0u);
    EXPECT_TRUE(heap.release(0));
    EXPECT_EQ(heap.allocate(64, size_t{1} << 40), 0u);
}

TEST(Allocator, RefusesSizesThatOverflow) {
    Allocator heap(kMiB);
    for (size_t bytes : {size_t{0}, SIZE_MAX, SIZE_MAX - 62, SIZE_MAX - 63, SIZE_MAX - 64, SIZE_MAX / 2, kMiB + 1})
        EXPECT_EQ(heap.allocate(bytes), kNone) << bytes;
    const size_t offset = heap.allocate(64);
    EXPECT_EQ(heap.allocate(kMiB, size_t{1} << 63), kNone);
    EXPECT_EQ(heap.allocate(64, size_t{1} << 63), kNone);
    EXPECT_FALSE(heap.resize(offset, SIZE_MAX));
    EXPECT_FALSE(heap.resize(offset, 0));
    EXPECT_EQ(heap.free_bytes(), kMiB - 64);
}

TEST(Allocator, ExhaustionAndRecoveryInUnits) {
    constexpr size_t kBlocks = kMiB / kUnit;
    Allocator heap(kMiB);
    std::vector<size_t> offsets;
    for (size_t i = 0; i < kBlocks; ++i) offsets.push_back(heap.allocate(1));
    EXPECT_EQ(heap.allocate(1), kNone);
    EXPECT_EQ(heap.free_bytes(), 0u);
    std::sort(offsets.begin(), offsets.end());
    for (size_t i = 0; i < kBlocks; ++i) ASSERT_EQ(offsets[i], i * kUnit);
    // Fragmentation: every second unit free, so that half the heap is free and no two units fit.
    for (size_t i = 0; i < kBlocks; i += 2) ASSERT_TRUE(heap.release(i * kUnit));
    EXPECT_EQ(heap.free_bytes(), kMiB / 2);
    EXPECT_EQ(heap.largest_free(), kUnit);
    EXPECT_EQ(heap.allocate(kUnit + 1), kNone);
    EXPECT_NE(heap.allocate(kUnit), kNone);
    for (size_t i = 0; i < kBlocks; ++i) heap.release(i * kUnit);
    EXPECT_EQ(heap.largest_free(), kMiB);
    EXPECT_EQ(heap.allocate(kMiB), 0u);
}

TEST(Allocator, JoinsInEveryOrder) {
    int order[] = {0, 1, 2, 3};
    do {
        Allocator heap(4096);
        size_t offsets[4];
        for (size_t& offset : offsets) offset = heap.allocate(1024);
        for (int i : order) ASSERT_TRUE(heap.release(offsets[i]));
        ASSERT_EQ(heap.largest_free(), 4096u);
    } while (std::next_permutation(std::begin(order), std::end(order)));
}

TEST(Allocator, AlignsAndKeepsWhatLiesBefore) {
    Allocator heap(kMiB);
    ASSERT_EQ(heap.allocate(64), 0u);
    const size_t page = heap.allocate(100, 4096);
    EXPECT_EQ(page % 4096, 0u);
    EXPECT_EQ(heap.free_bytes(), kMiB - 64 - 128);
    EXPECT_TRUE(heap.is_allocated(page, 128));
    EXPECT_FALSE(heap.is_allocated(page, 129));
    EXPECT_FALSE(heap.is_allocated(64, 1)) << "the lead stays free";
    for (size_t alignment : {size_t{1}, size_t{8}, size_t{32}}) EXPECT_EQ(heap.allocate(1, alignment) % kUnit, 0u);
}

TEST(Allocator, ResizesInPlace) {
    Allocator heap(4096);
    const size_t first = heap.allocate(1024), second = heap.allocate(1024);
    ASSERT_EQ(second, first + 1024);
    EXPECT_FALSE(heap.resize(first, 1025)) << "the neighbour is in the way";
    EXPECT_TRUE(heap.resize(first, 1000)) << "the same number of units";
    EXPECT_TRUE(heap.resize(first, 64));
    EXPECT_EQ(heap.size_of(first), 64u);
    EXPECT_EQ(heap.free_bytes(), 4096u - 64 - 1024);
    EXPECT_TRUE(heap.resize(first, 1024)) << "back into what it gave";
    EXPECT_TRUE(heap.resize(second, 3072)) << "to the end of the heap";
    EXPECT_EQ(heap.free_bytes(), 0u);
    EXPECT_FALSE(heap.resize(second, 3073));
    EXPECT_FALSE(heap.resize(second + 64, 64)) << "no block begins there";
    EXPECT_TRUE(heap.release(first));
    EXPECT_TRUE(heap.release(second));
    EXPECT_EQ(heap.largest_free(), 4096u);
}

TEST(Allocator, IsAllocatedSeesBlocksNotTheirSum) {
    Allocator heap(4096);
    const size_t first = heap.allocate(128), second = heap.allocate(128);
    ASSERT_EQ(second, 128u);
    EXPECT_TRUE(heap.is_allocated(first, 128));
    EXPECT_TRUE(heap.is_allocated(first + 127, 1));
    EXPECT_TRUE(heap.is_allocated(second + 1, 127));
    EXPECT_FALSE(heap.is_allocated(first, 129)) << "across two blocks";
    EXPECT_FALSE(heap.is_allocated(second, SIZE_MAX));
    EXPECT_FALSE(heap.is_allocated(SIZE_MAX, 1));
    EXPECT_FALSE(heap.is_allocated(256, 1));
    heap.release(first);
    EXPECT_FALSE(heap.is_allocated(first, 1)) << "the index follows a release";
}

}  // namespace
}  // namespace heddle::memory
