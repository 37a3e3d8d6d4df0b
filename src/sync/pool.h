// Pool: objects that any thread takes and gives back without a lock. Objects keep their addresses. Memory grows with
// the most objects that were taken at once, and is freed with the pool.
//
// Free objects are a stack. Its head carries a count of changes, so that a compare-and-swap never takes a head that was
// popped and pushed again for an unchanged one (R. K. Treiber, "Systems Programming: Coping with Parallelism", 1986).
// Invariant: an object is never freed before the pool, so its link may be read at any time (tests/model/pool.pml
// checks every interleaving). Chunk c holds kFirst << c objects.
#pragma once

#include "base/invariant.h"
#include "base/tsan.h"

#include <sched.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace heddle::sync {

// The link of a pooled object. T has a member `PoolLink link`, and a constructor without arguments.
struct PoolLink {
    std::atomic<uint32_t> next{0};  // index + 1 of the next free object
    uint32_t index = 0;
};

template <class T, size_t kFirst>
class Pool {
  public:
    Pool() = default;
    ~Pool() {
        for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
    }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // A free object, as it was given back, or a new one; null when there is no memory.
    T* take() {
        uint64_t head = head_.load(std::memory_order_acquire);  // pairs with Pool::give
        for (;;) {
            const auto index = static_cast<uint32_t>(head);
            if (index == 0) {
                bool is_empty = true;
                T* const made = grow(&is_empty);
                if (made || is_empty)
                    return made;
                head = head_.load(std::memory_order_acquire);  // pairs with Pool::give
                continue;
            }
            T* object = at(index - 1);
            HEDDLE_INVARIANT(object->link.index == index - 1);
            const uint64_t next = (head >> 32) + 1;
            const uint32_t below = object->link.next.load(std::memory_order_relaxed);
            if (head_.compare_exchange_weak(head, next << 32 | below, std::memory_order_acquire,
                                            std::memory_order_acquire))
                return object;
        }
    }

    void give(T* object) {
        HEDDLE_INVARIANT(at(object->link.index) == object);  // it is one of this pool
        give(object, object);
    }

    // The object that begins at the address, taken or free; null when there is none. Any address is allowed.
    T* find(const void* address) {
        for (size_t c = 0; c < kChunks; ++c) {
            T* chunk = chunks_[c].load(std::memory_order_acquire);  // pairs with Pool::grow
            const auto offset = static_cast<size_t>(static_cast<const char*>(address) - reinterpret_cast<char*>(chunk));
            if (chunk && offset < (kFirst << c) * sizeof(T))
                return offset % sizeof(T) == 0 ? chunk + offset / sizeof(T) : nullptr;
        }
        return nullptr;
    }

    // Calls visit for all objects, taken or free.
    template <class Visit>
    void for_each(Visit visit) {
        for (size_t c = 0; c < kChunks; ++c) {
            T* chunk = chunks_[c].load(std::memory_order_acquire);  // pairs with Pool::grow
            for (size_t i = 0; chunk && i < kFirst << c; ++i) visit(chunk[i]);
        }
    }

  private:
    static constexpr size_t kChunks = 16;
    static_assert((kFirst & (kFirst - 1)) == 0);

    T* at(uint32_t index) const {
        // Chunk c begins at kFirst * (2^c - 1).
        const size_t place = index / kFirst + 1;
        const auto c = static_cast<size_t>(63 - __builtin_clzll(place));
        HEDDLE_INVARIANT(c < kChunks);
        return chunks_[c].load(std::memory_order_relaxed) + (index - kFirst * ((size_t{1} << c) - 1));
    }

    // Pushes first ... last, which are linked.
    void give(T* first, T* last) {
        uint64_t head = head_.load(std::memory_order_relaxed);
        do {
            last->link.next.store(static_cast<uint32_t>(head), std::memory_order_relaxed);
            // Release: pairs with Pool::take, which sees what was done to the object before.
        } while (!head_.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | (first->link.index + 1),
                                              std::memory_order_release, std::memory_order_relaxed));
    }

    // Allocates the next chunk, returns one of its objects, and pushes the others. Null when there is no memory, or,
    // with *is_empty false, when another thread has pushed objects or is about to: else each would make a chunk of its
    // own, of twice the size.
    T* grow(bool* is_empty) {
        for (size_t c = 0; c < kChunks; ++c) {
            if (chunks_[c].load(std::memory_order_acquire))
                continue;
            // Acquire: pairs with Pool::push_rest, so that the head is read behind what was pushed.
            const bool is_pushed = pushed_.load(std::memory_order_acquire) == c;
            *is_empty = is_pushed && static_cast<uint32_t>(head_.load(std::memory_order_relaxed)) == 0;
            if (!is_pushed)
                sched_yield();
            if (!*is_empty)
                return nullptr;
            const size_t count = kFirst << c;
            // ThreadSanitizer takes the allocation for a write, and does not see what orders a later take of these
            // objects
            tsan::look_away();
            T* chunk = new (std::nothrow) T[count];
            tsan::look_back();
            if (!chunk)
                return nullptr;
            const auto first = static_cast<uint32_t>(kFirst * ((size_t{1} << c) - 1));
            for (uint32_t i = 0; i < count; ++i) {
                chunk[i].link.index = first + i;
                chunk[i].link.next.store(first + i + 2, std::memory_order_relaxed);
            }
            T* none = nullptr;
            // Pairs with Pool::find and Pool::for_each.
            if (!chunks_[c].compare_exchange_strong(none, chunk, std::memory_order_acq_rel)) {
                delete[] chunk;
                *is_empty = false;  // another thread has allocated the chunk
                return nullptr;
            }
            push_rest(c, chunk, count);
            return chunk;
        }
        return nullptr;
    }

    // Pushes all objects of chunk c but the first.
    void push_rest(size_t c, T* chunk, size_t count) {
        if (count > 1)
            give(chunk + 1, chunk + count - 1);
        pushed_.store(c + 1, std::memory_order_release);  // pairs with Pool::grow
    }

    std::atomic<uint64_t> head_{0};  // changes << 32 | index + 1 of the first free object
    std::atomic<T*> chunks_[kChunks] = {};
    std::atomic<size_t> pushed_{0};  // chunks whose objects have been pushed
};

}  // namespace heddle::sync
