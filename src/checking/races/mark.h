// Mark: one access to symmetric memory as the shadow keeps it.
#pragma once

#include "checking/races/clock.h"

#include <cstdint>

namespace heddle::checking::races {

// What ends an access, beside its flow.
enum class Completion : uint8_t {
    kAtReturn,  // over when its call returns: blocking gets, local buffers; and what a wait has seen
    kOrdered,   // complete at a quiet, and ordered by a fence: puts, atomics, signals
    kAtQuiet,   // complete at a quiet alone: non-blocking gets
};

struct Mark {
    uint64_t time : kTimeBits;
    uint64_t pe : 64 - kTimeBits;
    uint32_t place : 12;  // of the call, in the PE's table (places.h); 0: unknown
    uint32_t stamp : 20;  // the writes to the block so far, this one included, for the shadow
    uint8_t bytes;        // of the granule, a bit each; 0: no access
    uint8_t writes : 1;
    uint8_t is_atomic : 1;
    Completion completion : 2;
    Flow flow : 3;
    uint8_t thread;  // number of the thread in its PE, for the report

    bool is_empty() const { return bytes == 0; }
};
static_assert(sizeof(Mark) == 16);

inline bool conflict(const Mark& one, const Mark& other) {
    return (one.writes || other.writes) && !(one.is_atomic && other.is_atomic);
}

}  // namespace heddle::checking::races
