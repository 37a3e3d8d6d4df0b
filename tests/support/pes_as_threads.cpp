#include "support/pes_as_threads.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "base/lifecycle.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/slow_event.h"
#include "bootstrap/bootstrap.h"
#include "collective/node/reduce.h"
#include "collective/plan.h"
#include "collective/posted_group.h"
#include "context/context.h"
#include "context/request.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "operations/observer.h"
#include "operations/out_of_line.h"
#include "os/topology.h"
#include "progress/engine.h"
#include "progress/wait_policy.h"
#include "runtime/pe.h"
#include "sync/wakeup.h"
#include "team/segment_table.h"
#include "team/team.h"

namespace heddle::test {

namespace {

using bootstrap::job;
using bootstrap::JobPage;

// Everything that is HEDDLE_PE_LOCAL and that an operation may read: a copy of the calling thread's. A new one belongs
// here too.
struct PeState {
    decltype(heddle_abi_1) abi = heddle_abi_1;
    int message_pe = base::message_pe;
    void (*on_fatal)() = base::on_fatal;
    bool debug_enabled = base::debug_enabled;
    base::Counters* counters = base::counters;
    base::Lifecycle lifecycle = base::lifecycle;
    base::SlowEventSink* slow_event_sink = base::slow_event_sink.load(std::memory_order_relaxed);
    base::Settings settings = base::settings;
    bootstrap::Job job = bootstrap::job;
    progress::WaitPolicy* wait_policy = progress::wait_policy;
    memory::NodeMemory node_memory = memory::node_memory;
    memory::Symmetric* symmetric = memory::symmetric;
    progress::Engine* engine = progress::engine;
    context::Contexts* contexts = context::contexts;
    operations::Observer* observer = operations::observer;
    const operations::OutOfLineTable* out_of_line = operations::out_of_line;
    context::RequestPool* request_pool = context::request_pool;
    collective::PlanPool* plan_pool = collective::plan_pool;
    collective::PostedGroups* posted_groups = collective::posted_groups;
    team::TeamSegments team_segments = team::team_segments;
    team::Teams* teams = team::teams;
    collective::Machine machine = collective::machine;
    uint8_t watched = collective::watched;
    sync::PeWakeups wakeups = sync::wakeups;
    runtime::Pe pe = runtime::this_pe;

    // Makes it the calling thread's.
    void adopt() const {
        heddle_abi_1 = abi;
        base::message_pe = message_pe;
        base::on_fatal = on_fatal;
        base::debug_enabled = debug_enabled;
        base::counters = counters;
        base::lifecycle = lifecycle;
        base::slow_event_sink.store(slow_event_sink, std::memory_order_relaxed);
        base::settings = settings;
        bootstrap::job = job;
        progress::wait_policy = wait_policy;
        memory::node_memory = node_memory;
        memory::symmetric = symmetric;
        progress::engine = engine;
        context::contexts = contexts;
        operations::observer = observer;
        operations::out_of_line = out_of_line;
        context::request_pool = request_pool;
        collective::plan_pool = plan_pool;
        collective::posted_groups = posted_groups;
        team::team_segments = team_segments;
        team::teams = teams;
        collective::machine = machine;
        collective::watched = watched;
        sync::wakeups = wakeups;
        runtime::this_pe = pe;
    }
};

// The engine's thread is one of its PE's.
void* keep_pe() {
    return new PeState;
}
void become_pe(void* kept) {
    const auto* state = static_cast<PeState*>(kept);
    state->adopt();
    delete state;
}

}  // namespace

void run_pes(int n_pes, const std::function<void(int pe)>& body, int cores) {
    const int fd = os::create_memory("heddle-test", bootstrap::job_page_bytes(n_pes));
    auto* page = fd >= 0 ? static_cast<JobPage*>(os::map_shared(fd, 0, bootstrap::job_page_bytes(n_pes))) : nullptr;
    if (!page) {
        fprintf(stderr, "run_pes: no memory\n");
        abort();
    }
    page->magic = bootstrap::kJobPageMagic;
    page->n_pes = static_cast<uint32_t>(n_pes);
    page->cores = static_cast<uint32_t>(cores > 0 ? cores : os::usable_cores());
    progress::pe_of_thread = keep_pe;
    progress::become_thread_of = become_pe;
    std::vector<std::thread> pes;
    for (int pe = 0; pe < n_pes; ++pe) {
        pes.emplace_back([=, &body] {
            job.pe = job.slot = pe;
            job.n_pes = job.n_slots = n_pes;
            job.cores = page->cores;
            job.memory_fd = fd;
            job.page = page;
            job.as_thread = true;
            body(pe);
        });
    }
    for (std::thread& pe : pes) pe.join();
    // fd stays open: map_node knows a job's memory by its descriptor, and the next job must not get the same number.
}

std::thread thread_of_pe(std::function<void()> body) {
    return std::thread([state = PeState(), body = std::move(body)] {
        state.adopt();
        body();
    });
}

}  // namespace heddle::test

// What a PE makes at init lives as long as its process; here the process lives longer.
extern "C" const char* __lsan_default_suppressions() {
    return "leak:heddle::runtime::\nleak:heddle::team::\nleak:heddle::progress::";
}
