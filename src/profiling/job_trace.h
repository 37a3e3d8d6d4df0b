// The trace of a job in PE 0: the events of all traced PEs with times of one clock, and the arrows between them.
// Threads: one.
#pragma once

#include "profiling/clocks.h"
#include "profiling/trace.h"

#include <cstdint>
#include <vector>

namespace heddle::profiling {

struct TimedEvent : TraceEvent {
    int64_t begin_ns = 0, end_ns = 0;  // since PE 0 began its trace
    int of_pe = 0;
    uint32_t thread = 0;
};

// From then to then.
struct Span {
    int64_t begin_ns, end_ns;
};

struct PeTrace {
    int pe = 0, node = 0;
    uint64_t lost = 0;
    int64_t first_lost_ns = INT64_MAX;
    // When calls may have stored, or have given a lock, that are not in the trace.
    std::vector<Span> gaps;
    std::vector<SiteName> places;
    std::vector<bool> is_of_program;  // by thread
    std::vector<TimedEvent> events;   // thread by thread, in the order in which they ended
};

struct JobTrace {
    std::vector<PeTrace> pes;
    uint64_t clock_error_ns = 0;  // of two nodes, at most

    uint64_t lost() const;
    size_t events() const;
};

// What ended a wait: from the begin of an event to the end of another one.
struct Arrow {
    const TimedEvent* from;
    const TimedEvent* to;
};

// The chunks of a PE, whose clock is `at_begin` and `at_end` away from that of PE 0. origin_ns: of PE 0.
PeTrace read_trace(int pe, const TraceHead& head, const TraceChunk* chunks, size_t n_chunks,
                   const ClockOffset& at_begin, const ClockOffset& at_end, uint64_t origin_ns);

// Of waits for a value: the last store to it; of waits for a lock: the call that has given it back; of collectives: the
// PE that has come last. None where calls that are not in the trace may have been in between. Clocks differ between
// nodes alone.
std::vector<Arrow> find_arrows(const JobTrace& trace);

}  // namespace heddle::profiling
