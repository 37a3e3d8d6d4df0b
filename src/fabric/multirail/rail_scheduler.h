// RailScheduler: what one stream set sends to one PE where the network has several rails (interfaces, each with its own
// channels). There is one stream for each rail, and a stream never leaves its rail. The scheduler chooses the stream of
// the next message, and keeps the order between streams.
//
//   spread    When a message is full, the next one goes to the rail that is expected to finish it first, judged by the
//             bytes in flight and the rate of late. Only rails whose stream has space are considered, so a rail that is
//             slow or stands delays nobody. Large data goes in pieces, each to such a rail.
//   fence     A fence marks the positions of all streams. A stream that is used after it first says, in kAfter records,
//             up to which position the other streams must be complete before it continues. The target enforces this;
//             the sender does not wait, and sends nothing where nothing is in flight.
//   in order  A stream set that keeps order over all rails fences at each change of rails. The target holds back what
//             comes too early (fabric/endpoint/inbound.h), which is its reorder buffer.
//
// Threads: the producer's; `on` is for any thread.
#pragma once

#include "fabric/endpoint/stream.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace heddle::fabric {

struct StreamSet;

constexpr int kMaxRails = 8;
// Of large data: so much goes to one rail.
constexpr size_t kMaxPiece = 256 * 1024;

enum class Spread : uint8_t { kOneRail, kAnyOrder, kInOrder };

// What one rail has under way, and how fast it goes.
class Load {
  public:
    void post(const Stream& stream, size_t bytes);
    // Notices what has come to an end.
    void look(const Stream& stream, uint64_t now_ns);
    // Bytes, and bytes a nanosecond; 0: nobody knows yet.
    uint64_t under_way() const { return under_way_; }
    double rate() const { return rate_; }

  private:
    struct Large {
        uint64_t position, returns, bytes;  // done when the stream has both
    };
    std::deque<Large> larges_;
    uint64_t larges_bytes_ = 0, larges_done_ = 0;
    uint64_t under_way_ = 0;
    double rate_ = 0;
    uint64_t since_ns_ = 0, done_then_ = 0;  // of what is being measured; 0: nothing
};

class RailScheduler {
  public:
    RailScheduler(StreamSet& stream_set, int pe, RailScheduler* next);
    RailScheduler(const RailScheduler&) = delete;
    RailScheduler& operator=(const RailScheduler&) = delete;

    // Null: nothing has been sent there. Acquire: pairs with open.
    Stream* on(int rail) const { return streams_[rail].load(std::memory_order_acquire); }
    // A stream of this; true for one of them all.
    bool is_first(const Stream& stream) const { return first_ == &stream; }

    // The last message is full.
    void on_message_full();
    // For a piece of large data; the one in use where order is kept. function: for the message that shows where a PE
    // waits. What was posted there is said behind it.
    Stream& fastest(const char* function);
    void posted(const Stream& stream, size_t bytes);
    void fence(const char* function);

    RailScheduler* const next;  // of the same stream set

  private:
    Stream& open(int rail);
    Load& load_of(int rail) { return loads_[static_cast<size_t>(rail)]; }
    int find_fastest();
    int wait_for_fastest(const char* function);
    void mark();
    void check_marks(int rail) const;
    void order_after_marks(const char* function, int rail);

    StreamSet& stream_set_;
    const int pe_;
    Stream* first_ = nullptr;
    std::atomic<Stream*> streams_[kMaxRails] = {};
    std::vector<Load> loads_;  // one a rail
    int current_ = 0;
    bool switching_ = false;
    // announced_[a][b] <= mark_[b] <= position of b, ordered_after_[a] <= marks_ (check_marks).
    uint64_t marks_ = 0;                             // how often there was a mark
    uint64_t mark_[kMaxRails] = {};                  // position of each stream at the last mark
    uint64_t ordered_after_[kMaxRails] = {};         // the number of the mark that each stream has been brought behind
    uint64_t announced_[kMaxRails][kMaxRails] = {};  // [a][b]: up to where the target of a waits for b
};

}  // namespace heddle::fabric
