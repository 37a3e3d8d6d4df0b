// RingSlab: the memory of a PE's send rings, cut from few mappings in pieces of 1, 4, 16, 64 and 256 KiB. Pieces are
// lent to streams and taken back. A piece that is missing is cut from the next larger one; a piece of the largest size,
// from a mapping of 2 MiB. Pieces are not joined again, and mappings stay until the slab goes.
//
// Threads: any take and give, under the slab's lock: once for each loan, not for each operation.
#pragma once

#include <pthread.h>
#include <atomic>
#include <cstddef>

namespace heddle::fabric {

constexpr size_t kMinRing = 1024;  // bytes
constexpr size_t kMaxRing = 256 * 1024;

class RingSlab {
  public:
    // A ring of the full size for each of 64 busy streams.
    static constexpr size_t kPlenty = 16 * 1024 * 1024;

    // plenty: the bytes on loan up to which streams have what rings they like (RingQuota).
    explicit RingSlab(size_t plenty = kPlenty) : plenty_(plenty) {}
    ~RingSlab();
    RingSlab(const RingSlab&) = delete;
    RingSlab& operator=(const RingSlab&) = delete;

    // The size of the smallest piece that has so many bytes; 0: no piece has.
    static size_t size_for(size_t bytes);
    // A piece of that size, one of size_for; null: there is no memory.
    char* take(size_t size);
    // Takes back a piece of that size, which nobody reads or writes any more.
    void give(char* piece, size_t size);
    size_t plenty() const { return plenty_; }
    // The bytes on loan. Relaxed: what they are compared with need not be exact.
    size_t lent() const { return lent_.load(std::memory_order_relaxed); }

  private:
    static constexpr size_t kFactor = 4, kSizes = 5;
    static_assert(kMinRing << 2 * (kSizes - 1) == kMaxRing);
    // A piece that is not on loan, in the list of its size.
    struct Link {
        Link* next;
    };
    // A mapping; its list is not in the memory itself, which is cut up.
    struct Chunk {
        char* memory;
        Chunk* next;
    };
    char* cut(size_t index);
    void add(char* piece, size_t index);

    const size_t plenty_;
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;  // of all but lent_
    Link* free_[kSizes] = {};                           // by size
    Chunk* chunks_ = nullptr;
    std::atomic<size_t> lent_{0};
};

}  // namespace heddle::fabric
