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
// The most bytes of large data that go to one rail in one piece.
constexpr size_t kMaxPiece = 256 * 1024;

enum class Spread : uint8_t { kOneRail, kAnyOrder, kInOrder };

// The bytes that one rail has under way, and its rate.
class Load {
  public:
    // Large data of so many bytes has been posted to the rail's stream.
    void post(const Stream& stream, size_t bytes);
    // Notices what has come to an end, and measures the rate.
    void look(const Stream& stream, uint64_t now_ns);
    // Bytes; as of the last look.
    uint64_t under_way() const { return under_way_; }
    // Bytes a nanosecond; 0: not measured yet.
    double rate() const { return rate_; }

  private:
    struct Large {
        uint64_t position, returns, bytes;  // done when the stream is complete up to both
    };
    std::deque<Large> larges_;
    uint64_t larges_bytes_ = 0, larges_done_ = 0;
    uint64_t under_way_ = 0;
    double rate_ = 0;
    uint64_t since_ns_ = 0, done_then_ = 0;  // when the measurement began, and the bytes done then; 0: none is going on
};

class RailScheduler {
  public:
    RailScheduler(StreamSet& stream_set, int pe, RailScheduler* next);
    RailScheduler(const RailScheduler&) = delete;
    RailScheduler& operator=(const RailScheduler&) = delete;

    // The stream on the rail; null: nothing has been sent there. Acquire: pairs with RailScheduler::open.
    Stream* on(int rail) const { return streams_[rail].load(std::memory_order_acquire); }

    // The stream in use has filled a message: the next one may go to another rail.
    void on_message_full();
    // The stream for a piece of large data; where order is kept, the one in use. function: for the message that shows
    // where a PE waits. The caller says by `posted` what it has posted there.
    Stream& fastest(const char* function);
    void posted(const Stream& stream, size_t bytes);
    // What is sent to the PE from now on is applied behind what was sent before, on all rails.
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
    std::atomic<Stream*> streams_[kMaxRails] = {};
    std::vector<Load> loads_;  // indexed by rail
    int current_ = 0;          // the rail of the stream in use
    bool switching_ = false;   // on_message_full is under way
    // announced_[a][b] <= mark_[b] <= position of b, ordered_after_[a] <= marks_ (check_marks).
    uint64_t marks_ = 0;                             // how often there was a mark
    uint64_t mark_[kMaxRails] = {};                  // position of each stream at the last mark
    uint64_t ordered_after_[kMaxRails] = {};         // the number of the mark that each stream has been brought behind
    uint64_t announced_[kMaxRails][kMaxRails] = {};  // [a][b]: up to where the target of a waits for b
};

}  // namespace heddle::fabric
