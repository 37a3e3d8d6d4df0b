// The local buffers of non-blocking operations until their quiet: a program may not write what is to be read, nor read
// what is to be written. Bounded: the oldest is forgotten, and with it what could be found. Threads: the detector's
// lock.
#pragma once

#include "checking/races/mark.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::checking::races {

class PendingBuffers {
  public:
    static constexpr size_t kMost = 256;

    void add(const void* buffer, size_t bytes, const Mark& mark) {
        if (pending_.size() == kMost)
            pending_.erase(pending_.begin());
        const auto begin = reinterpret_cast<uintptr_t>(buffer);
        pending_.push_back({begin, begin + bytes, mark});
    }

    // The first one that conflicts with an access to the buffer; null: none. It is then forgotten, as reported.
    bool take_conflict(const void* buffer, size_t bytes, bool writes, Mark* mark) {
        const auto begin = reinterpret_cast<uintptr_t>(buffer), end = begin + bytes;
        const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& one) {
            return one.begin < end && begin < one.end && (writes || one.mark.writes);
        });
        if (found == pending_.end())
            return false;
        *mark = found->mark;
        pending_.erase(found);
        return true;
    }

    bool holds(const void* buffer, size_t bytes) const {
        const auto begin = reinterpret_cast<uintptr_t>(buffer), end = begin + bytes;
        return std::any_of(pending_.begin(), pending_.end(),
                           [&](const Pending& one) { return one.begin < end && begin < one.end; });
    }

    void quiet(Flow flow) {
        std::erase_if(pending_, [&](const Pending& one) { return one.mark.flow == flow; });
    }
    void clear() { pending_.clear(); }

    // The addresses from the first to the last byte of all of them; empty: begin is end.
    struct Hull {
        uintptr_t begin = 0, end = 0;
    };
    Hull hull() const {
        Hull all;
        for (const Pending& one : pending_)
            all = all.begin == all.end ? Hull{one.begin, one.end}
                                       : Hull{std::min(all.begin, one.begin), std::max(all.end, one.end)};
        return all;
    }

  private:
    struct Pending {
        uintptr_t begin, end;
        Mark mark;
    };
    std::vector<Pending> pending_;
};

}  // namespace heddle::checking::races
