// Teams (section 9.4): who is in one, its place in a team segment, the table of peers of its contexts. The predefined
// ones live as long as the library; the others are pooled objects, so that a handle of a destroyed team can still be
// named.
//
// Threads: create and destroy under one lock; the rest reads what does not change while the team is alive, but `place`,
// which belongs to the one thread that is in a collective of the team.
#pragma once

#include "fabric/endpoint/stream_set.h"
#include "progress/sequence.h"
#include "sync/central_barrier.h"
#include "team/team_segment.h"

#include <heddle/abi.h>
#include <heddle/constants.h>
#include <type_traits>

namespace heddle::team {

// Where the threads of this PE meet that carry out one collective together (collective/thread_group.h).
struct ThreadGroupState {
    sync::CentralBarrier central_barrier;
    // In a checked run: what the first of them is in, and how many it said there are; null and 0 when none has come.
    // And where those that have come were called, by their numbers.
    static constexpr int kWatched = 64;
    std::atomic<const char*> function;
    std::atomic<int> threads;
    std::atomic<const void*> callers[kWatched];
};

// The nodes of a team whose members are on several. Its place is then in a team segment of those on this node; across
// nodes they meet by control messages (collective/internode/internode.h), whose keys are the id and the number of the
// step: alike on all members.
struct Span {
    int n_nodes = 0;
    int node = 0;            // this PE's, of these
    int* node_of = nullptr;  // of each member
    int* members = nullptr;  // their numbers, node by node, on each in order
    int* begins = nullptr;   // where a node's begin among them; and the end
    int* locals = nullptr;   // the members on this node: PEs of the world
    uint64_t id = 0;
    uint64_t steps = 0;
    uint32_t splits = 0;

    static constexpr int kStepBits = 22;  // of a step's word; beside 40 of the id

    uint64_t word_of(uint64_t step) const {
        return (id >> 24) << kStepBits | (step & ((uint64_t{1} << kStepBits) - 1)) | uint64_t{1} << 63;
    }
    int count(int of_node) const { return begins[of_node + 1] - begins[of_node]; }
    int member(int of_node, int index) const { return members[begins[of_node] + index]; }
    int leader(int of_node) const { return members[begins[of_node]]; }
};

struct Team {
    heddle_team abi;  // first: a shmem_team_t points here, or to one of the predefined handles
    bool alive = false;
    shmem_team_t handle = nullptr;
    Members members;
    int rank = 0;  // this PE's number in it
    int num_contexts = 0;
    MemberState state;
    Span* span = nullptr;  // null: all members are on this node
    ThreadGroupState thread_group = {};
    // The function that a thread of this PE is in on this team, and where it was called, where that is watched
    // (collective/collective_call.h); null: none.
    std::atomic<const char*> inside{nullptr};
    std::atomic<const void*> inside_caller{nullptr};
    // Of its non-blocking collectives, once there was one: their order, and their way to the network.
    progress::Sequence* sequence = nullptr;
    std::atomic<fabric::StreamSet*> stream_sets{nullptr};
    OwnSegment* own_segment = nullptr;   // where no other member is on this node; kept for the next team
    heddle_peer* own_peers = nullptr;    // a table of its own, made for its first context, kept for the next team
    const heddle_peer* peers = nullptr;  // the table of its contexts; null: none yet
    Team* next_free = nullptr;
};
static_assert(std::is_standard_layout_v<Team>);

struct Teams;
extern HEDDLE_PE_LOCAL base::PePointer<Teams> teams;  // this PE's; lives as long as the process

// Sets up the predefined teams; the team segments are started already. Those created before an earlier finalize are
// gone. nodes: the node of each PE, null when there is one.
void start_teams(int pe, int n_pes, const int* nodes = nullptr);

// Those of the members that are on this PE's node: how many, and the first, a PE of the world.
struct Part {
    int first = -1;
    int count = 0;
};
Part part_on_this_node(const Members& members);
// The id of the team that a split of parent makes for members.
uint64_t id_of_split(const Team& parent, const Members& members);

// Every team created is gone, and its team segment free when all have called this; tables of peers are closed.
void stop_teams();

// All tables of peers of teams become empty, so that operations take the slow path.
void close_peer_tables();

// The team of a handle, or null for SHMEM_TEAM_INVALID and for one that was destroyed. A handle that was none ever is
// noticed in checked runs.
Team* find(shmem_team_t handle);

// The team of an active set, made when it is first used; null when there is no room for it (segment_limit) or no
// memory.
Team* find_active_set(const char* function, int start, int log_stride, int size);

// A team in a team segment that its first member on this node has taken; this PE is one of the members. Null when there
// is no memory. id: as id_of_split has it.
Team* create(const Members& members, int segment, int num_contexts, uint64_t id = 0);

// This PE leaves the team for good.
void destroy(Team* team);

// The team of this PE that a step's word is of; null when none is. On its node: the word comes from a PE of this node.
const Team* team_of_step(uint64_t word, bool on_this_node);
// How many steps a PE has begun in a team; and how far the step of a word is ahead of them.
struct Begun {
    uint32_t in_segment = 0;
    uint64_t across = 0;
};
Begun begun(const Team& team);
int32_t steps_ahead(uint64_t word, const Begun& begun);

// The table of peers of the team's contexts, in the team's numbering; null when there is no address space for one.
// open: its entries hold the peers' addresses, otherwise nothing (checked runs).
const heddle_peer* peers_of(Team* team, bool open);

}  // namespace heddle::team
