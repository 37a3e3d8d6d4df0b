// The clocks of hosts, for a trace: how far the clock of each node is from that of PE 0. The first PE of a node answers
// PE 0, which takes the round trip that was shortest: its half is the error.
//
// Cost: 16 round trips of PE 0 for each further node, or as many as 10 ms have, at init and at finalize. Threads:
// one of each PE.
#pragma once

#include "profiling/trace.h"

#include <cstdint>
#include <vector>

namespace heddle::profiling {

// Of a node, against the clock of PE 0, in ns: what is to be added to the node's time.
struct ClockOffset {
    int64_t ns = 0;
    uint64_t error_ns = 0;
};

// By node; in PE 0 alone, elsewhere empty. All PEs call it, once at the start and once at the end. head: of this PE's
// trace, symmetric.
std::vector<ClockOffset> measure_clocks(const char* function, TraceHead& head, bool at_end);

}  // namespace heddle::profiling
