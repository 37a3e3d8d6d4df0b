#include "checking/status/published_waits.h"

#include "base/pe_local.h"
#include "base/place.h"
#include "base/source_line.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/own_status.h"
#include "checking/status/end_signals.h"
#include "checking/status/self_report.h"
#include "checking/status/status_signal.h"
#include "fabric/network.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "operations/lock.h"
#include "operations/observer.h"
#include "os/clock.h"
#include "os/locked.h"
#include "os/thread_id.h"
#include "progress/engine.h"
#include "team/team.h"

#include <heddle/constants.h>
#include <pthread.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstring>

namespace heddle::checking {

namespace {

using bootstrap::CallRecord;
using bootstrap::job;
using bootstrap::PeStatus;
using bootstrap::Unacked;
using bootstrap::Waiters;
using bootstrap::WaitState;
using progress::SleepingWait;
using progress::WaitTarget;

constexpr uint64_t kPlaceNs = 100 * os::kMillisecondNs;   // from a wait's begin to the walk over its stack
constexpr uint64_t kAgainNs = 1000 * os::kMillisecondNs;  // between two searches for who waits for whom
constexpr uint64_t kMostReplies = 1000;                   // that are counted
constexpr int kMostSearched = 1024;                       // PEs of a page whose waits are looked at

HEDDLE_PE_LOCAL pthread_mutex_t searching = PTHREAD_MUTEX_INITIALIZER;  // of the PE's snapshots of waiters and unacked

static_assert(WaitState::kStepOnNode == team::kStepOfSegment);

const char* text_of(int comparison) {
    switch (comparison) {
        case SHMEM_CMP_EQ:
            return "==";
        case SHMEM_CMP_NE:
            return "!=";
        case SHMEM_CMP_GT:
            return ">";
        case SHMEM_CMP_GE:
            return ">=";
        case SHMEM_CMP_LT:
            return "<";
        default:
            return "<=";
    }
}

void describe_target(const WaitTarget& target, WaitState* state) {
    const auto address = reinterpret_cast<uintptr_t>(target.address);
    const memory::Symmetric* const symmetric = memory::symmetric;
    state->awaits = target.kind == WaitTarget::Kind::kValue      ? WaitState::Awaits::kValue
                    : target.kind == WaitTarget::Kind::kAnyValue ? WaitState::Awaits::kAnyValue
                                                                 : WaitState::Awaits::kLock;
    state->value = target.value;
    state->value_bytes = target.value_bytes;
    state->is_signed = target.is_signed;
    state->nelems = target.nelems;
    snprintf(state->comparison, sizeof state->comparison, "%s", text_of(target.comparison));
    if (!symmetric)
        return;
    const memory::NodeMemory& node = memory::node_memory;
    if (symmetric->heap.holds(target.address)) {
        state->region = WaitState::Region::kHeap;
        state->offset = address - symmetric->heap.base;
        state->file_offset = static_cast<uint64_t>(node.heap(job.slot) - node.base) + state->offset;
    } else if (symmetric->data.holds(target.address)) {
        state->region = WaitState::Region::kData;
        state->offset = address - symmetric->data.base;
        state->file_offset = node.data_file_offset(job.slot) + state->offset;
    }
}

void begin(PeStatus& mine, SleepingWait& wait) {
    wait.entry = mine.claim();
    if (wait.entry < 0)
        return;
    WaitState state;
    state.since_ns = wait.begin_ns;
    state.step = progress::AtStep::current();
    state.thread = os::thread_id();
    state.node = job.node;
    strncpy(state.function, wait.function, sizeof state.function - 1);
    if (wait.target)
        describe_target(*wait.target, &state);
    mine.waits[wait.entry].write(state);
    wait.next_ns = wait.begin_ns + kPlaceNs;
    bootstrap::record_call(CallRecord::Kind::kWait, wait.function);
}

// The place of the call, and the names of the files by which a reader finds its line, and the object's name.
void find_place(const SleepingWait& wait, WaitState* state) {
    const base::Place place = base::find_caller();
    base::Module module;
    if (place.address == 0 || !base::find_module(place.instruction(), &module))
        return;
    snprintf(state->place, sizeof state->place, "%.63s", base::describe(place).data());
    state->linked = module.linked(place.instruction());
    if (!base::path_of(module, state->module, sizeof state->module))
        state->module[0] = '\0';
    if (state->region == WaitState::Region::kData && module.is_executable()) {  // static data is the executable's
        state->object = module.linked(reinterpret_cast<uintptr_t>(wait.target->address));
        state->is_object_known = 1;
    }
}

// The number of the collective in which the thread waits: alike on all members that are in it, since they go through
// the steps of their team together.
void find_number(WaitState* state) {
    if (state->step == 0 || !team::teams)
        return;
    const team::StepOf of = team::team_of_step(state->step, true);
    if (of.team)
        state->number = of.team->span ? of.begun.across : of.begun.in_segment;
}

// The last write to what the wait looks at, from a tool that knows it (HEDDLE_RACES).
void find_writer(const SleepingWait& wait, WaitState* state) {
    operations::Observer* const tool = operations::observer;
    if (!tool || state->awaits != WaitState::Awaits::kValue)
        return;
    const auto value = [&] {
        uint64_t now = 0;
        memcpy(&now, wait.target->address, std::min<size_t>(wait.target->value_bytes, sizeof now));
        return now;
    };
    const uint64_t before = value();
    base::CallText call;
    int pe = -1;
    state->writer = -1;
    if (!tool->try_last_write(wait.target->address, wait.target->value_bytes, &pe, &call) || value() != before)
        return;
    state->writer = pe;
    state->seen = before;
    snprintf(state->writer_call, sizeof state->writer_call, "%s", call.data());
}

// The PEs whose collectives wait for this PE: steps of teams that this PE has not begun. For PEs of one thread, whose
// teams stand still while the thread is here.
void find_waiters(PeStatus& mine, uint64_t since_ns) {
    if (progress::threads_of_program() > 1 || job.n_slots > kMostSearched)
        return;
    Waiters found;
    found.since_ns = since_ns;
    for (int pe = 0; pe < job.n_pes; ++pe) {
        const int slot = job.slot_of(pe);
        if (slot < 0 || slot == job.slot)
            continue;
        const PeStatus& theirs = job.page->statuses()[slot];
        for (uint32_t entry = 0; entry < PeStatus::kThreads; ++entry) {
            WaitState wait;
            if (!theirs.read(entry, &wait) || wait.step == 0)
                continue;
            const team::StepOf of = team::team_of_step(wait.step, job.node_of(pe) == job.node);
            if (!of.team || team::steps_ahead(wait.step, of.begun) <= 0)
                continue;
            if (found.number < Waiters::kMost)
                found.waiters[found.number] = {slot, wait.since_ns};
            ++found.number;
        }
    }
    mine.waiters.write(found);
}

// What this PE has sent to other nodes and has no acknowledgement of.
void find_unacked(PeStatus& mine, uint64_t since_ns) {
    Unacked found;
    found.since_ns = since_ns;
    const auto add = [&](const fabric::Stream& stream) {
        if (stream.is_quiet())
            return true;
        auto* const end = found.targets + std::min(found.number, Unacked::kMost);
        auto* const target = std::find_if(found.targets, end, [&](const auto& one) { return one.pe == stream.pe(); });
        if (target == end)
            ++found.number;
        if (target == found.targets + Unacked::kMost)
            return true;
        const uint64_t acked = stream.acked();  // read first: what is published later is never less
        target->pe = stream.pe();
        target->acked_bytes += acked;
        target->sent_bytes += std::max(acked, stream.published());
        const uint64_t returns = stream.published_returns();
        for (uint64_t i = 0; i < returns && i < kMostReplies && !stream.has_returned(returns - i); ++i)
            ++target->replies;
        return true;
    };
    fabric::network->for_each_stream_set([&](fabric::StreamSet& set) { set.all_active(add); });
    mine.unacked.write(found);
}

void look_again(PeStatus& mine, SleepingWait& wait, uint64_t now_ns) {
    WaitState state;
    if (!mine.waits[wait.entry].read(&state))
        return;
    if (state.place[0] == '\0')
        find_place(wait, &state);
    find_number(&state);
    find_writer(wait, &state);
    if (state.awaits == WaitState::Awaits::kLock)
        state.holder = operations::holder_of(static_cast<const long*>(wait.target->address));
    mine.waits[wait.entry].write(state);
    if (const os::TryLocked lock(searching); lock) {
        if (memory::symmetric && team::teams)
            find_waiters(mine, state.since_ns);
        if (fabric::network)
            find_unacked(mine, state.since_ns);
    }
    // Looks become as rare as the wait is long: what they search grows with the number of PEs.
    wait.next_ns = now_ns + std::max(kAgainNs, (now_ns - wait.begin_ns) / 4);
    tell_if_none_comes_forward(now_ns);
}

}  // namespace

void publish_wait(SleepingWait& wait) {
    PeStatus* const mine = bootstrap::own_status();
    if (!mine)
        return;
    if (wait.entry < 0)
        return begin(*mine, wait);
    if (const uint64_t now_ns = os::now_ns(); now_ns >= wait.next_ns)
        look_again(*mine, wait, now_ns);
}

void withdraw_wait(SleepingWait& wait) {
    if (PeStatus* const mine = bootstrap::own_status())
        mine->release(wait.entry);
    wait.entry = -1;
}

bool start_status(progress::WaitPolicy& policy, char* error, size_t error_bytes) {
    policy.show = bootstrap::show_wait;
    policy.publish = publish_wait;
    policy.withdraw = withdraw_wait;
    policy.record = [](const char* call) { bootstrap::record_call(CallRecord::Kind::kCollective, call); };
    return take_status_signal(error, error_bytes) && take_end_signals(error, error_bytes);
}

}  // namespace heddle::checking
