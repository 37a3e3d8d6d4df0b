// What one PE has done, by the place of its calls: the observer of a profiled run (docs/decisions/0081).
//
// Each thread counts in memory of its own, which the next one takes over when it ends. A call is timed where that costs
// little beside it: each wait and collective, data of 32 KiB and more, and the first 64 operations of a place. Of its
// further ones each 16th is timed, and behind 1,024 each 256th. The time that an operation on the PE's own memory takes
// is not the program's: it is taken off.
//
// Threads: any.
#pragma once

#include "operations/observer.h"
#include "profiling/counts.h"
#include "profiling/trace.h"

#include <pthread.h>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

namespace heddle::profiling {

class Profile : public operations::Observer {
  public:
    // trace: where the calls go, too; null: nowhere.
    explicit Profile(Trace* trace);
    ~Profile() override;

    bool issue(const operations::Operation& operation) override;
    void end_operation() override;
    void begin_wait(Wait what, const base::Call& call, shmem_ctx_t ctx) override;
    void end_wait() override;
    void post_collective(const base::Call& call) override;
    void use_buffer(const base::Call& call, const void* buffer, size_t bytes, bool writes) override;
    void allocate(const base::Call& call, const void* block, size_t bytes) override;
    void see(const void* word, size_t bytes) override;
    void take_lock(const long* lock) override;
    void give_lock(const long* lock) override;
    void join_collective(const team::Team& team) override;

    // --- Nothing that a profile depends on.
    void order(const char*, shmem_ctx_t) override {}
    void complete(const char*, shmem_ctx_t, const int*, size_t) override {}
    bool is_complete(shmem_ctx_t) override { return true; }
    void look() override {}
    void enter_collective(const base::Call&) override {}
    void stop(const char*) override {}

    // Nothing is counted any more.
    void end();
    // The profile of this PE so far.
    void write(JobProfile* to);

  private:
    // A place that a thread has called from.
    struct Place {
        base::Call call;
        shmem_ctx_t ctx = nullptr;
        SiteName name;               // known from the start: the module may be closed before the end
        uint32_t number = kNoPlace;  // in the trace
        Counts counts;
        int last_pe = -1;  // the thread's alone, both: of its last operation here
        const char* last_end = nullptr;
    };

    // What a thread has counted. It writes, and the thread that finalizes reads.
    struct Thread {
        static constexpr size_t kPlaces = 1024, kIndex = 4096;

        int number = 0;
        std::atomic<uint32_t> n_places{0};
        std::atomic<bool> has_ended{false};  // another thread may take it over
        uint64_t library_ticks = 0;
        std::array<Pair, kGroups> pairs = {};
        std::array<Place, kPlaces + 1> places;  // the last one: further places, whose counts are lost
        operations::ObservedRuns runs;
        std::array<Place*, std::tuple_size_v<decltype(runs.runs)>> places_of_runs = {};
        // The thread's alone, from here on.
        std::array<uint16_t, kIndex> index = {};  // of a place, plus 1
        uint64_t own_ticks = 0;                   // that a timed operation takes at least
        Place* last = nullptr;
        Place* open = nullptr;  // that is timed now
        bool is_sample = false;
        uint64_t open_ticks = 0;
        int depth = 0;                                                 // of waits within it
        int operations = 0;                                            // an operation under way may be made of others
        uint64_t since_quiet = 0, since_fence = 0, since_request = 0;  // operations
        // For the trace: the calls that the thread is in, each within the one before, and the last one that has ended.
        static constexpr int kCalls = 8;
        std::array<TraceEvent, kCalls> calls = {};
        int n_calls = 0;
        TraceEvent* last_call = nullptr;
        uint64_t outside_ticks = 0;  // when the first of these since the last quiet had been issued, less library_ticks
    };

    static Kind kind_of(Wait what);
    static uint64_t measure_own_ticks();
    Thread& this_thread();
    Place& find(Thread& here, const base::Call& call, shmem_ctx_t ctx, Kind kind);
    void begin_run(Thread& here, operations::ObservedRun& run, Place& place, const operations::Operation& operation,
                   uint64_t bytes);
    static void end_run(Thread& here, operations::ObservedRun& run);
    static void end_runs(Thread& here);
    void open(Thread& here, Place& place, bool is_sample = false);
    void close(Thread& here);
    void begin_call(Thread& here, const Place& place, Kind kind, const TraceEvent& event);
    void end_call(Thread& here);
    void name_last(Kind kind, const void* word);
    uint32_t number_of(shmem_ctx_t ctx);
    SiteName describe(const base::Call& call, shmem_ctx_t ctx, Kind kind, uint32_t* number);
    static void leave_thread();
    void write(const Thread& thread, JobProfile* to, std::vector<Site>* sites);

    const uint64_t number_;  // of profiles in this process: threads know one of an earlier init by it
    const uint64_t ticks_per_ms_;
    const uint64_t begin_ticks_;
    const int group_shift_;
    Trace* const trace_;
    std::atomic<uint64_t> most_heap_bytes_{0};
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;  // of what follows
    std::vector<std::unique_ptr<Thread>> threads_;
    std::map<shmem_ctx_t, uint32_t> contexts_;  // numbers
    std::map<uint64_t, uint32_t> collectives_;  // of a team, so far
};

}  // namespace heddle::profiling
