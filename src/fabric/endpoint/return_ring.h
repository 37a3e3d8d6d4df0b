// ReturnRing: where the values of a stream's gets and fetching atomics go, and its native puts and gets, in the order
// in which they were posted.
//
//     returned <= published      a return is taken while fewer than kMaxReturns, and kMaxReturnBytes, are outstanding
//        |           '- taken by the producer, before the record that asks for the value is published
//        '- done, as are all before
//
// A return is taken while the ring has a free entry. It has none at first; when it was full it grows, up to
// kMaxReturns entries, as soon as nothing is outstanding.
//
// A return is done when its value is in place. A native put or get (docs/decisions/0013) is a return like any other, so
// that what waits for returns covers it. The target sees no native ones: it numbers its replies without them.
//
// Threads: the producer takes returns; any thread asks how many are done; the sender, under the channel's lock, fills
// them.
#pragma once

#include "base/invariant.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::fabric {

class Stream;

constexpr uint32_t kMinReturns = 64;    // a ring of 1.5 KiB; grows when it was full
constexpr uint32_t kMaxReturns = 4096;  // outstanding
constexpr size_t kMaxReturnBytes = 1024 * 1024;

class ReturnRing {
  public:
    struct Return {
        union {
            char* to;        // where the value of a reply goes
            Stream* stream;  // of a native one
        };
        size_t bytes;  // 0: native
        bool native;   // no reply comes for it
        bool large;    // a message of its own comes for it
        bool coming;   // that message is on its way, or the native transfer
        std::atomic<bool> done;
    };

    ReturnRing() = default;
    ~ReturnRing() { delete[] ring_; }
    ReturnRing(const ReturnRing&) = delete;
    ReturnRing& operator=(const ReturnRing&) = delete;

    // --- The producer: one thread at a time.

    // How many returns were taken: the number of the next one.
    uint64_t head() const { return head_; }
    // Another return may be taken. Acquire: pairs with ReturnRing::advance.
    bool has_space() const {
        return head_ - returned_.load(std::memory_order_acquire) < size_ &&
               (bytes_ - returned_bytes_.load(std::memory_order_acquire) < kMaxReturnBytes || has_returned(head_));
    }
    // As many returns are outstanding as the ring has entries, and it may have more.
    bool should_grow() const {
        return size_ < kMaxReturns && head_ - returned_.load(std::memory_order_relaxed) >= size_;
    }
    // Where should_grow was true, and all returns are done now. The sender looks at entries of outstanding returns
    // alone.
    void grow();
    // Gives the memory of the ring back where nothing is outstanding, as for grow.
    void shrink();
    // Where has_space: the value of the next return, `bytes` of it, goes to `to`.
    void take(char* to, size_t bytes);
    // Where has_space: the next return is that of a native put or get of the stream.
    void take_native(Stream* stream);

    // --- Any thread.

    // The number behind the last return that was published. Acquire: pairs with ReturnRing::publish.
    uint64_t published() const { return published_.load(std::memory_order_acquire); }
    // All returns before that number are done, and their values in place. Acquire: pairs with ReturnRing::advance.
    bool has_returned(uint64_t number) const { return returned_.load(std::memory_order_acquire) >= number; }
    // Where a wait for returns looks.
    const void* line() const { return &returned_; }

    // --- The sender: under the channel's lock.

    // Values for `count` returns, from the reply with the number `first` on; false when nobody asked for them so.
    bool on_reply(uint64_t first, uint32_t count, const char* body, size_t bytes);
    // Where the large reply goes, said once, or null. *number is the reply's, and becomes the return's.
    char* place_of_large(uint64_t* number, size_t bytes);
    // The return with that number is done.
    void finish(uint64_t number);
    // The native return with that number, whose transfer begins; finish is for its end.
    Return& begin_native(uint64_t number);
    void finish(Return& entry);

  private:
    Return& at(uint64_t number) const { return ring_[number & (size_ - 1)]; }
    Return& next();
    void publish(size_t bytes);
    uint64_t number_of(uint64_t reply, uint64_t published) const;
    void advance();

    // The producer's.
    Return* ring_ = nullptr;  // null: no return was ever taken
    uint64_t size_ = 0;       // entries of the ring: a power of two, or none
    uint64_t head_ = 0;
    uint64_t bytes_ = 0;  // of all that were taken
    std::atomic<uint64_t> published_{0};
    std::atomic<bool> has_natives_{false};  // some return was native
    // Written by the sender, read by all.
    alignas(128) std::atomic<uint64_t> returned_{0};
    std::atomic<uint64_t> returned_bytes_{0};
    uint64_t natives_returned_ = 0;  // the sender's: of those before returned_
};

}  // namespace heddle::fabric
