// What the library does by itself, for a trace (HEDDLE_TRACE): events that are rare or slow anyhow, so that one look at
// a pointer costs nothing beside them. They stand where the counters of HEDDLE_STATS count them. Threads: any.
#pragma once

#include "base/pe_local.h"

#include <atomic>
#include <cstdint>

namespace heddle::base {

enum class SlowEvent : uint32_t {
    kSleep,            // a wait has gone to sleep
    kServiceSleep,     // the network's thread, likewise
    kMessageSent,      // pe, bytes: records, or large data
    kMessageReceived,  // likewise
    kControlMessage,   // of a step of a collective between nodes, sent: pe, bytes
    kStep,             // a wait for one from pe
    kCopy,             // a piece of a transfer in the background
};

class SlowEventSink {
  public:
    // begin_ticks: os::ticks_now() at its begin; 0: it takes no time. pe: -1: none.
    virtual void note(SlowEvent what, uint64_t begin_ticks, int pe, uint64_t bytes) = 0;

  protected:
    ~SlowEventSink() = default;
};

// This PE's; null: none. Lives as long as the process.
extern HEDDLE_PE_LOCAL std::atomic<SlowEventSink*> slow_event_sink;

inline SlowEventSink* find_slow_event_sink() {
    return slow_event_sink.load(std::memory_order_acquire);  // pairs with profiling::begin_trace
}
// The begin of an event that lasts; 0: nobody asks. os::ticks_now is the caller's.
inline void end_slow_event(SlowEvent what, uint64_t* begin_ticks, int pe = -1) {
    if (__builtin_expect(*begin_ticks != 0, 0)) {
        if (SlowEventSink* const sink = find_slow_event_sink())
            sink->note(what, *begin_ticks, pe, 0);
        *begin_ticks = 0;
    }
}
inline void note_slow_event(SlowEvent what, int pe = -1, uint64_t bytes = 0) {
    if (SlowEventSink* const sink = find_slow_event_sink(); __builtin_expect(sink != nullptr, 0))
        sink->note(what, 0, pe, bytes);
}

}  // namespace heddle::base
