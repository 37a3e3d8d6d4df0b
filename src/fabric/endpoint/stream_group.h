// StreamGroup: up to 32 streams of a stream set, and which of them are active. A stream is active while something of it
// is outstanding: records, returns or bodies. What waits for streams walks the active ones alone.
//
//     a stream becomes active    by its producer, behind what it has posted to an idle stream
//     a stream becomes inactive  by the sender, which finds it idle and nothing of it outstanding
//
// Exact for the producer, and for every thread that synchronizes with it: whoever sees a post sees its stream active,
// or what was posted done. A mark therefore advances a count beside the bits. The sender reads bits and count, looks
// for something outstanding, and clears the bit if no mark has come between (tests/model/idle.pml).
//
// The active streams of all stream sets of a context are also counted (Producer::n_active). That number is never lower
// than the number of bits that are set: it is raised before a bit is set, and lowered behind one that is cleared.
//
// Threads: the producer adds and marks; the sender, under the channel's lock, clears; any thread walks.
// Cost: two locked instructions where a stream becomes active, and two where it becomes inactive.
#pragma once

#include "base/invariant.h"

#include <atomic>
#include <cstdint>

namespace heddle::fabric {

class Stream;

class StreamGroup {
  public:
    static constexpr uint32_t kStreams = 32;

    explicit StreamGroup(StreamGroup* behind) : next(behind) {}
    StreamGroup(const StreamGroup&) = delete;
    StreamGroup& operator=(const StreamGroup&) = delete;

    bool is_full() const { return size_.load(std::memory_order_relaxed) == kStreams; }
    // The index that the next stream gets, where not is_full.
    uint32_t next_index() const { return size_.load(std::memory_order_relaxed); }
    void add(Stream* stream) {
        const uint32_t index = next_index();
        HEDDLE_INVARIANT(index < kStreams);
        streams_[index] = stream;
        size_.store(index + 1, std::memory_order_release);  // pairs with StreamGroup::all
    }

    // Calls visit for every stream while it returns true; false when one call did not. Acquire: pairs with
    // StreamGroup::add.
    template <class Visit>
    bool all(Visit visit) const {
        for (uint32_t i = size_.load(std::memory_order_acquire); i-- != 0;)
            if (!visit(*streams_[i]))
                return false;
        return true;
    }
    // As all, for the active streams. Acquire: pairs with StreamGroup::mark, behind which a stream has been added.
    template <class Visit>
    bool all_active(Visit visit) const {
        for (auto bits = static_cast<uint32_t>(active_.load(std::memory_order_acquire)); bits != 0; bits &= bits - 1)
            if (!visit(*streams_[__builtin_ctz(bits)]))
                return false;
        return true;
    }

    // The producer, behind what it has posted on the stream.
    void mark(uint32_t index, std::atomic<uint32_t>& n_active) {
        uint64_t before = active_.load(std::memory_order_relaxed);
        bool counted = false;
        do {
            if (!(before & bit(index)) && !counted) {
                n_active.fetch_add(1, std::memory_order_relaxed);  // ahead of the bit
                counted = true;
            }
            // Release: pairs with StreamGroup::clear and StreamGroup::all_active.
        } while (!active_.compare_exchange_weak(before, (before | bit(index)) + kMark, std::memory_order_release,
                                                std::memory_order_relaxed));
        if (counted && (before & bit(index)))
            n_active.fetch_sub(1, std::memory_order_release);  // pairs with StreamSetList::is_active
    }
    // The sender, under the channel's lock. is_done(): nothing of the stream is outstanding, and a producer that posts
    // from now on marks.
    template <class IsDone>
    void clear(uint32_t index, std::atomic<uint32_t>& n_active, IsDone is_done) {
        uint64_t before = active_.load(std::memory_order_acquire);  // pairs with StreamGroup::mark
        while ((before & bit(index)) && is_done()) {
            // acq_rel: pairs with StreamGroup::mark, and with StreamGroup::all_active, for which all is done.
            if (!active_.compare_exchange_weak(before, before & ~bit(index), std::memory_order_acq_rel,
                                               std::memory_order_acquire))
                continue;
            [[maybe_unused]] const uint32_t active =
                n_active.fetch_sub(1, std::memory_order_release);  // pairs with StreamSetList::is_active
            HEDDLE_INVARIANT(active != 0);
            return;
        }
    }

    StreamGroup* const next;  // of the same stream set

  private:
    static constexpr uint64_t kMark = uint64_t{1} << kStreams;
    static constexpr uint64_t bit(uint32_t index) { return uint64_t{1} << index; }

    std::atomic<uint64_t> active_{0};  // a bit for each stream; above them, how often one was marked
    std::atomic<uint32_t> size_{0};
    Stream* streams_[kStreams] = {};
};

}  // namespace heddle::fabric
