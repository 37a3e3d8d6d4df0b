#include "collective/collective_call.h"

#include "base/error.h"
#include "base/invariant.h"
#include "base/tsan.h"
#include "collective/algorithm_table.h"
#include "fabric/network.h"
#include "operations/check.h"
#include "operations/observer.h"
#include "progress/wait_policy.h"
#include "team/deadlock.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace heddle::collective {

using base::fatal;

HEDDLE_PE_LOCAL uint8_t watched = 0;

namespace {

// -1: the members are alike.
int root_of(const Shape& shape) {
    for (const Shape::Argument& argument : shape.arguments)
        if (argument.name == kRootArgument)
            return static_cast<int>(argument.value);
    return -1;
}

team::Team& require_team(const Call& call, shmem_team_t handle) {
    operations::require_running(call.function);
    team::Team* team = team::find(handle);
    if (!team && handle == SHMEM_TEAM_INVALID)
        fatal(call.function, "team is SHMEM_TEAM_INVALID: right would be a team that this PE is a member of");
    if (!team)
        fatal(call.function, "team %p is no team: it was destroyed, or never created",
              static_cast<const void*>(handle));
    return *team;
}

team::Team& require_active_set(const Call& call, const Group& group) {
    const int start = group.start, log_stride = group.log_stride, size = group.size;
    operations::require_running(call.function);
    const int n_pes = memory::symmetric->n_pes, pe = memory::symmetric->pe;
    constexpr int kMaxLog = 30;
    const bool shape_is_right = start >= 0 && log_stride >= 0 && log_stride <= kMaxLog && size >= 1 &&
                                start + (static_cast<int64_t>(size) - 1) * (int64_t{1} << log_stride) < n_pes;
    if (!shape_is_right)
        fatal(call.function,
              "PE_start %d, logPE_stride %d, PE_size %d is no active set: right would be PE_start >= 0, logPE_stride "
              ">= 0, PE_size >= 1 and a last PE below %d",
              start, log_stride, size, n_pes);
    if (Members{start, 1 << log_stride, size}.rank(pe) < 0)
        fatal(call.function, "PE %d is not in the active set PE_start %d, logPE_stride %d, PE_size %d", pe, start,
              log_stride, size);
    if (base::settings.check)
        operations::require_symmetric(call.function, "pSync", group.psync, sizeof *group.psync, pe);
    team::Team* team = team::find_active_set(call.function, start, log_stride, size);
    if (!team) {
        const team::SegmentLimit limit =
            team::segment_limit(team::part_on_this_node({start, 1 << log_stride, size}).count);
        fatal(
            call.function,
            "no room for the active set PE_start %d, logPE_stride %d, PE_size %d: as many teams and active sets of %d "
            "to %d PEs are there on this node as there can be, %d; right would be fewer, or teams, which can be "
            "destroyed",
            start, log_stride, size, limit.from, limit.to, limit.number);
    }
    return *team;
}

}  // namespace

std::array<char, 96> name_of(const team::Team& team) {
    std::array<char, 96> text = {};
    if (team.handle == SHMEM_TEAM_WORLD || team.handle == SHMEM_TEAM_SHARED)
        snprintf(text.data(), text.size(), "%s",
                 team.handle == SHMEM_TEAM_WORLD ? "SHMEM_TEAM_WORLD" : "SHMEM_TEAM_SHARED");
    else
        snprintf(text.data(), text.size(), "%s of %d PEs from PE %d to PE %d",
                 team.handle == SHMEM_TEAM_INVALID ? "the active set" : "the team", team.members.size,
                 team.members.pe(0), team.members.pe(team.members.size - 1));
    return text;
}

team::Team& team_of(const Call& call, const Group& group) {
    if (group.kind == Group::kTeam)
        return require_team(call, group.team);
    return group.kind == Group::kInstance ? *group.instance : require_active_set(call, group);
}

int sharers_of(size_t bytes, int threads) {
    return threads == 1 ? 1 : select_sharers(bytes, threads, [] {
        const uint32_t cores = team::is_oversubscribed() ? 1 : progress::wait_policy->own_cores;
        return std::min(static_cast<int>(cores), fabric::network->channels());
    });
}

void watch(bool several_threads) {
    watched = static_cast<uint8_t>((base::settings.check ? kWatchCalls | kWatchThreads : 0) |
                                   (several_threads ? kWatchThreads : 0) | (tsan::is_on() ? kWatchOrder : 0) |
                                   (base::settings.observed ? kWatchTime : 0));
}

void CollectiveCall::begin(const Shape& shape) {
    tsan::release();
    if (is_of_one_thread())
        take_team(call, team);
    if (operations::Observer* const told = operations::find_observer()) {
        told->begin_wait(operations::Observer::Wait::kCollective, call, nullptr);
        if (thread_group.thread() == 0)
            told->join_collective(team);
    }
    if (base::settings.check)
        thread_group.by_one([&] {
            if (operations::Observer* const told = operations::find_observer()) {
                told->enter_collective(call);
                told->begin_collective(team, root_of(shape));
            }
            if (!progress::Fiber::current())  // a posted collective: this PE is elsewhere
                team::enter_collective(call, state.segment.index);
            compare(*this, shape);
        });
}

void CollectiveCall::end() {
    if (base::settings.check)
        thread_group.by_one([&] {
            if (operations::Observer* const told = operations::find_observer())
                told->end_collective(team);
            if (!progress::Fiber::current())
                team::leave_collective();
        });
    if (is_of_one_thread())
        leave_team(team);
    if (operations::Observer* const told = operations::find_observer())
        told->end_wait();
    tsan::acquire();
}

// One thread is in the team for all of a thread group: it is here while any of them goes through a step. What was
// posted runs on whichever thread makes progress; of posting threads post() takes the team.
bool CollectiveCall::is_of_one_thread() const {
    return is_watched(kWatchThreads) && thread_group.thread() == 0 && !progress::Fiber::current();
}

void take_team(const Call& call, team::Team& team) {
    // acq_rel: of two threads one sees the other. Pairs with collective::leave_team.
    if (const char* const other = team.inside.exchange(call.function, std::memory_order_acq_rel)) {
        constexpr int kLooks = 10000;  // the other thread stores its caller soon after its function
        Call theirs = {other, nullptr};
        for (int i = 0; i < kLooks && !theirs.caller; ++i)
            theirs.caller = team.inside_caller.load(std::memory_order_relaxed);
        fatal(call.function,
              "another thread of this PE is in %s while this one is in %s, both on %s: right would be one thread at a "
              "time in the collectives of a team, or a team for each thread",
              base::describe(theirs).data(), base::describe(call).data(), name_of(team).data());
    }
    team.inside_caller.store(call.caller, std::memory_order_relaxed);  // only for the message
}

void leave_team(team::Team& team) {
    HEDDLE_INVARIANT(team.inside.load(std::memory_order_relaxed));  // take_team has said so
    team.inside_caller.store(nullptr, std::memory_order_relaxed);
    team.inside.store(nullptr, std::memory_order_release);  // pairs with collective::take_team
}

void Buffer::check(const Call& call, const char* argument, const void* address, size_t bytes) {
    operations::require_symmetric(call.function, argument, address, bytes, memory::symmetric->pe);
    in_heap_ = memory::symmetric->heap.holds(address);
    const memory::SymmetricRegion& region = in_heap_ ? memory::symmetric->heap : memory::symmetric->data;
    offset_ = reinterpret_cast<uintptr_t>(address) - region.base;
    if (operations::Observer* const told = operations::find_observer())
        told->use_buffer(call, address, bytes, strcmp(argument, "dest") == 0);
}

void check_in_place(const Call& call, const void* dest, const void* source, size_t bytes) {
    if (base::settings.check && dest != source)
        operations::require_disjoint(call.function, dest, source, bytes);
}

}  // namespace heddle::collective
