#include "fabric/endpoint/ring_slab.h"

#include "base/invariant.h"
#include "os/locked.h"
#include "os/memfd.h"

#include <new>
#include <utility>

namespace heddle::fabric {

namespace {

constexpr size_t kChunk = 2 * 1024 * 1024;
static_assert(kChunk % kMaxRing == 0);

// The number of a size, from the smallest on.
size_t index_of(size_t size) {
    return static_cast<size_t>(__builtin_ctzll(size / kMinRing)) / 2;
}

}  // namespace

RingSlab::~RingSlab() {
    while (chunks_) {
        Chunk* const chunk = std::exchange(chunks_, chunks_->next);
        os::unmap(chunk->memory, kChunk);
        delete chunk;
    }
}

size_t RingSlab::size_for(size_t bytes) {
    size_t size = kMinRing;
    while (size < bytes && size < kMaxRing) size *= kFactor;
    return size < bytes ? 0 : size;
}

void RingSlab::add(char* piece, size_t index) {
    free_[index] = new (piece) Link{free_[index]};
}

// A piece of the size with that index; null: there is no memory.
char* RingSlab::cut(size_t index) {
    if (Link* const piece = free_[index]) {
        free_[index] = piece->next;
        return reinterpret_cast<char*>(piece);
    }
    const size_t size = kMinRing << 2 * index;
    char* larger = nullptr;
    size_t pieces = kFactor;
    if (index + 1 < kSizes) {
        larger = cut(index + 1);
    } else {
        auto* const chunk = new (std::nothrow) Chunk{static_cast<char*>(os::reserve_zeroes(kChunk)), chunks_};
        if (chunk && chunk->memory && os::make_writable(chunk->memory, kChunk)) {
            chunks_ = chunk;
            larger = chunk->memory;
        } else {
            if (chunk && chunk->memory)
                os::unmap(chunk->memory, kChunk);
            delete chunk;
        }
        pieces = kChunk / size;
    }
    for (size_t i = pieces; larger && --i != 0;) add(larger + i * size, index);
    return larger;
}

char* RingSlab::take(size_t size) {
    HEDDLE_INVARIANT_MSG(size == size_for(size), "size %zu", size);
    const os::Locked locked(lock_);
    char* const piece = cut(index_of(size));
    if (piece)
        lent_.fetch_add(size, std::memory_order_relaxed);
    return piece;
}

void RingSlab::give(char* piece, size_t size) {
    HEDDLE_INVARIANT_MSG(piece && size == size_for(size) && size <= lent(), "size %zu, lent %zu", size, lent());
    const os::Locked locked(lock_);
    add(piece, index_of(size));
    lent_.fetch_sub(size, std::memory_order_relaxed);
}

}  // namespace heddle::fabric
