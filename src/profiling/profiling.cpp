#include "profiling/profiling.h"

#include "base/error.h"
#include "base/pe_local.h"
#include "base/settings.h"
#include "base/slow_event.h"
#include "bootstrap/bootstrap.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "operations/rma.h"
#include "os/locked.h"
#include "os/memfd.h"
#include "profiling/gather.h"
#include "profiling/page.h"
#include "profiling/profile.h"
#include "profiling/text.h"
#include "profiling/trace_file.h"
#include "progress/engine.h"

#include <pthread.h>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

namespace heddle::profiling {

namespace {

// Lives as long as the process: threads may still know it.
struct Observing {
    std::unique_ptr<Trace> trace;
    std::unique_ptr<Profile> profile;
    std::vector<ClockOffset> offsets;  // of the nodes, at the start; in PE 0
};
HEDDLE_PE_LOCAL base::PePointer<Observing> here;

size_t profile_bytes() {
    return base::settings.is_profiled() ? os::round_up(sizeof(JobProfile), 64) : 0;
}

size_t all_trace_bytes() {
    return base::settings.is_traced() ? trace_bytes(base::settings.trace_size, bootstrap::job.n_pes) : 0;
}

// Where the profile lies, and the trace behind it.
char* own_area() {
    return reinterpret_cast<char*>(memory::symmetric->heap.base) + kScratchBytes;
}
char* own_trace() {
    return own_area() + profile_bytes();
}

bool is_traced(int pe) {
    return base::settings.is_traced() && pe < kTracedPes;
}

void report_profile(const char* function) {
    JobProfile& mine = *reinterpret_cast<JobProfile*>(own_area());
    here->profile->write(&mine);
    gather(function, &mine);
    if (bootstrap::job.pe == 0)
        print_and_write(mine);
}

// Of two nodes, at most.
uint64_t error_of_clocks(const std::vector<ClockOffset>& at_end) {
    uint64_t most = 0, second = 0;
    for (size_t node = 0; node < at_end.size(); ++node) {
        const uint64_t error = std::max(here->offsets[node].error_ns, at_end[node].error_ns);
        second = std::max(second, std::min(most, error));
        most = std::max(most, error);
    }
    return most + second;
}

// The traces of all PEs, in PE 0.
JobTrace take_traces(const char* function, const std::vector<ClockOffset>& at_end) {
    JobTrace job;
    TraceHead& mine = here->trace->head();
    const size_t most = (all_trace_bytes() - Trace::kHeadBytes) / TraceChunk::kBytes;
    const uint64_t origin_ns = mine.begin.ns;
    for (int pe = 0; pe < bootstrap::job.n_pes && is_traced(pe); ++pe) {
        const auto head = std::make_unique<TraceHead>();
        operations::slow_get(function, SHMEM_CTX_DEFAULT, head.get(), &mine, 1, sizeof *head, pe);
        const size_t n = std::min<size_t>(head->chunks.load(std::memory_order_relaxed), most);
        const std::unique_ptr<TraceChunk[]> chunks(new TraceChunk[n]);
        for (size_t i = 0; i < n; ++i) {
            char* const there = own_trace() + Trace::kHeadBytes + i * TraceChunk::kBytes;
            uint32_t events = 0;  // that are there ahead of the rest: the library's threads go on
            operations::slow_get(function, SHMEM_CTX_DEFAULT, &events, there, 1, sizeof events, pe);
            operations::slow_get(function, SHMEM_CTX_DEFAULT, &chunks[i], there, 1, sizeof(TraceChunk), pe);
            chunks[i].n.store(events, std::memory_order_relaxed);
        }
        const auto node = static_cast<size_t>(bootstrap::job.node_of(pe));
        job.pes.push_back(read_trace(pe, *head, chunks.get(), n, here->offsets[node], at_end[node], origin_ns));
        job.pes.back().node = static_cast<int>(node);
    }
    job.clock_error_ns = error_of_clocks(at_end);
    return job;
}

void write(const JobTrace& trace) {
    const NumberFormat as_in_c;
    const char* const name = base::settings.trace;
    if (!write_file("HEDDLE_TRACE", name, [&](FILE* file) { return write_trace(trace, find_arrows(trace), file); }))
        return;
    fprintf(stderr, "heddle trace of %s: %zu of %d PEs, %zu events: %s\n", program_invocation_short_name,
            trace.pes.size(), bootstrap::job.n_pes, trace.events(), name);
    if (bootstrap::job.n_nodes > 1)
        fprintf(stderr, "  clocks of the nodes agree within %.1f us\n",
                static_cast<double>(trace.clock_error_ns) * 1e-3);
    if (trace.lost() != 0)
        fprintf(stderr,
                "  %llu further events were lost: right would be a larger HEDDLE_TRACE_SIZE, or to trace less "
                "(shmem_pcontrol)\n",
                static_cast<unsigned long long>(trace.lost()));
}

void report_trace(const char* function) {
    std::vector<ClockOffset> at_end;
    if (here->trace) {
        TraceHead& head = here->trace->head();
        head.end = os::both_clocks();
        at_end = measure_clocks(function, head, true);
    }
    bootstrap::barrier_of_world(function);
    if (bootstrap::job.pe == 0)
        write(take_traces(function, at_end));
    bootstrap::barrier_of_world(function);
}

}  // namespace

size_t heap_bytes() {
    return base::settings.is_timed() ? kScratchBytes + profile_bytes() + all_trace_bytes() : 0;
}

void start() {
    if (!base::settings.is_timed())
        return;
    if (operations::observer)
        base::fatal(base::settings.is_profiled() ? "HEDDLE_PROFILE" : "HEDDLE_TRACE",
                    "HEDDLE_CHAOS or HEDDLE_RACES is set, too: right would be one of them in a run");
    memory::hand_out_heap(bootstrap::job.slot, heap_bytes());
    here = new Observing;
    if (is_traced(bootstrap::job.pe))
        here->trace = std::make_unique<Trace>(own_trace(), all_trace_bytes());
    here->profile = std::make_unique<Profile>(here->trace.get());
    progress::engine->set_observed(true);
    operations::observer = here->profile.get();
}

void begin_trace(const char* function) {
    if (!here || !base::settings.is_traced())
        return;
    if (bootstrap::job.n_nodes > 1)
        bootstrap::barrier_of_world(function);  // each PE has made its trace, which others are about to write to
    if (!here->trace)
        return;
    here->offsets = measure_clocks(function, here->trace->head(), false);
    base::slow_event_sink.store(here->trace.get(), std::memory_order_release);  // pairs with base::find_slow_event_sink
}

void control(int level) {
    if (Observing* const mine = here; mine && mine->trace)
        mine->trace->turn(level != 0);
}

// A thread that still runs, against the rules, may be inside: its counts stay.
void stop() {
    if (!here)
        return;
    operations::observer = nullptr;
    base::slow_event_sink.store(nullptr, std::memory_order_relaxed);
    here->profile->end();
    progress::engine->set_observed(false);
}

void forget() {
    base::slow_event_sink.store(nullptr, std::memory_order_relaxed);
    here = nullptr;
}

void report(const char* function) {
    if (!here)
        return;
    if (base::settings.is_profiled())
        report_profile(function);
    if (base::settings.is_traced())
        report_trace(function);
    // Threads may still know them, and end behind the program's exit handlers.
    static auto& ended = *new std::vector<std::unique_ptr<Observing>>;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of PEs as threads
    const os::Locked locked(lock);
    ended.emplace_back(here);
    here = nullptr;
}

}  // namespace heddle::profiling
