// Rails: what one lane sends to one PE where the network has several rails (interfaces, each with its own wires): a
// stream on each. A stream never leaves its rail; Rails says which of them is used next, and what it comes behind.
//
//   spread    when a message is full, what follows goes to the rail that will have done it first: by what it has under
//             way, and how fast that has gone lately; of those whose stream has room, so that a rail which is slow, or
//             stands, holds nobody up. Large data goes in pieces, each to such a rail.
//   fence     marks where all streams are. A stream that is used behind it says first, in kAfter records, up to where
//             the others must be complete before it goes on. The target counts; nobody here waits, and where nothing is
//             under way nothing is said.
//   in order  a lane that keeps order over all rails fences at each change of rails: the target holds back what comes
//             too early (fabric/inbound.h), which is its reorder buffer.
//
// The producer's; `on` is for any thread.
#pragma once

#include "fabric/stream.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace heddle::fabric {

struct Lane;

constexpr int kMostRails = 8;
// Of large data: so much goes to one rail.
constexpr size_t kMostPiece = 256 * 1024;

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

class Rails {
  public:
    Rails(Lane& lane, int pe, Rails* next);
    Rails(const Rails&) = delete;
    Rails& operator=(const Rails&) = delete;

    // Null: nothing has been sent there. Acquire: pairs with open.
    Stream* on(int rail) const { return streams_[rail].load(std::memory_order_acquire); }
    // A stream of this; true for one of them all.
    bool is_first(const Stream& stream) const { return first_ == &stream; }

    // The last message is full.
    void turn();
    // For a piece of large data; the one in use where order is kept. function: for the message that shows where a PE
    // waits. What was posted there is said behind it.
    Stream& quickest(const char* function);
    void posted(const Stream& stream, size_t bytes);
    void fence(const char* function);

    Rails* const next;  // of the same lane

  private:
    Stream& open(int rail);
    Load& load_of(int rail) { return loads_[static_cast<size_t>(rail)]; }
    int find_quickest();
    int wait_for_quickest(const char* function);
    void mark();
    void bring_behind_marks(const char* function, int rail);

    Lane& lane_;
    const int pe_;
    Stream* first_ = nullptr;
    std::atomic<Stream*> streams_[kMostRails] = {};
    std::vector<Load> loads_;  // one a rail
    int current_ = 0;
    bool turning_ = false;
    uint64_t marks_ = 0;                          // how often there was a mark
    uint64_t mark_[kMostRails] = {};              // position of each stream at the last one
    uint64_t behind_[kMostRails] = {};            // the mark that each stream has been brought behind
    uint64_t told_[kMostRails][kMostRails] = {};  // [a][b]: up to where a's target waits for b
};

}  // namespace heddle::fabric
