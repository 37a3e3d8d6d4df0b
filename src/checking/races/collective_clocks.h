// Collective clocks: what the members of a collective know when they enter it, joined for those who leave it. A
// collective is known by its team segment and the step of the segment at which it begins, alike on all members. In
// shared memory, which begins zeroed. Threads: any; a lock for each segment.
#pragma once

#include "checking/races/clock.h"
#include "checking/races/shared_lock.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace heddle::checking::races {

struct CollectiveKey {
    int segment = 0;
    uint32_t step = 0;
};

class CollectiveClocks {
  public:
    CollectiveClocks(char* memory, int n_pes) : memory_(memory), n_pes_(n_pes) {}
    static size_t bytes(int n_pes) { return kSegments * segment_bytes(n_pes); }

    // A member enters, and knows `clock`.
    void enter(const CollectiveKey& key, const Clock& clock) {
        Segment* const segment = find(key.segment);
        if (!segment)
            return;
        const std::lock_guard locked(segment->lock);
        Round& round = round_of(*segment, key.step);
        join(words_of(round), clock.words(), n_pes_);
    }

    // A member leaves, and joins into `clock` what those that have entered knew. False when that is not known.
    bool leave(const CollectiveKey& key, Clock* clock) {
        Segment* const segment = find(key.segment);
        if (!segment)
            return false;
        const std::lock_guard locked(segment->lock);
        clock->join(words_of(round_of(*segment, key.step)));
        return true;
    }

  private:
    static constexpr size_t kSegments = 256;
    // Members are at most one collective apart: a collective of a checked run begins with a barrier.
    static constexpr size_t kRounds = 4;

    struct Round {
        uint64_t step_plus_one;  // 0: unused
        uint64_t age;
    };
    struct Segment {
        std::atomic<uint64_t> index_plus_one;  // 0: free
        SharedLock lock;
        uint64_t ages;
    };
    static size_t round_bytes(int n_pes) { return sizeof(Round) + clock_words(n_pes) * sizeof(Time); }
    static size_t segment_bytes(int n_pes) { return sizeof(Segment) + kRounds * round_bytes(n_pes); }
    static Time* words_of(Round& round) { return reinterpret_cast<Time*>(&round + 1); }
    Round& round_at(Segment& segment, size_t i) {
        return *reinterpret_cast<Round*>(reinterpret_cast<char*>(&segment + 1) + i * round_bytes(n_pes_));
    }

    Segment* find(int index) {
        const uint64_t key = static_cast<uint64_t>(index) + 1;
        for (size_t i = 0; i < kSegments; ++i) {
            auto* const segment = reinterpret_cast<Segment*>(memory_ + (key + i) % kSegments * segment_bytes(n_pes_));
            // Relaxed: an index never changes, and what is behind it has a lock.
            uint64_t there = segment->index_plus_one.load(std::memory_order_relaxed);
            if (there == key || (there == 0 && (segment->index_plus_one.compare_exchange_strong(
                                                    there, key, std::memory_order_relaxed) ||
                                                there == key)))
                return segment;
        }
        return nullptr;
    }

    // The round of the step: made in place of the oldest one by the first member.
    Round& round_of(Segment& segment, uint32_t step) {
        Round* oldest = nullptr;
        for (size_t i = 0; i < kRounds; ++i) {
            Round& round = round_at(segment, i);
            if (round.step_plus_one == uint64_t{step} + 1)
                return round;
            if (!oldest || round.age < oldest->age)
                oldest = &round;
        }
        *oldest = {uint64_t{step} + 1, ++segment.ages};
        std::fill_n(words_of(*oldest), clock_words(n_pes_), Time{0});
        return *oldest;
    }

    char* memory_;
    int n_pes_;
};

}  // namespace heddle::checking::races
