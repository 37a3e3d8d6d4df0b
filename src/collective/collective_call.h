// CollectiveCall: what every collective begins with. Finds the team of the handle and the threads of this PE that take
// part. In a checked run compares the calls of all members. Threads: one per PE and team, or one thread group.
#pragma once

#include "base/invariant.h"
#include "base/settings.h"
#include "collective/call_comparison.h"
#include "collective/thread_group.h"
#include "memory/symmetric.h"
#include "team/team.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::collective {

using base::Call;
using team::Members;
using team::MemberState;

// The PEs of a collective, a team or (deprecated) an active set, and the threads of this PE that take part.
struct Group {
    Group(shmem_team_t of_team) : team(of_team) {}                               // NOLINT: a team is a group
    Group(team::Team& of_instance) : kind(kInstance), instance(&of_instance) {}  // NOLINT: an instance of a team, too
    // One of the shares of what several threads have posted together.
    Group(team::Team& of_instance, int share, int count)
        : kind(kInstance), instance(&of_instance), thread(share), threads(count) {}
    Group(shmem_team_t of_team, int number, int count) : team(of_team), thread(number), threads(count) {}
    Group(int from, int log, int count, const long* sync_array)
        : kind(kActiveSet), start(from), log_stride(log), size(count), psync(sync_array) {}

    // The group with one thread of this PE.
    Group single_threaded() const {
        Group group = *this;
        group.thread = 0;
        group.threads = 1;
        return group;
    }

    enum Kind : uint8_t { kTeam, kInstance, kActiveSet };

    Kind kind = kTeam;
    shmem_team_t team = SHMEM_TEAM_INVALID;  // kTeam
    team::Team* instance = nullptr;          // kInstance: where a non-blocking collective is under way
    int thread = 0;                          // number of the calling thread among the `threads` of this PE
    int threads = 1;
    int start = 0;
    int log_stride = 0;
    int size = 0;
    const long* psync = nullptr;
};

// The team of a group. Ends the PE when the handle is no team, the active set is malformed, or this PE is no member.
team::Team& team_of(const Call& call, const Group& group);

// A name of the team for messages.
std::array<char, 96> name_of(const team::Team& team);

// True when the group's members are on several nodes.
inline bool spans_nodes(const Call& call, const Group& group) {
    return memory::symmetric->has_network && team_of(call, group).span;
}

// How many of a PE's threads share its part of a collective with other nodes, of so many bytes (algorithm_table.h).
int sharers_of(size_t bytes, int threads);

// One thread of the group runs body(group.single_threaded()), a collective, on behalf of all its threads.
template <class Body>
int by_one_thread(const Call& call, const Group& group, Body body) {
    ThreadGroup(call, team_of(call, group), group.thread, group.threads).by_one([&] { body(group.single_threaded()); });
    return 0;
}

// The barrier of a team that spans nodes (collective/internode/internode.h). comparison: members compare their calls.
void internode_barrier(CollectiveCall& coll, CallComparison* comparison = nullptr);

// What each collective of this PE does at its start and end, a bit for each duty. Without a bit, it costs one test.
constexpr uint8_t kWatchCalls = 1;       // the members compare their calls (checked runs)
constexpr uint8_t kWatchThreads = 2;     // two threads of this PE in collectives of one team end the PE with a message
constexpr uint8_t kWatchTime = 8;        // an observer is told of the time in them
constexpr uint8_t kWatchOrder = 4;       // ThreadSanitizer is told of the order (base/tsan.h)
extern HEDDLE_PE_LOCAL uint8_t watched;  // written by watch
// Sets `watched`; called by init. several_threads: the program may have several threads.
void watch(bool several_threads);

// A thread of this PE is in a collective of the team from here on (kWatchThreads). Ends the PE when another one is.
void take_team(const Call& call, team::Team& team);
void leave_team(team::Team& team);

// One collective operation, from entry to return. Ends the PE when the group is malformed or lacks this PE, and when
// two threads of a PE are in collectives of one team (kWatchThreads). In a checked run also when members' calls differ.
class CollectiveCall {
  public:
    CollectiveCall(const Call& called, const Group& group, const Shape& shape)
        : CollectiveCall(called, group, team_of(called, group)) {
        if (__builtin_expect(is_watched(), 0))
            begin(shape);
    }
    ~CollectiveCall() {
        if (__builtin_expect(is_watched(), 0))
            end();
    }
    CollectiveCall(const CollectiveCall&) = delete;
    CollectiveCall& operator=(const CollectiveCall&) = delete;

    const Call& call;
    team::Team& team;
    MemberState& state;  // among the members on this node, which are all members unless the team spans nodes
    const ThreadGroup thread_group;

    int size() const { return team.members.size; }
    int rank() const { return team.rank; }
    int pe(int of_rank) const { return team.members.pe(of_rank); }
    // A barrier of all members with all their threads.
    void barrier() {
        thread_group.by_one([&] { team.span ? internode_barrier(*this) : team::barrier(call, state); });
    }
    // A barrier of the members on this node with all their threads. Before it, one thread of each member calls
    // prepare(), which fills the member's inline data or bounce buffer.
    template <class Prepare>
    void barrier_with(Prepare prepare) {
        thread_group.by_one([&] {
            prepare();
            team::barrier(call, state);
        });
    }

    void barrier_here() {
        barrier_with([] {});
    }

  private:
    CollectiveCall(const Call& called, const Group& group, team::Team& of_group)
        : call(called),
          team(of_group),
          state(of_group.state),
          thread_group(called, of_group, group.thread, group.threads) {
        HEDDLE_INVARIANT(rank() >= 0 && rank() < size() && pe(rank()) == memory::symmetric->pe);
        HEDDLE_INVARIANT(state.size() <= size() && (team.span || state.size() == size()));
        if (of_group.sequence)  // collectives posted before come first
            team::wait_for_posted(called.function, of_group);
    }
    static bool is_watched(uint8_t what = UINT8_MAX) { return (watched & what) != 0; }
    void begin(const Shape& shape);
    void end();
    bool is_of_one_thread() const;
};

// A symmetric buffer, as this PE addresses it on each member.
class Buffer {
  public:
    // Ends the PE unless [address, address + bytes) is symmetric here. A buffer of 0 bytes is not checked.
    Buffer(const Call& call, const char* argument, const void* address, size_t bytes)
        : peers_(memory::symmetric->peers) {
        const memory::SymmetricRegion& heap = memory::symmetric->heap;
        if (heap.holds(address) && bytes <= heap.bytes_from(address) && !base::settings.observed)
            offset_ = reinterpret_cast<uintptr_t>(address) - heap.base;
        else if (bytes != 0)
            check(call, argument, address, bytes);
    }

    char* on(int world_pe) const {
        HEDDLE_INVARIANT(world_pe >= 0 && world_pe < memory::symmetric->n_pes);
        const heddle_peer& peer = peers_[world_pe];
        return (in_heap_ ? peer.heap : peer.data) + offset_;
    }

  private:
    // The slow part of the constructor: static data, checked runs, and complaints.
    void check(const Call& call, const char* argument, const void* address, size_t bytes);

    const heddle_peer* peers_;
    size_t offset_ = 0;
    bool in_heap_ = true;
};

// In a checked run: ends the PE when dest and source overlap without being the same.
void check_in_place(const Call& call, const void* dest, const void* source, size_t bytes);

}  // namespace heddle::collective
