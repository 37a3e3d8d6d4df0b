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
#include "os/ticks.h"

#include <heddle/constants.h>
#include <heddle/hot_path.h>
#include <algorithm>
#include <bit>
#include <cstdio>

namespace heddle::profiling {

using operations::Operation;

namespace {

// A thread adds to counts of its own, which another one may read. Relaxed, all: a count orders nothing.
void bump(uint64_t& count, uint64_t by = 1) {
    __atomic_store_n(&count, count + by, __ATOMIC_RELAXED);
}
void set_bit(uint64_t& bits, int bit) {
    __atomic_store_n(&bits, bits | uint64_t{1} << bit, __ATOMIC_RELAXED);
}
void raise(uint64_t& most, uint64_t value) {
    if (value > most)
        __atomic_store_n(&most, value, __ATOMIC_RELAXED);
}
template <class Words>
Words read(const Words& from) {
    static_assert(sizeof(Words) % sizeof(uint64_t) == 0);
    Words words;
    for (size_t i = 0; i < sizeof words / sizeof(uint64_t); ++i)
        reinterpret_cast<uint64_t*>(&words)[i] =
            __atomic_load_n(reinterpret_cast<const uint64_t*>(&from) + i, __ATOMIC_RELAXED);
    return words;
}

size_t size_class(uint64_t bytes) {
    const int bits = bytes <= 8 ? 0 : std::bit_width(bytes - 1) - 3;
    return std::min<size_t>((static_cast<size_t>(bits) + 2) / 3, kSizes - 1);
}

constexpr uint64_t kFirstTimed = 64, kTimedOneIn = 256, kLongBytes = 32768;

bool is_timed(const Counts& counts, uint64_t bytes) {
    return bytes >= kLongBytes || counts.calls <= kFirstTimed || counts.calls % kTimedOneIn == 0;
}

Path path_of(const Operation& operation, uint64_t bytes) {
    if (!operations::is_remote(operation.world_pe))
        return Path::kNode;
    return bytes < operations::kRendezvousBytes ? Path::kRecord : Path::kLarge;
}

// The operation is one that loads and stores complete at once, on a context that numbers PEs as the world does.
bool may_be_run(const Operation& operation) {
    const context::Context& context = context::context_of(operation.ctx);
    const base::Members& members = context.members;
    const bool copies = operation.kind == Operation::Kind::kPut || operation.kind == Operation::Kind::kGet;
    return copies && operation.nblocks == 1 && !operation.req && !operations::is_remote(operation.world_pe) &&
           members.start == 0 && members.stride == 1 && !members.list && !(context.options & SHMEMX_CTX_ORDERED) &&
           !base::settings.check;
}

// Adds what a run has counted to the counts of its place, and to the pairs of its thread. Of another thread: what it
// has counted so far.
void add_run(const operations::ObservedRun& run, Counts& counts, std::array<Pair, kGroups>& pairs) {
    const uint64_t n = __atomic_load_n(&run.n, __ATOMIC_RELAXED);
    if (n == 0)
        return;
    bump(counts.calls, n);
    bump(counts.bytes, n * run.bytes);
    bump(counts.sizes[size_class(run.bytes)], n);
    bump(counts.paths[static_cast<size_t>(Path::kNode)], n);
    bump(counts.following, __atomic_load_n(&run.following, __ATOMIC_RELAXED));
    uint64_t groups = __atomic_load_n(&run.groups, __ATOMIC_RELAXED);
    bump(counts.partners, groups & ~counts.partners);
    for (; groups != 0; groups &= groups - 1) {
        const auto group = static_cast<size_t>(std::countr_zero(groups));
        const uint64_t operations = __atomic_load_n(&run.operations[group], __ATOMIC_RELAXED);
        bump(pairs[group].operations, operations);
        bump(pairs[group].bytes, operations * run.bytes);
    }
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

std::atomic<uint64_t> n_profiles{0};

}  // namespace

// What a thread has counted. It writes, and the thread that finalizes reads.
struct Profile::Thread {
    static constexpr size_t kPlaces = 1024, kIndex = 4096;

    int number = 0;
    std::atomic<uint32_t> n_places{0};
    uint64_t lost_calls = 0;
    uint64_t library_ticks = 0;
    std::array<Pair, kGroups> pairs = {};
    std::array<Place, kPlaces + 1> places;  // the last one: further places, whose counts are lost
    operations::ObservedRuns runs;
    std::array<Place*, 8> places_of_runs = {};
    // The thread's alone, from here on.
    std::array<uint16_t, kIndex> index = {};  // of a place, plus 1
    uint64_t own_ticks = 0;                   // that a timed operation takes at least
    Place* last = nullptr;
    Place* open = nullptr;  // that is timed now
    uint64_t open_ticks = 0;
    int depth = 0;                                                 // of waits within it
    int operations = 0;                                            // an operation under way may be made of others
    uint64_t since_quiet = 0, since_fence = 0, since_request = 0;  // operations
    uint64_t outside_ticks = 0;  // when the first of these since the last quiet had been issued, less library_ticks
};

namespace {

struct Known {
    uint64_t profile = 0;
    void* thread = nullptr;
};
constinit thread_local Known known;

}  // namespace

Profile::Profile()
    : number_(n_profiles.fetch_add(1, std::memory_order_relaxed) + 1),
      ticks_per_ms_(os::measure_ticks_per_ms()),
      begin_ticks_(os::ticks_now()),
      group_shift_(group_shift(bootstrap::job.n_pes)) {}

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
    auto made = std::make_unique<Thread>();
    Thread& mine = *made;
    const os::Locked lock(lock_);
    mine.number = static_cast<int>(std::min<size_t>(threads_.size(), 63));
    mine.own_ticks = measure_own_ticks();
    threads_.push_back(std::move(made));
    known = {number_, &mine};
    operations::observed_runs = &mine.runs;
    return mine;
}

Profile::Place& Profile::find(Thread& here, const base::Call& call, shmem_ctx_t ctx, Kind kind) {
    const auto is_it = [&](const Place& place) {
        return place.call.caller == call.caller && place.ctx == ctx && place.kind == kind &&
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
            made.kind = kind;
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

void Profile::open(Thread& here, Place& place) {
    here.open = &place;
    here.depth = 0;
    here.open_ticks = os::ticks_now();
}

void Profile::close(Thread& here) {
    Place& place = *here.open;
    here.open = nullptr;
    uint64_t ticks = os::ticks_now() - here.open_ticks;
    ticks -= std::min(ticks, place.kind <= Kind::kPutSignal ? here.own_ticks : 0);
    bump(place.counts.timed_calls);
    bump(place.counts.time, ticks);
    bump(here.library_ticks, ticks);
    raise(place.counts.longest, ticks);
}

bool Profile::issue(const Operation& operation) {
    Thread& here = this_thread();
    if (here.operations++ != 0)
        return false;
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
    if (there == place.last_end && operation.pe == place.last_pe)
        bump(counts.following);
    place.last_end = there + bytes;
    place.last_pe = operation.pe;
    bump(here.pairs[static_cast<size_t>(group)].operations);
    bump(here.pairs[static_cast<size_t>(group)].bytes, bytes);
    const bool is_timed_now = !here.open && is_timed(counts, bytes);
    if (here.since_quiet++ == 0)
        here.outside_ticks = os::ticks_now() - here.library_ticks;
    ++here.since_fence;
    here.since_request += operation.req != nullptr;
    if (from == call.caller && bytes < kLongBytes && may_be_run(operation))
        begin_run(here, run, place, operation, bytes);
    if (is_timed_now)
        open(here, place);
    return false;
}

// Behind the first of an operation that is timed, up to the next one.
void Profile::begin_run(Thread& here, operations::ObservedRun& run, Place& place, const Operation& operation,
                        uint64_t bytes) {
    here.places_of_runs[static_cast<size_t>(&run - here.runs.runs.data())] = &place;
    run.kind = operation.kind;
    run.caller = place.call.caller;
    run.ctx = operation.ctx;
    run.bytes = bytes;
    run.peers = memory::symmetric->peers;
    run.n_pes = static_cast<unsigned>(bootstrap::job.n_pes);
    run.group_shift = group_shift_;
    run.heap_base = memory::symmetric->heap.base;
    run.data_base = memory::symmetric->data.base;
    run.last_end = reinterpret_cast<uintptr_t>(place.last_end);
    run.last_pe = place.last_pe;
    const uint64_t calls = place.counts.calls;
    const uint64_t left = calls < kFirstTimed ? 0 : kTimedOneIn - 1 - calls % kTimedOneIn;
    __atomic_store_n(&run.left, static_cast<uint32_t>(left), __ATOMIC_RELAXED);
}

// What a run has counted goes to its place.
void Profile::end_run(Thread& here, operations::ObservedRun& run) {
    __atomic_store_n(&run.left, 0, __ATOMIC_RELAXED);
    if (run.n == 0)
        return;
    Place& place = *here.places_of_runs[static_cast<size_t>(&run - here.runs.runs.data())];
    add_run(run, place.counts, here.pairs);
    place.last_end = reinterpret_cast<const char*>(run.last_end);
    place.last_pe = run.last_pe;
    here.since_quiet += run.n;
    here.since_fence += run.n;
    __atomic_store_n(&run.n, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&run.following, 0, __ATOMIC_RELAXED);
    for (uint64_t groups = run.groups; groups != 0; groups &= groups - 1)
        __atomic_store_n(&run.operations[static_cast<size_t>(std::countr_zero(groups))], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&run.groups, 0, __ATOMIC_RELAXED);
}

void Profile::end_runs(Thread& here) {
    for (operations::ObservedRun& run : here.runs.runs) end_run(here, run);
}

void Profile::end_operation() {
    Thread& here = this_thread();
    if (--here.operations == 0 && here.open && here.open->kind <= Kind::kPutSignal)
        close(here);
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
    Thread& here = this_thread();
    end_runs(here);
    const base::Call at = operations::at_caller(call);
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
        *since = 0;
    }
    if (here.open)
        ++here.depth;
    else
        open(here, place);
}

void Profile::end_wait() {
    Thread& here = this_thread();
    if (here.open && here.depth-- == 0)
        close(here);
}

void Profile::post_collective(const base::Call& call) {
    Thread& here = this_thread();
    Counts& counts = find(here, operations::at_caller(call), nullptr, Kind::kPosted).counts;
    bump(counts.calls);
    set_bit(counts.threads, here.number);
    ++here.since_request;
}

// What this PE sends counts.
void Profile::use_buffer(const base::Call&, const void*, size_t bytes, bool writes) {
    Thread& here = this_thread();
    if (writes || !here.open || here.open->kind != Kind::kCollective)
        return;
    Counts& counts = here.open->counts;
    bump(counts.bytes, bytes);
    bump(counts.sizes[size_class(bytes)]);
}

void Profile::allocate(const base::Call&, const void*, size_t) {
    const os::Locked lock(memory::symmetric->lock);
    const uint64_t used = memory::symmetric->heap.bytes - memory::symmetric->allocator->free_bytes();
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
        snprintf(site.function.data(), site.function.size(), "%s", place.call.function);
        base::Module module;
        const base::Place caller = {reinterpret_cast<uintptr_t>(place.call.caller), true};
        if (caller.address != 0 && base::find_module(caller.instruction(), &module)) {
            snprintf(site.module.data(), site.module.size(), "%s", module.name());
            site.linked = module.linked(caller.instruction());
        }
        site.kind = place.kind;
        site.context = number_of(place.ctx);
        site.counts = read(place.counts);
        for (size_t run = 0; run < thread.places_of_runs.size(); ++run)
            if (thread.places_of_runs[run] == &place)
                add_run(thread.runs.runs[run], site.counts, pairs);
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
    for (const auto& thread : threads_) {
        write(*thread, to, &sites);
        library += __atomic_load_n(&thread->library_ticks, __ATOMIC_RELAXED);
    }
    to->wall.add(ns(os::ticks_now() - begin_ticks_), bootstrap::job.pe);
    to->library.add(ns(library), bootstrap::job.pe);
    to->memory.add(most_heap_bytes_.load(std::memory_order_relaxed), bootstrap::job.pe);
    to->threads.add(threads_.size(), bootstrap::job.pe);
    for (Site& site : sites) {
        Counts& counts = site.counts;
        counts.time = ns(counts.time_of_all());
        counts.timed_calls = counts.calls;
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
