// Teams (section 9.4): the members of a team, this PE's state in its team segment, and its contexts' table of peers.
// The predefined teams live as long as the library. All others are pooled objects, so that the handle of a destroyed
// team can still be recognized.
//
// Threads: create and destroy hold one lock. `state` belongs to the thread that is in a collective of the team. Nothing
// else changes while the team is alive.
#pragma once

#include "fabric/endpoint/stream_set.h"
#include "progress/sequence.h"
#include "sync/central_barrier.h"
#include "team/team_segment.h"

#include <heddle/abi.h>
#include <heddle/constants.h>
#include <type_traits>

namespace heddle::team {

// Where the threads of this PE synchronize that carry out one collective together (collective/thread_group.h).
struct ThreadGroupState {
    sync::CentralBarrier central_barrier;
    // In a checked run: the function and the number of threads that the first thread to arrive gave, and each thread's
    // place of call, by its number. Null and 0 while no thread has arrived.
    static constexpr int kWatched = 64;
    std::atomic<const char*> function;
    std::atomic<int> threads;
    std::atomic<const void*> callers[kWatched];
    void* of_first;  // an object of thread 0, which the others use (ThreadGroup::of_first); ordered by the barrier
};

// The nodes of a team with members on several nodes. MemberState then covers the members on this node. Between nodes
// the members exchange control messages (collective/internode/internode.h), matched by id and step: alike on all
// members.
struct Span {
    int n_nodes = 0;
    int node = 0;            // this PE's node among them
    int* node_of = nullptr;  // by rank: the node of each member
    int* members = nullptr;  // the ranks, node by node, in order on each
    int* begins = nullptr;   // by node: where the node's ranks begin in `members`; and the end
    int* locals = nullptr;   // the members on this node: PEs of the world
    uint64_t id = 0;
    uint64_t steps = 0;
    uint32_t splits = 0;

    // Members are at most so many steps ahead of those on other nodes (collective/internode/internode_step.h).
    static constexpr uint64_t kStepsAhead = 256;
    // Of one member's control messages, so many bytes at most wait here. docs/internals/collectives.md has the parts:
    // what pieces of scans, gathered blocks and exchanges take in the steps that members may be ahead.
    static constexpr size_t kBlockBytes = 8192, kShortBytes = 8192, kPiecesBytes = size_t{32} * 16 * 1024;
    size_t most_waiting() const;
    bool is_allowed = false;  // they may, as far as the control inbox is concerned

    static constexpr int kStepBits = 22;  // of a step's word; 40 bits of the id beside them

    static uint64_t word_of(uint64_t team_id, uint64_t step) {
        return (team_id >> 24) << kStepBits | (step & ((uint64_t{1} << kStepBits) - 1)) | uint64_t{1} << 63;
    }
    uint64_t word_of(uint64_t step) const { return word_of(id, step); }
    int count(int of_node) const { return begins[of_node + 1] - begins[of_node]; }
    int member(int of_node, int index) const { return members[begins[of_node] + index]; }
    int leader(int of_node) const { return members[begins[of_node]]; }
};

// A further sequence of an instance, with streams of its own: it carries out a share of a collective that several
// threads have posted together (collective/posted_group.h). Kept as long as the instance's object.
struct Helper {
    explicit Helper(progress::Engine& engine) : sequence(engine) {}

    progress::Sequence sequence;
    fabric::StreamSetList stream_sets;
    ThreadGroupState thread_group = {};  // of the first helper: where all shares of the instance meet
    Helper* next = nullptr;
};

struct Team {
    heddle_team abi;  // first: a shmem_team_t points here, or to a predefined handle
    bool alive = false;
    uint32_t lives = 0;  // of teams in this object: advances when one ends
    shmem_team_t handle = nullptr;
    Members members;
    int rank = 0;  // this PE's number in the team
    int num_contexts = 0;
    MemberState state;
    Span* span = nullptr;  // null: all members are on this node
    ThreadGroupState thread_group = {};
    // The collective function in which a thread of this PE is on this team, and its place of call; null: none. Kept
    // where collective::watch says so.
    std::atomic<const char*> inside{nullptr};
    std::atomic<const void*> inside_caller{nullptr};
    // The order of the team's non-blocking collectives and their streams to the network; null before the first of them.
    // Of a further instance: of those in it.
    progress::Sequence* sequence = nullptr;
    fabric::StreamSetList stream_sets;
    Helper* helpers = nullptr;             // the list grows at its end, by what is under way in the instance
    uint32_t posted = 0;                   // non-blocking collectives; accessed by who posts alone
    Team* instances[kInstances - 1] = {};  // further ones, teams of the same members; made when first used, then kept
    OwnSegment* own_segment = nullptr;     // for a member alone on its node; kept for the next team of this object
    heddle_peer* own_peers = nullptr;      // a table of its own, made for the first context, kept for the next team
    const heddle_peer* peers = nullptr;    // the table of the team's contexts; null: none yet
    Team* next_free = nullptr;
};
static_assert(std::is_standard_layout_v<Team>);

struct Teams;
extern HEDDLE_PE_LOCAL base::PePointer<Teams> teams;  // this PE's; lives as long as the process

// Sets up the predefined teams, after start_team_segments. Teams created before an earlier finalize are gone. nodes:
// the node of each PE; null when there is one node.
void start_teams(int pe, int n_pes, const int* nodes = nullptr);

// The network is open: control messages for the world team may wait. Later teams see to theirs.
void allow_control_messages();

// The members of a team on this PE's node: their number, and the first of them as a PE of the world.
struct Part {
    int first = -1;
    int count = 0;
};
Part part_on_this_node(const Members& members);
// The id of the team that a split of parent creates for members; 0 when parent is on one node.
uint64_t id_of_split(const Team& parent, const Members& members);

// The instance of the team's next non-blocking collective: the team itself, or a further one. The members post in one
// order, so they go round the instances alike. In a checked run always the team itself, but under chaos: its members
// compare all calls. Called by the thread that posts. Ends the PE when there is no memory.
Team& next_instance(const char* function, Team& team);

// Returns when the non-blocking collectives that were posted for the team are complete. Within one: at once.
void wait_for_posted(const char* function, Team& team);

// Destroys every created team; its segment is free when all members have called this. Closes the teams' tables of
// peers.
void stop_teams();

// Empties all tables of peers of teams, so that operations take the slow path.
void close_peer_tables();

// The team of a handle; null for SHMEM_TEAM_INVALID and for a destroyed team. A handle that never was one is only
// recognized in checked runs.
Team* find(shmem_team_t handle);

// The team of an active set, made on first use. Null when there is no free segment (segment_limit) or no memory.
Team* find_active_set(const char* function, int start, int log_stride, int size);

// Creates a team in a segment that its first member on this node has taken; this PE is a member. Null when there is no
// memory. id: from id_of_split.
Team* create(const Members& members, int segment, int num_contexts, uint64_t id = 0);

// This PE leaves the team for good.
void destroy(Team* team);

// How many steps this PE has begun in a team.
struct Begun {
    uint32_t in_segment = 0;
    uint64_t across = 0;
};
Begun begun(const Team& team);
// Where a step's word belongs among the teams of this PE. Of an instance that this PE has not used, too: others may
// wait for it there.
struct StepOf {
    const Team* team = nullptr;  // null: none, or teams are being made or destroyed
    int instance = 0;
    Begun begun;
};
// on_this_node: the word comes from a PE of this node.
StepOf team_of_step(uint64_t word, bool on_this_node);
int32_t steps_ahead(uint64_t word, const Begun& begun);

// The table of peers of the team's contexts, by the team's ranks; null when there is no address space for a table.
// open: the entries hold the peers' addresses; otherwise they are empty (checked runs).
const heddle_peer* peers_of(Team* team, bool open);

}  // namespace heddle::team
