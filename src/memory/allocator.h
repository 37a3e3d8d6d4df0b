// The symmetric heap's allocator: takes and returns offsets, and never touches the heap itself.
//
// Two-level segregated fit (M. Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", 2004).
// Block descriptors are outside the heap, so that a stray remote store cannot break them. Deterministic: the result
// depends on the sequence of calls alone, so every PE computes the same offsets. Cost: O(1) a call, on average for the
// hash table of offsets. A request that only fits because a block is aligned by chance is searched for in all blocks.
//
// Invariants: blocks tile [0, heap bytes) without overlap. Sizes and offsets are multiples of kUnit. No two neighbours
// are both free. One thread at a time: the program serializes the collectives that call the allocator; checks take the
// lock of memory::Symmetric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace heddle::memory {

class Allocator {
  public:
    static constexpr size_t kUnit = 64;  // a cache line: no two allocations share one
    static constexpr size_t kNone = SIZE_MAX;

    explicit Allocator(size_t heap_bytes);
    ~Allocator();
    Allocator(const Allocator&) = delete;
    Allocator& operator=(const Allocator&) = delete;

    // The offset of `bytes` (at least 1) at a multiple of alignment (a power of two), or kNone.
    size_t allocate(size_t bytes, size_t alignment = kUnit);

    // Frees the block at offset. False when no block begins there.
    bool release(size_t offset);

    // Resizes the block at offset in place. False when it cannot grow there.
    bool resize(size_t offset, size_t bytes);

    // Bytes of the allocated block that begins at offset; 0 when no block does.
    size_t size_of(size_t offset) const;

    // True when [offset, offset + bytes) lies in one allocated block. O(log blocks) after a change of the heap.
    bool is_allocated(size_t offset, size_t bytes);

    size_t free_bytes() const { return free_bytes_; }
    size_t largest_free() const;

  private:
    struct Block {
        size_t offset;
        size_t bytes;
        Block* before;  // by address
        Block* after;
        Block* next_free;  // in the block's list; also links spare descriptors
        Block* previous_free;
        bool free;
    };
    static constexpr int kSecondBits = 4;  // lists per power of two: 16, so a fit wastes at most 1/16
    static constexpr int kFirstLevels = 58;

    struct Place {
        int first;
        int second;
    };
    static Place place_of(size_t bytes);
    static size_t round_for_search(size_t bytes);

    Block* new_block(size_t offset, size_t bytes);
    void spare(Block* block);
    bool tiles(const Block* block) const;
    void insert_free(Block* block);
    void remove_free(Block* block);
    Block* find_free(size_t bytes);
    Block* find_aligned(size_t bytes, size_t alignment);
    void split_tail(Block* block, size_t bytes);
    Block* merge_with_after(Block* block);

    size_t heap_bytes_;
    size_t free_bytes_;
    Block* first_ = nullptr;
    uint64_t first_map_ = 0;
    uint32_t second_map_[kFirstLevels] = {};
    Block* lists_[kFirstLevels][1 << kSecondBits] = {};
    std::unordered_map<size_t, Block*> allocated_;
    std::vector<std::unique_ptr<Block[]>> chunks_;  // owns the descriptors
    Block* spares_ = nullptr;
    std::vector<std::pair<size_t, size_t>> sorted_;  // [begin, end) of the allocated blocks, when sorted_valid_
    bool sorted_valid_ = false;
};

}  // namespace heddle::memory
