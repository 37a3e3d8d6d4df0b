// Team segment: the shared memory through which the members of one team on one node synchronize. Everything that
// collectives synchronize with is here.
//
//     wait records by slot | wake-ups by slot | active sets | which segments are taken | segment | segment | ...
//     segment = [ central barrier | member slot of each member | bounce buffers of each member ]
//
// A member without other members on its node has a segment in memory of its own (kOwnSegment).
//
// Members go through one sequence of steps, numbered 1, 2, ... alike on all of them. A step is either
//   a barrier       no member passes before all have come; what each wrote before is seen by all behind it; or
//   a publish step  some members publish their inline slot, and a member waits only for the slots that it needs.
// An inline slot carries up to kInlineBytes of data, which begin in the cache line that its reader waits on. Bounce
// buffers carry more.
//
// Invariant: all_done, the last step that every member is known to have finished, is alike on all members, because only
// barriers move it: a barrier of step k shows that all members have finished step k - 1. An inline slot is used again
// kDepth steps later, so begin_publish inserts a barrier before that could be too early. Bounce buffers are used by
// barriers alone, two in turn: a buffer is written again two barriers later at the earliest.
//
// Barrier algorithms (HEDDLE_BARRIER):
//   flat           each member publishes its own slot and waits for all others: one hand-off of a cache line, n - 1
//                  reads.
//   dissemination  in round r each member advances an event count of member (me + 2^r) and waits for its own; log2(n)
//                  hand-offs (D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization", 1988).
//   central        the last member to arrive releases all. Each member runs once per barrier. Used where there are more
//                  PEs than cores, because there every hand-off costs a context switch.
//
// Threads: one thread per PE and team at a time, as the specification asks of collectives.
#pragma once

#include "base/call.h"
#include "base/choices.h"
#include "base/invariant.h"
#include "base/members.h"
#include "base/pe_local.h"
#include "sync/central_barrier.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::team {

using base::BarrierAlgorithm;
using base::Call;
using base::Members;

constexpr uint32_t kDepth = 32;  // publish steps that the others may be behind: 30 between two barriers
constexpr size_t kInlineBytes = 240;
constexpr size_t kBounceBytes = 16384;
constexpr int kMaxRounds = 12;  // log2 of bootstrap::kMaxPes

struct alignas(128) InlineSlot {
    sync::EventCount event_count;  // open to k: the inline data of step k is there
    alignas(16) char inline_data[kInlineBytes];
};
static_assert(sizeof(InlineSlot) == 256);

struct alignas(128) PaddedEventCount {  // at the distance at which no prefetcher joins two of them
    sync::EventCount event_count;
};

struct alignas(128) MemberSlot {
    InlineSlot inline_slots[kDepth];
    PaddedEventCount rounds[kMaxRounds];
    std::atomic<uint32_t> entered;  // the last step that the member has come to; kept in checked runs alone
};

constexpr int kWorldSegment = 0;
constexpr int kSharedSegment = 1;
constexpr int kNoSegment = -1;   // all are taken
constexpr int kOwnSegment = -2;  // for one member, who brings the memory

// A team segment as this PE has it.
struct TeamSegment {
    sync::CentralBarrier* central_barrier = nullptr;
    MemberSlot* member_slots = nullptr;
    char* bounce = nullptr;  // two pieces for each member
    int index = kOwnSegment;

    char* bounce_of(int rank, uint32_t piece) const {
        return bounce + (static_cast<size_t>(rank) * 2 + piece % 2) * kBounceBytes;
    }
};

// One PE's place in a team segment: what it needs to go through the steps.
struct MemberState {
    TeamSegment segment;
    Members members;
    int rank = 0;
    BarrierAlgorithm barrier_algorithm = BarrierAlgorithm::kCentral;
    uint32_t count = 0;     // steps begun
    uint32_t all_done = 0;  // steps that all members have finished
    uint32_t bounces = 0;   // barriers with bounce buffers

    int size() const { return members.size; }
    char* inline_data(int of_rank, uint32_t step) const {
        return segment.member_slots[of_rank].inline_slots[step % kDepth].inline_data;
    }
    const char* bounced(int of_rank) const { return segment.bounce_of(of_rank, bounces); }
};

// --- Steps. function and caller are for messages and for the checks of a checked run.

// Meets; an inline data of this member may have been written into next_inline_data before.
void barrier(const Call& call, MemberState& state);
// Where this member's inline data for the coming barrier goes.
inline char* next_inline_data(const MemberState& state) {
    return state.inline_data(state.rank, state.count + 1);
}
// Where this member's bounce buffers for the coming barrier goes (kBounceBytes); control message(rank) is each member's
// behind it.
inline char* next_bounce(MemberState& state) {
    HEDDLE_INVARIANT(state.rank >= 0 && state.rank < state.size());
    ++state.bounces;
    return state.segment.bounce_of(state.rank, state.bounces);
}

// Begins a publish step, and returns its number for inline data, tell and hear. more: so many follow before the first
// has been heard by all who hear it, with no barrier in between.
uint32_t begin_publish(const Call& call, MemberState& state, uint32_t more = 0);
inline void publish(MemberState& state, uint32_t step) {
    HEDDLE_INVARIANT(state.count - step < kDepth);  // a step that was begun
    state.segment.member_slots[state.rank].inline_slots[step % kDepth].event_count.advance_to(step);
}
void await(const Call& call, MemberState& state, int from_rank, uint32_t step);

// --- Steps as words, by which PEs tell each other where they wait; 0 is none.

// beside the team segment's index and the step; else of a team's Span
constexpr uint64_t kStepOfSegment = uint64_t{1} << 62;

inline uint64_t word_of(const MemberState& state, uint32_t step) {
    return kStepOfSegment | static_cast<uint64_t>(state.segment.index) << 32 | step;
}

// --- TeamSegments of a job.

// Bytes of the shared area for so many PEs. It begins zeroed and stays valid across finalize and init.
size_t team_segments_bytes(int n_slots);

// Sets up this PE; shared: the area in this PE's address space. slot: of n_slots, the PEs of the area.
// oversubscribed: there are more PEs on the node than cores. spans_nodes: the job has more than one node.
// slots: of each PE of the world, which lives on; null: a PE's slot is its number.
void start_team_segments(char* shared, int slot, int n_slots, bool oversubscribed, bool spans_nodes = false,
                         const int* slots = nullptr);

// As start_team_segments was told.
bool is_oversubscribed();

// How `size` members of this job meet.
BarrierAlgorithm barrier_algorithm_for(int size);

// The team segment of an index, for a place in it.
TeamSegment segment_at(int index);
// The same for one, in its own memory; clear makes that as new.
struct OwnSegment {
    sync::CentralBarrier central_barrier;
    MemberSlot member_slot;
    char bounce[2 * kBounceBytes];

    void clear();
    TeamSegment segment() { return {&central_barrier, &member_slot, bounce, kOwnSegment}; }
};
// Tells all who look at the team segment whom it belongs to.
void claim_segment(int index, const Members& members);
// A team segment that nobody uses, as new, for these members; kOwnSegment for one, kNoSegment when all of its class are
// taken. One member calls, and tells the others. size: how many of the members are on this node.
int take_segment(const Members& members, int size);
inline int take_segment(const Members& members) {
    return take_segment(members, members.size);
}
// This member has left for good; the last one makes the team segment free. Teams made by take_segment alone.
void leave_segment(int index, int members);
// The team segment of the active set, `size` of whose members are on this node: the same for all of them, for ever.
// kOwnSegment for one, kNoSegment when all of its class are taken.
int active_set_segment(const char* function, const Members& members, int log_stride, int size);

// TeamSegments for that many members on this node are shared by teams and active sets of from to to.
struct SegmentLimit {
    int from, to;
    int number;
};
SegmentLimit segment_limit(int size);

}  // namespace heddle::team
