// The trace of a run (HEDDLE_TRACE, docs/decisions/0082): what the threads of a PE have done, with times. It lies in
// memory of a fixed size at the start of the PE's heap. PE 0 gets it there at the end.
//
// Each thread writes events into a chunk of its own, and takes a further one when it is full. Where none is left,
// events are lost, and counted.
//
// Threads: any.
#pragma once

#include "base/slow_event.h"
#include "os/memfd.h"
#include "os/ticks.h"
#include "profiling/counts.h"

#include <pthread.h>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::profiling {

// What an event is of: a call of the program (its Kind), or of the library's own (kSlow and a base::SlowEvent).
constexpr uint32_t kGiveLock = 32, kSlow = 64;
constexpr uint32_t kNoPlace = UINT32_MAX;              // of the library's own, and beyond TraceHead::kPlaces
constexpr uint64_t kInStaticData = uint64_t{1} << 63;  // in a word

struct TraceEvent {
    uint64_t begin = 0, end = 0;  // ticks
    // The symmetric address that the event is about, as word_of has it: where data or a signal goes, what a wait has
    // seen, a lock. Of a collective: its team. 0: none.
    uint64_t word = 0;
    uint64_t bytes = 0;        // of a quiet, a fence and the wait for a request: the operations since the last of them
    uint32_t what = 0;         // Kind, kGiveLock, or kSlow + SlowEvent
    uint32_t place = 0;        // number in TraceHead::places
    int32_t pe = -1;           // the target; of a collective: the size of the team
    uint32_t number : 31 = 0;  // of the thread's calls at this place, from 1; of a collective: of the team's
    uint32_t begins_run : 1 = 0;  // further calls may follow that are not in the trace
};
static_assert(sizeof(TraceEvent) == 48);

struct TraceChunk {
    static constexpr size_t kBytes = 16384, kEvents = (kBytes - 16) / sizeof(TraceEvent);

    std::atomic<uint32_t> n{0};  // events
    uint32_t thread = 0;         // its number, of the PE
    uint32_t is_of_program = 0;  // the thread has called the interface
    std::array<TraceEvent, kEvents> events;
};
static_assert(sizeof(TraceChunk) <= TraceChunk::kBytes);

// What is ahead of the chunks.
struct TraceHead {
    static constexpr uint32_t kPlaces = 512;

    std::atomic<uint32_t> chunks{0};  // that are asked for; more than there are: events were lost
    uint32_t n_places = 0;
    std::atomic<uint64_t> lost{0};  // events
    // Ticks: the begin of the first of them, and from the first pause to the end of the last one. UINT64_MAX: none; 0:
    // a pause that has not ended.
    std::atomic<uint64_t> first_lost{UINT64_MAX}, paused_from{UINT64_MAX}, paused_until{UINT64_MAX};
    os::Instant begin, end;
    uint64_t ping = 0, pong = 0;  // of clocks.h
    std::array<SiteName, kPlaces> places;
};

// Only the first PEs have a trace: no one reads time lines of more, and PE 0 has memory for them.
constexpr int kTracedPes = 1024;
// Bytes of a PE's trace, head and chunks, by the setting (0: by the number of PEs).
size_t trace_bytes(size_t setting, int n_pes);

// This PE's trace.
class Trace final : public base::SlowEventSink {
  public:
    // area: zeroed, of trace_bytes.
    Trace(void* area, size_t bytes);

    void note(base::SlowEvent what, uint64_t begin_ticks, int pe, uint64_t bytes) override;
    // The calling thread's event; null when it is lost. It stays the thread's until the next one.
    TraceEvent* add(const TraceEvent& event, bool is_of_program = true);
    // The calling thread has a track of its own from here to its end.
    void join_thread() { this_log(); }
    // Events are taken (shmem_pcontrol). Relaxed, all: they order nothing.
    bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
    void turn(bool on);

    // The number of a place, under the caller's lock.
    uint32_t number_of(const SiteName& name);
    TraceHead& head() { return *head_; }

    static constexpr uint32_t kLogs = 1024;  // threads at once
    static constexpr size_t kHeadBytes = os::round_up(sizeof(TraceHead), 64);

  private:
    // What a thread writes to; of a thread that has ended: what the next one writes to.
    struct Log {
        uint32_t thread = 0;
        TraceChunk* chunk = nullptr;
        std::atomic<bool> has_ended{false};
    };
    Log* this_log();
    TraceChunk* take_chunk(const Log& log);

    const uint64_t number_;  // of traces in this process: threads know one of an earlier init by it
    TraceHead* const head_;
    const size_t max_chunks_;
    std::atomic<bool> is_on_{true};
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;  // of what follows
    uint32_t n_logs_ = 0;
    std::array<Log, kLogs> logs_;
};

// A symmetric address of this PE, as other PEs know it: its offset, with the highest bit where it is in static data.
// Plus 1, since 0 is none.
uint64_t word_of(const void* address);

}  // namespace heddle::profiling
