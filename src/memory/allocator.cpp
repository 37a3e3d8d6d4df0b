#include "memory/allocator.h"

#include "base/invariant.h"

#include <algorithm>
#include <bit>

namespace heddle::memory {

namespace {

constexpr size_t kChunk = 256;  // descriptors allocated at a time

// Bytes rounded up to whole units, or 0 when that overflows.
size_t whole_units(size_t bytes) {
    return bytes > SIZE_MAX - Allocator::kUnit ? 0
                                               : (bytes + Allocator::kUnit - 1) / Allocator::kUnit * Allocator::kUnit;
}

}  // namespace

Allocator::Allocator(size_t heap_bytes) : heap_bytes_(heap_bytes / kUnit * kUnit), free_bytes_(heap_bytes_) {
    if (heap_bytes_ == 0)
        return;
    first_ = new_block(0, heap_bytes_);
    insert_free(first_);
}

Allocator::~Allocator() = default;

// The list for blocks of `bytes`: by the highest bit of the number of units, then by the four bits below it.
Allocator::Place Allocator::place_of(size_t bytes) {
    const size_t units = bytes / kUnit;
    const int top = std::bit_width(units) - 1;
    if (top < kSecondBits)
        return {0, static_cast<int>(units)};
    return {top - kSecondBits + 1, static_cast<int>(units >> (top - kSecondBits)) & ((1 << kSecondBits) - 1)};
}

// Rounds up to where the next list begins, so that every block of the list found is large enough.
size_t Allocator::round_for_search(size_t bytes) {
    const size_t units = bytes / kUnit;
    const int top = std::bit_width(units) - 1;
    if (top < kSecondBits)
        return bytes;
    const size_t step = size_t{1} << (top - kSecondBits);
    return (units + step - 1) / step * step * kUnit;
}

Allocator::Block* Allocator::new_block(size_t offset, size_t bytes) {
    if (!spares_) {
        chunks_.push_back(std::make_unique<Block[]>(kChunk));
        for (size_t i = 0; i < kChunk; ++i) spare(&chunks_.back()[i]);
    }
    HEDDLE_INVARIANT(offset % kUnit == 0 && bytes % kUnit == 0 && bytes > 0);
    HEDDLE_INVARIANT(offset < heap_bytes_ && bytes <= heap_bytes_ - offset);
    Block* block = spares_;
    spares_ = block->next_free;
    *block = {offset, bytes, nullptr, nullptr, nullptr, nullptr, false};
    return block;
}

void Allocator::spare(Block* block) {
    block->next_free = spares_;
    spares_ = block;
}

// Whether the next block, or the end of the heap, begins where the block ends, and its neighbours know it.
bool Allocator::tiles(const Block* block) const {
    const size_t end = block->offset + block->bytes;
    return (block->after ? block->after->offset == end && block->after->before == block : end == heap_bytes_) &&
           (block->before ? block->before->after == block : block == first_);
}

void Allocator::insert_free(Block* block) {
    HEDDLE_INVARIANT(!block->free && tiles(block));
    const auto [first, second] = place_of(block->bytes);
    Block*& head = lists_[first][second];
    HEDDLE_INVARIANT(first < kFirstLevels && (!head || (head->free && !head->previous_free)));
    HEDDLE_INVARIANT((head != nullptr) == ((second_map_[first] >> second & 1) != 0));  // the maps say what is empty
    block->free = true;
    block->previous_free = nullptr;
    block->next_free = head;
    if (head)
        head->previous_free = block;
    head = block;
    first_map_ |= uint64_t{1} << first;
    second_map_[first] |= 1u << second;
}

void Allocator::remove_free(Block* block) {
    const auto [first, second] = place_of(block->bytes);
    HEDDLE_INVARIANT(block->free && (first_map_ >> first & 1) && (second_map_[first] >> second & 1));
    HEDDLE_INVARIANT((block->previous_free ? block->previous_free->next_free : lists_[first][second]) == block);
    HEDDLE_INVARIANT(!block->next_free || block->next_free->previous_free == block);
    if (block->previous_free)
        block->previous_free->next_free = block->next_free;
    else
        lists_[first][second] = block->next_free;
    if (block->next_free)
        block->next_free->previous_free = block->previous_free;
    block->free = false;
    if (!lists_[first][second]) {
        second_map_[first] &= ~(1u << second);
        if (second_map_[first] == 0)
            first_map_ &= ~(uint64_t{1} << first);
    }
}

Allocator::Block* Allocator::find_free(size_t bytes) {
    const auto [first, second] = place_of(round_for_search(bytes));
    if (first >= kFirstLevels)
        return nullptr;
    if (const uint32_t here = second_map_[first] & (~0u << second))
        return lists_[first][std::countr_zero(here)];
    const uint64_t above = first + 1 < 64 ? first_map_ & (~uint64_t{0} << (first + 1)) : 0;
    if (above) {
        const int level = std::countr_zero(above);
        return lists_[level][std::countr_zero(second_map_[level])];
    }
    // A block of the list that `bytes` itself belongs to may be large enough: the last resort, and the only search.
    // Without it a heap could refuse a request of exactly its free size.
    const auto [own_first, own_second] = place_of(bytes);
    for (Block* block = lists_[own_first][own_second]; block; block = block->next_free) {
        if (block->bytes >= bytes)
            return block;
    }
    return nullptr;
}

// A free block in which `bytes` fit at a multiple of alignment; the part before that is split off and stays free.
Allocator::Block* Allocator::find_aligned(size_t bytes, size_t alignment) {
    HEDDLE_INVARIANT(std::has_single_bit(alignment));
    if (alignment <= kUnit)
        return find_free(bytes);
    // First a block that is aligned by chance, then one with room for any alignment, then the first in which an aligned
    // place lies.
    const auto lead_of = [alignment](const Block* block) {
        return (alignment - block->offset % alignment) % alignment;
    };
    Block* block = find_free(bytes);
    if (block && block->offset % alignment == 0)
        return block;
    block = find_free(bytes + alignment - kUnit);
    if (!block) {
        for (block = first_; block; block = block->after)
            if (block->free && block->bytes >= bytes && lead_of(block) <= block->bytes - bytes)
                break;
    }
    if (!block)
        return nullptr;
    if (const size_t lead = lead_of(block); lead > 0) {
        remove_free(block);
        split_tail(block, lead);
        Block* aligned = block->after;
        HEDDLE_INVARIANT(aligned->free && aligned->offset % alignment == 0 && aligned->bytes >= bytes);
        insert_free(block);
        return aligned;
    }
    return block;
}

// Cuts block, which is in no list, down to `bytes`; the rest becomes a free block, merged with a free block after it.
void Allocator::split_tail(Block* block, size_t bytes) {
    HEDDLE_INVARIANT(!block->free && bytes > 0 && bytes <= block->bytes && tiles(block));
    if (block->bytes == bytes)
        return;
    Block* tail = new_block(block->offset + bytes, block->bytes - bytes);
    tail->before = block;
    tail->after = block->after;
    if (tail->after)
        tail->after->before = tail;
    block->after = tail;
    block->bytes = bytes;
    if (tail->after && tail->after->free) {
        remove_free(tail->after);
        merge_with_after(tail);
    }
    insert_free(tail);
}

// Merges block with the block after it; neither may be in a list.
Allocator::Block* Allocator::merge_with_after(Block* block) {
    Block* after = block->after;
    HEDDLE_INVARIANT(!block->free && !after->free && after->before == block);
    HEDDLE_INVARIANT(block->offset + block->bytes == after->offset);
    block->bytes += after->bytes;
    block->after = after->after;
    if (block->after)
        block->after->before = block;
    spare(after);
    return block;
}

size_t Allocator::allocate(size_t bytes, size_t alignment) {
    bytes = whole_units(bytes);
    if (bytes == 0 || bytes > heap_bytes_)
        return kNone;
    Block* block = find_aligned(bytes, alignment);
    if (!block)
        return kNone;
    remove_free(block);
    split_tail(block, bytes);
    HEDDLE_INVARIANT(block->bytes == bytes && block->offset % alignment == 0 && tiles(block));
    HEDDLE_INVARIANT(free_bytes_ >= block->bytes);
    free_bytes_ -= block->bytes;
    [[maybe_unused]] const bool is_new = allocated_.emplace(block->offset, block).second;
    HEDDLE_INVARIANT(is_new);  // no two allocations begin at one place
    sorted_valid_ = false;
    return block->offset;
}

bool Allocator::release(size_t offset) {
    const auto found = allocated_.find(offset);
    if (found == allocated_.end())
        return false;
    Block* block = found->second;
    allocated_.erase(found);
    sorted_valid_ = false;
    HEDDLE_INVARIANT(!block->free && block->offset == offset);
    free_bytes_ += block->bytes;
    HEDDLE_INVARIANT(free_bytes_ <= heap_bytes_);
    if (block->after && block->after->free) {
        remove_free(block->after);
        merge_with_after(block);
    }
    if (block->before && block->before->free) {
        block = block->before;
        remove_free(block);
        merge_with_after(block);
    }
    insert_free(block);
    HEDDLE_INVARIANT(!(block->before && block->before->free) && !(block->after && block->after->free));
    return true;
}

bool Allocator::resize(size_t offset, size_t bytes) {
    const auto found = allocated_.find(offset);
    bytes = whole_units(bytes);
    if (found == allocated_.end() || bytes == 0)
        return false;
    Block* block = found->second;
    const size_t old_bytes = block->bytes;
    if (bytes > old_bytes) {
        if (!block->after || !block->after->free || bytes - old_bytes > block->after->bytes)
            return false;
        remove_free(block->after);
        merge_with_after(block);
    }
    split_tail(block, bytes);
    HEDDLE_INVARIANT(block->bytes == bytes);
    free_bytes_ = free_bytes_ + old_bytes - block->bytes;
    HEDDLE_INVARIANT(free_bytes_ <= heap_bytes_);
    sorted_valid_ = false;
    return true;
}

size_t Allocator::size_of(size_t offset) const {
    const auto found = allocated_.find(offset);
    return found == allocated_.end() ? 0 : found->second->bytes;
}

bool Allocator::is_allocated(size_t offset, size_t bytes) {
    if (!sorted_valid_) {
        sorted_.clear();
        for (const auto& [begin, block] : allocated_) sorted_.emplace_back(begin, begin + block->bytes);
        std::sort(sorted_.begin(), sorted_.end());
        sorted_valid_ = true;
    }
    auto next = std::upper_bound(sorted_.begin(), sorted_.end(), std::pair{offset, SIZE_MAX});
    if (next == sorted_.begin())
        return false;
    const auto [begin, end] = *--next;
    return offset >= begin && offset <= end && bytes <= end - offset;
}

size_t Allocator::largest_free() const {
    if (first_map_ == 0)
        return 0;
    const int first = std::bit_width(first_map_) - 1;
    const int second = std::bit_width(second_map_[first]) - 1;
    size_t largest = 0;
    for (const Block* block = lists_[first][second]; block; block = block->next_free)
        largest = std::max(largest, block->bytes);
    return largest;
}

}  // namespace heddle::memory
