#include "profiling/profile.h"

#include "base/place.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "context/context.h"
#include "memory/symmetric.h"
#include "operations/caller.h"
#include "operations/remote_records.h"
#include "operations/rma.h"
#include "os/locked.h"
#include "os/thread_exit.h"
#include "os/ticks.h"
#include "profiling/counting.h"
#include "profiling/profiling.h"
#include "team/team.h"

#include <heddle/constants.h>
#include <heddle/hot_path.h>
#include <algorithm>
#include <bit>
#include <cstdio>

namespace heddle::profiling {

using operations::Operation;

namespace {

Path path_of(const Operation& operation, uint64_t bytes) {
    if (!operations::is_remote(operation.world_pe))
        return Path::kNode;
    return bytes < operations::kRendezvousBytes ? Path::kRecord : Path::kLarge;
}

Kind kind_of_operation(Operation::Kind kind) {
    switch (kind) {
        case Operation::Kind::kPut:
            return Kind::kPut;
        case Operation::Kind::kGet:
            return Kind::kGet;
        case Operation::Kind::kAtomic:
            return Kind::kAtomic;
        case Operation::Kind::kPutSignal:
            return Kind::kPutSignal;
    }
    return Kind::kPut;
}

// The signal of a put with one, else where the operation stores; 0: nowhere, or in several places.
uint64_t trace_word(const Operation& operation) {
    if (operation.kind == Operation::Kind::kGet || operation.nblocks != 1)
        return 0;
    return word_of(operation.kind == Operation::Kind::kPutSignal ? operation.sig_addr : operation.dest);
}

std::atomic<uint64_t> n_profiles{0};

struct Known {
    uint64_t profile = 0;
    void* thread = nullptr;
};
constinit thread_local Known known;

}  // namespace

Profile::Profile(Trace* trace)
    : number_(n_profiles.fetch_add(1, std::memory_order_relaxed) + 1),
      ticks_per_ms_(os::measure_ticks_per_ms()),
      begin_ticks_(os::ticks_now()),
      group_shift_(group_shift(bootstrap::job.n_pes)),
      trace_(trace) {}

Profile::~Profile() {
    pthread_mutex_destroy(&lock_);
}

// The least time of a put to this PE's own memory, on the way that the program's take.
uint64_t Profile::measure_own_ticks() {
    const operations::Unobserved mark;
    uint64_t word = 0, least = UINT64_MAX;
    for (int i = 0; i < 200; ++i) {
        const uint64_t before = os::ticks_now();
        operations::slow_put("HEDDLE_PROFILE", SHMEM_CTX_DEFAULT, reinterpret_cast<void*>(memory::symmetric->heap.base),
                             &word, 1, sizeof word, bootstrap::job.pe);
        least = std::min(least, os::ticks_now() - before);
    }
    return least;
}

Profile::Thread& Profile::this_thread() {
    if (known.profile == number_) [[likely]]
        return *static_cast<Thread*>(known.thread);
    const os::Locked lock(lock_);
    // Acquire: pairs with Profile::leave_thread.
    const auto left = std::find_if(threads_.begin(), threads_.end(), [](const std::unique_ptr<Thread>& one) {
        return one->has_ended.exchange(false, std::memory_order_acquire);
    });
    Thread* taken = left == threads_.end() ? nullptr : left->get();
    if (!taken) {
        threads_.push_back(std::make_unique<Thread>());
        taken = threads_.back().get();
        taken->number = static_cast<int>(std::min<size_t>(threads_.size() - 1, 63));
        taken->own_ticks = measure_own_ticks();
    }
    Thread& mine = *taken;
    known = {number_, &mine};
    operations::observed_runs = &mine.runs;
    if (trace_)
        trace_->join_thread();
    os::ThreadExit<leave_thread>::ask();
    return mine;
}

void Profile::leave_thread() {
    if (known.profile == 0)
        return;
    Thread& mine = *static_cast<Thread*>(known.thread);
    operations::observed_runs = nullptr;
    known = {};
    end_runs(mine);
    mine.open = nullptr;
    mine.depth = mine.operations = mine.n_calls = 0;
    mine.last_call = nullptr;
    mine.since_quiet = mine.since_fence = mine.since_request = 0;
    mine.has_ended.store(true, std::memory_order_release);  // pairs with Profile::this_thread
}

SiteName Profile::describe(const base::Call& call, shmem_ctx_t ctx, Kind kind, uint32_t* number) {
    SiteName name;
    snprintf(name.function.data(), name.function.size(), "%s", call.function);
    base::Module module;
    const base::Place caller = {reinterpret_cast<uintptr_t>(call.caller), true};
    if (caller.address != 0 && base::find_module(caller.instruction(), &module)) {
        snprintf(name.module.data(), name.module.size(), "%s", module.name());
        name.linked = module.linked(caller.instruction());
    }
    name.kind = kind;
    name.is_private = ctx && (context::context_of(ctx).options & SHMEM_CTX_PRIVATE) != 0;
    const os::Locked lock(lock_);
    name.context = number_of(ctx);
    if (trace_)
        *number = trace_->number_of(name);
    return name;
}

Profile::Place& Profile::find(Thread& here, const base::Call& call, shmem_ctx_t ctx, Kind kind) {
    const auto is_it = [&](const Place& place) {
        return place.call.caller == call.caller && place.ctx == ctx && place.name.kind == kind &&
               place.call.function == call.function;
    };
    if (here.last && is_it(*here.last))
        return *here.last;
    const uint64_t key = (reinterpret_cast<uintptr_t>(call.caller) ^ reinterpret_cast<uintptr_t>(ctx) << 1 ^
                          reinterpret_cast<uintptr_t>(call.function) << 7 ^ static_cast<uint64_t>(kind) << 3) *
                         0x9e3779b97f4a7c15;
    const uint32_t n = here.n_places.load(std::memory_order_relaxed);
    for (size_t at = key >> 52;; at = (at + 1) % Thread::kIndex) {
        if (here.index[at] == 0) {
            if (n == Thread::kPlaces)
                return here.places[n];
            Place& made = here.places[n];
            made.call = call;
            made.ctx = ctx;
            made.name = describe(call, ctx, kind, &made.number);
            here.index[at] = static_cast<uint16_t>(n + 1);
            here.n_places.store(n + 1, std::memory_order_release);  // pairs with Profile::write
            here.last = &made;
            return made;
        }
        Place& place = here.places[here.index[at] - 1u];
        if (is_it(place)) {
            here.last = &place;
            return place;
        }
    }
}

void Profile::open(Thread& here, Place& place, bool is_sample) {
    here.open = &place;
    here.is_sample = is_sample;
    here.depth = 0;
    here.open_ticks = os::ticks_now();
}

void Profile::close(Thread& here) {
    Place& place = *here.open;
    here.open = nullptr;
    uint64_t ticks = os::ticks_now() - here.open_ticks;
    ticks -= std::min(ticks, place.name.kind <= Kind::kPutSignal ? here.own_ticks : 0);
    bump(here.is_sample ? place.counts.timed_calls : place.counts.exact_calls);
    bump(here.is_sample ? place.counts.time : place.counts.exact_time, ticks);
    bump(here.library_ticks, ticks);
    raise(place.counts.longest, ticks);
}

// event: begins by itself, or now.
void Profile::begin_call(Thread& here, const Place& place, Kind kind, const TraceEvent& event) {
    here.last_call = nullptr;
    if (here.n_calls < Thread::kCalls) {
        TraceEvent& call = here.calls[static_cast<size_t>(here.n_calls)] = event;
        call.what = static_cast<uint32_t>(kind);
        call.place = place.number;
        call.number = static_cast<uint32_t>(place.counts.calls);
        if (call.begin == 0)
            call.begin = os::ticks_now();
    }
    ++here.n_calls;
}

void Profile::end_call(Thread& here) {
    if (here.n_calls == 0)
        return;
    --here.n_calls;
    if (here.n_calls >= Thread::kCalls)
        return;
    TraceEvent& call = here.calls[static_cast<size_t>(here.n_calls)];
    call.end = os::ticks_now();
    here.last_call = trace_->add(call);
}

bool Profile::issue(const Operation& operation) {
    Thread& here = this_thread();
    if (here.operations++ != 0) {
        operations::called_from = nullptr;
        return false;
    }
    const void* const from = operations::called_from;
    const base::Call call = operations::at_caller(operation.call);
    operations::ObservedRun& run = here.runs.of(call.caller);
    end_run(here, run);
    Place& place = find(here, call, operation.ctx, kind_of_operation(operation.kind));
    Counts& counts = place.counts;
    const uint64_t bytes = operation.block_bytes() * operation.nblocks;
    const int group = operation.world_pe >> group_shift_;
    bump(counts.calls);
    bump(counts.bytes, bytes);
    bump(counts.sizes[size_class(bytes)]);
    bump(counts.paths[static_cast<size_t>(path_of(operation, bytes))]);
    set_bit(counts.partners, group);
    set_bit(counts.threads, here.number);
    const bool is_get = operation.kind == Operation::Kind::kGet;
    const auto* const there = static_cast<const char*>(is_get ? operation.source : operation.dest);
    if (bytes != 0 && there == place.last_end && operation.pe == place.last_pe)
        bump(counts.following);
    place.last_end = there + bytes;
    place.last_pe = operation.pe;
    bump(here.pairs[static_cast<size_t>(group)].operations);
    bump(here.pairs[static_cast<size_t>(group)].bytes, bytes);
    const Timing timing = here.open ? Timing::kNone : timing_of(counts, bytes);
    if (here.since_quiet++ == 0)
        here.outside_ticks = os::ticks_now() - here.library_ticks;
    ++here.since_fence;
    here.since_request += operation.req != nullptr;
    const bool begins_run = from == call.caller && bytes < kLongBytes && may_be_run(operation);
    if (begins_run)
        begin_run(here, run, place, operation, bytes);
    if (trace_)
        begin_call(here, place, kind_of_operation(operation.kind),
                   {.word = trace_word(operation),
                    .bytes = operation.kind == Operation::Kind::kAtomic ? operation.element_bytes : bytes,
                    .pe = operation.world_pe,
                    .begins_run = begins_run && run.left != 0});
    if (timing != Timing::kNone)
        open(here, place, timing == Timing::kSample);
    return false;
}

void Profile::end_operation() {
    Thread& here = this_thread();
    if (--here.operations != 0)
        return;
    if (here.open && here.open->name.kind <= Kind::kPutSignal)
        close(here);
    if (trace_)
        end_call(here);
}

Kind Profile::kind_of(Wait what) {
    switch (what) {
        case Wait::kQuiet:
            return Kind::kQuiet;
        case Wait::kFence:
            return Kind::kFence;
        case Wait::kValue:
            return Kind::kWait;
        case Wait::kRequest:
            return Kind::kRequest;
        case Wait::kLock:
            return Kind::kLock;
        case Wait::kCollective:
            return Kind::kCollective;
    }
    return Kind::kWait;
}

void Profile::begin_wait(Wait what, const base::Call& call, shmem_ctx_t ctx) {
    const uint64_t begin_ticks = trace_ ? os::ticks_now() : 0;  // soon behind the look that has made it wait
    Thread& here = this_thread();
    end_runs(here);
    const base::Call at = operations::at_caller_of_wait(call);
    Place& place = find(here, at, ctx, kind_of(what));
    Counts& counts = place.counts;
    bump(counts.calls);
    set_bit(counts.threads, here.number);
    uint64_t* const since = what == Wait::kQuiet     ? &here.since_quiet
                            : what == Wait::kFence   ? &here.since_fence
                            : what == Wait::kRequest ? &here.since_request
                                                     : nullptr;
    if (since) {
        bump(counts.operations, *since);
        bump(counts.singles, *since == 1);
        if (what == Wait::kQuiet && *since != 0)
            bump(counts.window, os::ticks_now() - here.library_ticks - here.outside_ticks);
    }
    if (trace_)
        begin_call(here, place, kind_of(what), {.begin = begin_ticks, .bytes = since ? *since : 0});
    if (since)
        *since = 0;
    if (here.open)
        ++here.depth;
    else
        open(here, place);
}

void Profile::end_wait() {
    Thread& here = this_thread();
    if (here.open && here.depth-- == 0)
        close(here);
    if (trace_)
        end_call(here);
}

// What a wait was for becomes known behind it. There may have been none.
void Profile::name_last(Kind kind, const void* word) {
    TraceEvent* const last = trace_ ? this_thread().last_call : nullptr;
    if (last && last->word == 0 && last->what == static_cast<uint32_t>(kind))
        last->word = word_of(word);
}

void Profile::see(const void* word, size_t) {
    name_last(Kind::kWait, word);
}

void Profile::take_lock(const long* lock) {
    name_last(Kind::kLock, lock);
}

void Profile::give_lock(const long* lock) {
    if (!trace_)
        return;
    Thread& here = this_thread();
    const uint64_t now = os::ticks_now();
    here.last_call = trace_->add({.begin = now, .end = now, .word = word_of(lock), .what = kGiveLock});
}

// A collective of several threads of the PE is counted once.
void Profile::join_collective(const team::Team& team) {
    Thread& here = this_thread();
    if (!trace_ || here.n_calls == 0 || here.n_calls > Thread::kCalls)
        return;
    const base::Members& members = team.members;
    const uint64_t id = team.span ? team.span->id : static_cast<uint64_t>(team.state.segment.index);
    TraceEvent& call = here.calls[static_cast<size_t>(here.n_calls - 1)];
    call.word = ((id * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(members.pe(0))) * 0x9e3779b97f4a7c15 +
                 static_cast<uint64_t>(members.pe(members.size - 1))) |
                1;  // 0: none
    call.pe = members.size;
    const os::Locked lock(lock_);
    call.number = ++collectives_[call.word];
}

void Profile::post_collective(const base::Call& call) {
    Thread& here = this_thread();
    Counts& counts = find(here, operations::at_caller_of_wait(call), nullptr, Kind::kPosted).counts;
    bump(counts.calls);
    set_bit(counts.threads, here.number);
    ++here.since_request;
}

// What this PE sends counts.
void Profile::use_buffer(const base::Call&, const void*, size_t bytes, bool writes) {
    Thread& here = this_thread();
    if (writes || !here.open || here.open->name.kind != Kind::kCollective)
        return;
    Counts& counts = here.open->counts;
    bump(counts.bytes, bytes);
    bump(counts.sizes[size_class(bytes)]);
}

void Profile::allocate(const base::Call&, const void*, size_t) {
    const os::Locked lock(memory::symmetric->lock);
    const uint64_t used =
        memory::symmetric->heap.bytes - memory::symmetric->allocator->free_bytes() - memory::symmetric->own_bytes;
    uint64_t most = most_heap_bytes_.load(std::memory_order_relaxed);
    while (most < used && !most_heap_bytes_.compare_exchange_weak(most, used, std::memory_order_relaxed)) {
    }
}

uint32_t Profile::number_of(shmem_ctx_t ctx) {
    if (!ctx || ctx == SHMEM_CTX_DEFAULT)
        return 0;
    return contexts_.try_emplace(ctx, static_cast<uint32_t>(contexts_.size()) + 1).first->second;
}

void Profile::end() {
    const os::Locked lock(lock_);
    for (const auto& thread : threads_)
        for (operations::ObservedRun& run : thread->runs.runs) __atomic_store_n(&run.left, 0, __ATOMIC_RELAXED);
}

void Profile::write(const Thread& thread, JobProfile* to, std::vector<Site>* sites) {
    std::array<Pair, kGroups> pairs = read(thread.pairs);
    const uint32_t n = thread.n_places.load(std::memory_order_acquire);  // pairs with Profile::find
    for (uint32_t i = 0; i < n; ++i) {
        const Place& place = thread.places[i];
        Site site;
        static_cast<SiteName&>(site) = place.name;
        site.counts = read(place.counts);
        for (size_t run = 0; run < thread.places_of_runs.size(); ++run)
            if (thread.places_of_runs[run] == &place)
                add_run(thread.runs.runs[run], site.counts, pairs);
        site.counts.time = std::min(site.counts.time_of_all(), os::ticks_now() - begin_ticks_);
        const auto same =
            std::find_if(sites->begin(), sites->end(), [&](const Site& one) { return one.is_at_place_of(site); });
        if (same == sites->end())
            sites->push_back(site);
        else
            same->counts.add(site.counts);
    }
    const auto row = static_cast<size_t>(bootstrap::job.pe >> group_shift_);
    for (size_t group = 0; group < kGroups; ++group) {
        to->pairs[row][group].operations += pairs[group].operations;
        to->pairs[row][group].bytes += pairs[group].bytes;
    }
    to->lost_calls += __atomic_load_n(&thread.places[Thread::kPlaces].counts.calls, __ATOMIC_RELAXED);
}

void Profile::write(JobProfile* to) {
    *to = {};
    to->pes = 1;
    const auto ns = [&](uint64_t ticks) {
        return static_cast<uint64_t>(static_cast<double>(ticks) * 1e6 / static_cast<double>(ticks_per_ms_));
    };
    std::vector<Site> sites;
    uint64_t library = 0;
    const os::Locked lock(lock_);
    for (const auto& thread : threads_) write(*thread, to, &sites);
    for (const Site& site : sites) library += site.counts.time;
    to->wall.add(ns(os::ticks_now() - begin_ticks_), bootstrap::job.pe);
    to->library.add(std::min(ns(library / std::max<size_t>(threads_.size(), 1)), to->wall.sum), bootstrap::job.pe);
    to->memory.add(most_heap_bytes_.load(std::memory_order_relaxed), bootstrap::job.pe);
    to->threads.add(threads_.size(), bootstrap::job.pe);
    for (Site& site : sites) {
        Counts& counts = site.counts;
        counts.time = ns(counts.time);
        site.threads = static_cast<uint64_t>(std::popcount(counts.threads));
        counts.longest = ns(counts.longest);
        counts.window = ns(counts.window);
        site.pes = 1;
        site.time.add(counts.time, bootstrap::job.pe);
        site.calls.add(counts.calls, bootstrap::job.pe);
    }
    // Where there is no room for all, those that took longest are told.
    std::stable_sort(sites.begin(), sites.end(),
                     [](const Site& a, const Site& b) { return a.counts.time > b.counts.time; });
    for (const Site& site : sites) to->add(site);
}

}  // namespace heddle::profiling
