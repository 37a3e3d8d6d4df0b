// Init and finalize. Their order of steps is the subject of this file: each step uses only what earlier steps have
// built.

#define HEDDLE_ABI_WRITER  // only this file writes heddle_abi_1
#include "base/counters.h"
#include "base/error.h"
#include "base/lifecycle.h"
#include "base/log.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/rendezvous/client.h"
#include "checking/checking.h"
#include "checking/status/published_waits.h"
#include "collective/node/reduce.h"
#include "collective/plan.h"
#include "collective/posted_group.h"
#include "collective/sync.h"
#include "context/context.h"
#include "context/request.h"
#include "fabric/network.h"
#include "memory/fork.h"
#include "memory/node_memory.h"
#include "memory/peers.h"
#include "memory/static_data.h"
#include "memory/symmetric.h"
#include "operations/check.h"
#include "operations/order.h"
#include "operations/out_of_line.h"
#include "os/locked.h"
#include "os/memfd.h"
#include "os/process.h"
#include "os/topology.h"
#include "profiling/profiling.h"
#include "progress/engine.h"
#include "progress/wait_policy.h"
#include "runtime/build_memory.h"
#include "runtime/crash.h"
#include "runtime/exit.h"
#include "runtime/leaving.h"
#include "runtime/network.h"
#include "runtime/pe.h"
#include "runtime/report.h"
#include "runtime/runtime.h"
#include "team/team.h"

#include <heddle/constants.h>
#include <pthread.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// The table of the default context until the library's constructor has run: entries without a PE for the numbers of a
// node's PEs. Never written, so it takes no memory.
constexpr int kEarlyPes = 4096;
const heddle_peer kEarly[2 * kEarlyPes] = {};

}  // namespace

// The words that inlined code reads. Before init they, and copies that compilers keep across init, match no PE and no
// offset below a region's size (docs/decisions/0006).
HEDDLE_PE_LOCAL struct heddle_abi_1 heddle_abi_1 = {
    heddle::memory::kNoBase, heddle::memory::kNoBase, {kEarly + kEarlyPes}};

namespace {

// Runs before all other constructors of this library and of its users, and so before any copy of the words.
__attribute__((constructor(101))) void answer_for_every_pe() {
    if (const heddle_peer* nobody = heddle::memory::reserve_nobody())
        heddle_abi_1.default_ctx.peers = nobody;
}

}  // namespace

namespace heddle::runtime {

using base::Lifecycle;
using bootstrap::job;

namespace {

constexpr size_t kErrorBytes = 1024;

// Two threads of a PE may call init at once: one does the work, the other one is counted.
HEDDLE_PE_LOCAL pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

// Opens or closes the hot path's entries of this node's PEs. Other entries stay untouched zeroes, which take no memory.
void publish(bool open) {
    if (!memory::symmetric)  // another thread forks while init runs; pairs with runtime::build_memory
        return;
    const memory::Symmetric& symmetric = *memory::symmetric;
    for (int pe = 0; pe < job.n_pes; ++pe)
        if (job.node_of(pe) == job.node)
            symmetric.published[pe] = open ? symmetric.peers[pe] : heddle_peer{};
}

// Makes every operation take the slow path, also in code that keeps heddle_abi_1 in registers.
void close_hot_path() {
    context::stream_sets_epoch().fetch_add(1, std::memory_order_relaxed);
    publish(false);
    team::close_peer_tables();
    operations::stop_out_of_line();
}

// Runs in the child of a fork, which is no PE: nothing may run in it, and it has none of its parent's threads.
void become_forked_child() {
    close_hot_path();
    base::lifecycle = Lifecycle::kForkedChild;
    base::on_fatal = nullptr;
    base::counters = &base::counters_of_nobody;
    this_pe.calls = {};
    checking::forget();
    profiling::forget();
    bootstrap::begin_child();
}

void report_fatal() {
    bootstrap::request_exit(bootstrap::ExitRequest::kFatal, 1);
    bootstrap::end_launched_job(1);
}

// What the run's tools take of the heap, beside what the program may have.
size_t own_heap_bytes() {
    return profiling::heap_bytes() + (base::settings.stats ? kCountersBytes : 0);
}

bool join(const char*, char* error) {
    if (!base::read_settings(&base::settings, error, kErrorBytes)) {
        bootstrap::let_first_pe_tell();
        return false;
    }
    base::on_fatal = bootstrap::end_unjoined_job;
    if (!bootstrap::join(error, kErrorBytes))
        return false;
    base::message_pe = job.pe;
    base::settings.symmetric_size += own_heap_bytes();
    base::debug_enabled = base::settings.debug;
    base::counters = &job.own_record().counters;
    base::on_fatal = report_fatal;
    return operations::start_out_of_line(error, kErrorBytes);
}

bool poll_all() {
    const bool moved = fabric::network && fabric::network->poll();
    return progress::engine->drive() || moved;
}

void count_other_threads() {
    progress::engine->set_other_threads(job.launcher_threads + this_pe.network_threads + checking::threads());
}

bool start_waiting(const char*, char* error) {
    if (!progress::wait_policy)
        progress::wait_policy = new progress::WaitPolicy;  // stays valid as long as the process
    progress::WaitPolicy& policy = *progress::wait_policy;
    policy.spin_ns = base::settings.spin_us * 1000;
    policy.yield_ns = base::settings.yield_us * 1000;
    policy.monitor = os::find_monitor(base::settings.monitor);
    policy.node_threads = &job.page->threads;
    policy.node_sleepers = &job.page->sleepers;
    policy.node_cores = job.cores;
    policy.own_cores = static_cast<uint32_t>(os::usable_cores());
    policy.looked = looked;
    policy.poll = poll_all;
    progress::count_this_thread();
    if (!progress::engine)
        progress::engine =
            new progress::Engine(policy, base::settings.async_copy, job.page->cpus, bootstrap::kCpuWords);
    if (!checking::start_status(policy, error, kErrorBytes))
        return false;
    count_other_threads();
    return true;
}

// Opens the hot path, unless the run is a checked one.
void open_hot_path() {
    const memory::Symmetric& symmetric = *memory::symmetric;
    heddle_abi_1.heap_base = symmetric.heap.base;
    heddle_abi_1.data_base = symmetric.data.base;
    heddle_abi_1.default_ctx.peers = symmetric.published;
    context::start_contexts(job.n_pes, symmetric.nobody);
    context::start_requests();
    collective::start_plans();
    collective::start_posted_groups();
    if (!base::settings.observed)
        publish(true);
    collective::watch(progress::wait_policy->multiple_asked);
}

// Makes stdout line-buffered, so that output appears as it is printed, not when a pipe's buffer is full.
void prepare_output() {
    if (job.has_launcher)
        setvbuf(stdout, nullptr, _IOLBF, 0);
}

bool map(const char* function, char* error) {
    job.own_record().state.store(static_cast<uint32_t>(bootstrap::PeState::kRunning), std::memory_order_relaxed);
    prepare_output();
    prepare_exit();
    if (!memory::symmetric) {
        if (!build_memory(function, error, kErrorBytes))
            return false;
        memory::symmetric->own_bytes = own_heap_bytes();
    } else if (memory::symmetric->own_bytes != own_heap_bytes()) {
        snprintf(
            error, kErrorBytes,
            "HEDDLE_PROFILE, HEDDLE_TRACE or HEDDLE_STATS has changed since the first shmem_init: right would be the "
            "same in each");
        return false;
    }
    report_crashes();
    return true;
}

bool make_heap(const char*, char*) {
    memory::symmetric->allocator = new memory::Allocator(memory::node_memory.layout.heap_bytes);
    if (memory::symmetric->own_bytes != 0)
        memory::symmetric->allocator->allocate(memory::symmetric->own_bytes);  // the first block, at offset 0
    memory::prepare_heap(job.slot, base::settings.huge_pages, base::settings.first_touch);
    return true;
}

bool start_teams(const char*, char*) {
    char* const team_segments =
        memory::node_memory.shared() + team::team_segments_bytes(job.n_slots) * static_cast<size_t>(job.page_node);
    team::start_team_segments(team_segments, job.slot, job.n_slots, static_cast<uint32_t>(job.n_slots) > job.cores,
                              job.n_nodes > 1, job.slots);
    progress::engine->set_wakeup(sync::wakeups.own->event_count);
    team::start_teams(job.pe, job.n_pes, job.nodes);
    collective::machine = {&collective::kernels_for(base::settings.vector), os::last_level_cache_bytes()};
    return true;
}

bool connect(const char* function, char* error) {
    const uint32_t threads = os::count_threads();
    if (job.n_nodes > 1 && !open_network(error, kErrorBytes))
        return false;
    team::allow_control_messages();
    bootstrap::barrier_of_world(function);  // a peer's static data must have moved before its memory is reached
    if (job.n_nodes > 1 && !serve_network(error, kErrorBytes))
        return false;
    if (this_pe.network_threads == 0) {
        if (job.n_nodes > 1 && base::settings.races && !agree_on_races(error, kErrorBytes))
            return false;
        if (job.n_nodes > 1 && !agree_on_tools(error, kErrorBytes))
            return false;
        this_pe.network_threads = os::count_threads() - threads;
        count_other_threads();
    }
    return true;
}

bool run(const char* function, char* error) {
    if (const char* reason = apply_progress(base::settings.progress)) {
        snprintf(error, kErrorBytes, "HEDDLE_PROGRESS=%s cannot be: %s; right would be auto", getenv("HEDDLE_PROGRESS"),
                 reason);  // the reason is about the policy asked for; auto is always possible
        return false;
    }
    checking::start(job.pe);
    profiling::start();
    count_other_threads();
    open_hot_path();
    base::lifecycle = Lifecycle::kRunning;
    profiling::begin_trace(function);
    report_start();
    return true;
}

// The order of assembly: each step makes the parts of its stage (runtime/pe.h) from those of the stages above it. False
// with the reason in error.
struct Step {
    Pe::Stage stage;
    bool (*assemble)(const char* function, char* error);
};
constexpr Step kAssembly[] = {
    {Pe::Stage::kJoined, join},       {Pe::Stage::kWaits, start_waiting},  {Pe::Stage::kMapped, map},
    {Pe::Stage::kHasHeap, make_heap}, {Pe::Stage::kHasTeams, start_teams}, {Pe::Stage::kConnected, connect},
    {Pe::Stage::kRunning, run},
};

// After a failure init may be called again, and begins anew; what lives as long as the process is there already.
bool start(const char* function, char* error) {
    memory::run_in_children(become_forked_child);
    this_pe.stage = Pe::Stage::kNothing;
    for (const Step& step : kAssembly) {
        if (!step.assemble(function, error))
            return false;
        this_pe.reach(step.stage);
    }
    return true;
}

// True for the one PE of the job that is to report PEs that did not call shmem_finalize.
bool stop(const base::Call& call, Leave how) {
    collective::require_all_posted(call, nullptr);
    profiling::stop();
    checking::stop(call.function);
    progress::engine->stop(call.function);
    const bool tells = leave(call, how);
    report_counters(call.function);
    profiling::report(call.function);
    checking::stop_serving();
    if (fabric::network)
        operations::settle_all(call.function);
    close_hot_path();
    team::stop_teams();
    base::lifecycle = Lifecycle::kFinalized;
    this_pe.leave(Pe::Stage::kRunning);
    if (fabric::network) {
        serve_until_parted();
        bootstrap::barrier_of_world(call.function);  // until the last acknowledgements have arrived
        part_from_network();
        bootstrap::barrier_of_world(call.function);  // a PE that ends closes connections that another may be making
    }
    this_pe.leave(Pe::Stage::kConnected);
    this_pe.leave(Pe::Stage::kHasTeams);
    // No PE accesses the heap of another any more. Static data stays shared, because the program goes on using it.
    // Memory that the network has pinned stays, because peers have its keys.
    if (!fabric::network || !fabric::network->is_native())
        memory::discard_heap(job.slot, base::settings.first_touch);
    memory::leave_node();
    delete memory::symmetric->allocator;
    memory::symmetric->allocator = nullptr;
    this_pe.leave(Pe::Stage::kHasHeap);
    // Release: pairs with bootstrap::state_of.
    job.own_record().state.store(static_cast<uint32_t>(bootstrap::PeState::kFinalized), std::memory_order_release);
    return tells;
}

// Called before the lock is taken, which a thread of the parent may have held.
void refuse_children(const char* function) {
    if (base::lifecycle == Lifecycle::kForkedChild)
        operations::require_running(function);
}

// False with the reason in error. Repeatable: later calls are only counted, those of start_pes not even that.
bool init(const char* function, char* error) {
    const bool is_running = this_pe.calls.references() > 0;
    const bool is_start_pes = strcmp(function, "start_pes") == 0;
    if (!is_running) {
        if (!start(function, error))
            return false;
        this_pe.calls = {};
        this_pe.calls.start_pes = is_start_pes;
    }
    if (!is_start_pes && this_pe.calls.inits++ == 0)
        this_pe.calls.init = function;
    return true;
}

// The arguments of shmemx_init_uniqueid.
struct UniqueIdRequest {
    bootstrap::rendezvous::IdBytes bytes;
    int my_pe;
    int n_pes;
};

const char* times(int count, char (&text)[16]) {
    snprintf(text, sizeof text, "%d times", count);
    return count == 0 ? "never" : count == 1 ? "once" : text;
}

}  // namespace

void init_or_die(const char* function) {
    char error[kErrorBytes] = "";
    refuse_children(function);
    const os::Locked lock(init_lock);
    if (!init(function, error))
        base::fatal(function, "%s", error);
}

namespace {

// id: null, or how to find the job.
int init_with_level(const char* function, const UniqueIdRequest* id, int requested, int* provided) {
    if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE) {
        base::complain(function,
                       "requested %d is no thread level: right would be SHMEM_THREAD_SINGLE to MULTIPLE (%d to %d)",
                       requested, SHMEM_THREAD_SINGLE, SHMEM_THREAD_MULTIPLE);
        return 1;
    }
    char error[kErrorBytes] = "";
    refuse_children(function);
    const os::Locked lock(init_lock);
    if ((id && !bootstrap::rendezvous::ask_to_join(id->bytes, id->my_pe, id->n_pes, error, kErrorBytes)) ||
        !init(function, error)) {
        base::complain(function, "%s", error);
        bootstrap::rendezvous::drop_request();
        return 1;
    }
    progress::wait_policy->multiple_asked |= requested == SHMEM_THREAD_MULTIPLE;
    spread_over_channels();
    collective::watch(progress::wait_policy->multiple_asked);
    if (provided)
        *provided = SHMEM_THREAD_MULTIPLE;
    return 0;
}

}  // namespace

int init_thread(const char* function, int requested, int* provided) {
    return init_with_level(function, nullptr, requested, provided);
}

int get_unique_id(const char* function, shmemx_uniqueid_t* id) {
    char error[kErrorBytes] = "";
    bootstrap::rendezvous::IdBytes bytes;
    static_assert(sizeof bytes == sizeof *id);
    refuse_children(function);
    if (!id) {
        base::complain(function, "id is NULL");
        return 1;
    }
    if (!bootstrap::rendezvous::make_id(&bytes, error, kErrorBytes)) {
        base::complain(function, "%s", error);
        return 1;
    }
    memcpy(id, bytes.data(), sizeof *id);
    return 0;
}

int init_unique_id(const char* function, const shmemx_uniqueid_t* id, int my_pe, int n_pes, int requested,
                   int* provided) {
    if (!id) {
        base::complain(function, "id is NULL");
        return 1;
    }
    UniqueIdRequest asked = {{}, my_pe, n_pes};
    memcpy(asked.bytes.data(), id, sizeof *id);
    return init_with_level(function, &asked, requested, provided);
}

void finalize(const base::Call& call) {
    if (base::lifecycle == Lifecycle::kExiting)
        return;  // called in an exit handler, after shmem_global_exit: the job is over
    if (!operations::may_give_back(call.function))
        return;
    const os::Locked lock(init_lock);
    operations::require_running(call.function);  // another thread may have finalized meanwhile
    ++this_pe.calls.finalizes;
    if (this_pe.calls.references() > 0)
        collective::barrier_all(call);
    else
        stop(call, Leave::kFinalize);
}

void finalize_at_exit() {
    // A thread of this PE that is in init or finalize stays there: the program ends.
    if (base::lifecycle != Lifecycle::kRunning || bootstrap::is_ending())
        return;
    flush_output();
    const base::Call call = {"shmem_finalize", nullptr};  // the name under which messages show the call
    if (!stop(call, this_pe.calls.inits > this_pe.calls.finalizes ? Leave::kUntold : Leave::kExit))
        return;
    char inits[16], finalizes[16];
    base::report("exit",
                 "the program has called %s %s and shmem_finalize %s: it was finalized at its end, which is "
                 "deprecated; right would be a shmem_finalize for each %s",
                 this_pe.calls.init, times(this_pe.calls.inits, inits), times(this_pe.calls.finalizes, finalizes),
                 this_pe.calls.init);
}

}  // namespace heddle::runtime
