// Rail watermarks: how far the streams of one stream set of another PE are complete here. There is one stream for each
// rail, and one of them can wait for another (kAfter). A stream belongs to its channel's lock; the streams share only
// these words.
//
// Either the waiting stream sees how far the other one is, or the advancing stream sees that another waits for it: each
// stores its own word first and then loads the other's, all seq_cst. A watermark never goes back.
#pragma once

#include "base/invariant.h"
#include "fabric/multirail/rail_scheduler.h"

#include <atomic>
#include <cstdint>

namespace heddle::fabric {

class RailWatermarks {
  public:
    // The stream on `rail` is complete up to the position. Calls wake(other) for each rail whose stream may go on now.
    // Under the lock of the channel on `rail`.
    template <class Wake>
    void advance(int rail, uint64_t position, Wake wake) {
        HEDDLE_INVARIANT(rail >= 0 && rail < kMaxRails);
        HEDDLE_INVARIANT(complete_[rail].load(std::memory_order_relaxed) <= position);  // what is complete stays so
        if (complete_[rail].load(std::memory_order_relaxed) == position)
            return;
        // seq_cst: pairs with RailWatermarks::is_complete. It also shows what was put to the stream that waits.
        complete_[rail].store(position, std::memory_order_seq_cst);
        for (int other = 0; other < kMaxRails; ++other)
            if (waits_[other].load(std::memory_order_seq_cst))
                wake(other);
    }
    // Whether the stream on `other` is complete up to the position. When it is not, the stream on `rail` is woken as
    // the other advances. Under the lock of the channel on `rail`.
    bool is_complete(int rail, int other, uint64_t position) {
        HEDDLE_INVARIANT(rail != other && other >= 0 && other < kMaxRails);  // a stream never waits for itself
        waits_[rail].store(true, std::memory_order_seq_cst);                 // pairs with RailWatermarks::advance
        if (complete_[other].load(std::memory_order_seq_cst) < position)
            return false;
        waits_[rail].store(false, std::memory_order_relaxed);  // one wake too many does no harm
        return true;
    }

  private:
    std::atomic<uint64_t> complete_[kMaxRails] = {};  // by rail: the position
    std::atomic<bool> waits_[kMaxRails] = {};         // by rail: its stream waits for another
};

}  // namespace heddle::fabric
