// Runs of like operations: when one begins, what it has counted, and when it ends (operations/observer.h).
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "context/context.h"
#include "memory/symmetric.h"
#include "operations/remote.h"
#include "profiling/counting.h"
#include "profiling/profile.h"

#include <heddle/constants.h>
#include <bit>

namespace heddle::profiling {

bool may_be_run(const operations::Operation& operation) {
    const context::Context& context = context::context_of(operation.ctx);
    const base::Members& members = context.members;
    const bool copies =
        operation.kind == operations::Operation::Kind::kPut || operation.kind == operations::Operation::Kind::kGet;
    return copies && operation.nblocks == 1 && !operation.req && !operations::is_remote(operation.world_pe) &&
           members.start == 0 && members.stride == 1 && !members.list && !(context.options & SHMEMX_CTX_ORDERED) &&
           !base::settings.check;
}

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

// Behind the first of an operation that is timed, up to the next one.
void Profile::begin_run(Thread& here, operations::ObservedRun& run, Place& place,
                        const operations::Operation& operation, uint64_t bytes) {
    here.places_of_runs[static_cast<size_t>(&run - here.runs.runs.data())] = &place;
    run.kind = operation.kind;
    run.caller = place.call.caller;
    run.ctx = operation.ctx;
    run.destroyed = context::contexts->destroyed.load(std::memory_order_relaxed);
    run.bytes = bytes;
    run.peers = memory::symmetric->peers;
    run.n_pes = static_cast<unsigned>(context::context_of(operation.ctx).members.size);
    run.group_shift = group_shift_;
    run.heap_base = memory::symmetric->heap.base;
    run.data_base = memory::symmetric->data.base;
    run.last_end = reinterpret_cast<uintptr_t>(place.last_end);
    run.last_pe = place.last_pe;
    const uint64_t calls = place.counts.calls;
    const uint64_t left = calls < kFirstTimed ? 0 : period(calls) - 1 - calls % period(calls);
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

}  // namespace heddle::profiling
