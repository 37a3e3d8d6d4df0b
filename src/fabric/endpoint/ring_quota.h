// RingQuota: the send rings that the streams of one stream set have on loan, and how many bytes these may have.
//
// A stream has no ring before it first sends. Its first one has 16 KiB; 1 KiB once a quarter of RingSlab::plenty is on
// loan. Rings are lent, and grow, without question while the PE's have less than plenty, or those of the set less than
// 1/512 of it. Beyond, rings are taken back first, from streams of the set whose records the transport has let go of.
// Where there are none, a stream gets a ring for its next record, and no larger one. So no stream waits for memory that
// another one has.
//
// Threads: the producer's, which alone says that a ring of its streams is not in use. Where a thread ends, and where a
// stream set goes back to its network, the rings go back to the slab.
#pragma once

#include "fabric/endpoint/ring_slab.h"

#include <atomic>
#include <cstddef>

namespace heddle::fabric {

class SendRing;
class Stream;

class RingQuota {
  public:
    // Of a stream's first ring while memory is plentiful. A smaller ring grows when it comes to its end, though
    // nothing is in use; a larger one when it was full.
    static constexpr size_t kEasyRing = 16 * 1024;

    // The streams may have so many bytes more. Takes back rings for that, of which it looks at kLooks.
    bool allow(size_t bytes);
    // Lends the stream's ring memory where SendRing::is_free: for a record of so many bytes, and more than it has, as
    // far as is allowed. Without memory the ring stays as it is.
    void lend(Stream& stream, SendRing& ring, size_t bytes);
    // Takes the memory of the ring back, where SendRing::is_free.
    void take_back(SendRing& ring);
    // Takes back what is not in use.
    void take_back_all();

    // The bytes that the streams have on loan. Any thread.
    size_t lent() const { return bytes_.load(std::memory_order_relaxed); }

    RingSlab* slab = nullptr;  // of the PE; set before anything is sent

  private:
    static constexpr unsigned kLooks = 8;
    void add(Stream& stream);
    bool take_back_oldest();

    std::atomic<size_t> bytes_{0};  // on loan; relaxed, all: written by the producer alone
    size_t count_ = 0;              // of rings on loan
    // The streams that have them, in a ring of Stream::next_with_ring, in the order of the loans: the newest, behind
    // which is the oldest.
    Stream* newest_ = nullptr;
};

}  // namespace heddle::fabric
