// Team segment: the shared memory through which the members of one team on one node synchronize. Everything that
// collectives synchronize with is here.
//
//     wait records by slot | wake-ups by slot | active sets | which segments are taken | segment | segment | ...
//     segment = [ central barrier | member slot of each member | bounce buffers of each member ]
//
// A member that is alone on its node has a segment in private memory (kOwnSegment).
//
// Each team segment has kInstances instances: number 0 for the team's blocking collectives, and all of them in turn for
// non-blocking ones, which are under way beside each other (collective/nonblocking.h, docs/decisions/0059). A further
// instance is a segment with an index of its own.
//
// All members go through one sequence of numbered steps. A step is one of two kinds:
//     barrier       no member passes before all have arrived; what each wrote before is seen by all afterwards
//     publish step  some members publish their inline slot, and a member awaits only the slots that it needs.
// An inline slot carries up to kInlineBytes of data, which begin in the cache line that its reader waits on. Bounce
// buffers carry more.
//
// Invariant: all_done, the last step that every member is known to have finished, has the same value on all members,
// because only barriers advance it: a barrier of step k shows that all members have finished step k - 1. An inline slot
// is reused kDepth steps later, so begin_publish inserts a barrier before that could be too early. Only barriers use
// the two bounce buffers of a member, alternately: a buffer is written again two barriers later at the earliest.
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

// Inline slots of a member, used in turn; with 8 a broadcast to 8 PEs took 2.0 us (docs/decisions/0007)
constexpr uint32_t kDepth = 32;
constexpr size_t kInlineBytes = 240;
constexpr size_t kBounceBytes = 16384;
constexpr int kMaxRounds = 12;  // log2 of bootstrap::kMaxPes

struct alignas(128) InlineSlot {
    sync::EventCount event_count;  // at k: the inline data of step k is valid
    alignas(16) char inline_data[kInlineBytes];
};
static_assert(sizeof(InlineSlot) == 256);

struct alignas(128) PaddedEventCount {  // 128 bytes: no prefetcher joins two of them
    sync::EventCount event_count;
};

struct alignas(128) MemberSlot {
    InlineSlot inline_slots[kDepth];
    PaddedEventCount rounds[kMaxRounds];
    std::atomic<uint32_t> entered;  // the last step that the member has reached; kept in checked runs only
};

constexpr int kInstances = 2;

constexpr int kWorldSegment = 0;
constexpr int kSharedSegment = 1;
constexpr int kNoSegment = -1;   // all segments are taken
constexpr int kOwnSegment = -2;  // of one member, in private memory

// A team segment in this PE's address space.
struct TeamSegment {
    sync::CentralBarrier* central_barrier = nullptr;
    MemberSlot* member_slots = nullptr;
    char* bounce = nullptr;  // two buffers for each member
    int index = kOwnSegment;

    char* bounce_of(int rank, uint32_t piece) const {
        return bounce + (static_cast<size_t>(rank) * 2 + piece % 2) * kBounceBytes;
    }
};

// One PE's state as a member of a team segment: what it needs to go through the steps.
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

// --- Steps. The call is for messages, and for the deadlock detector of checked runs.

// Returns when all members have called. Every member then sees what each wrote before, also to next_inline_data or
// next_bounce.
void barrier(const Call& call, MemberState& state);
// As barrier; the step is published, too, so that a member that awaits it by mistake goes on, and sees the inline data.
void published_barrier(const Call& call, MemberState& state);
// Where this member writes its inline data for the coming barrier.
inline char* next_inline_data(const MemberState& state) {
    return state.inline_data(state.rank, state.count + 1);
}
// Where this member writes up to kBounceBytes for the coming barrier, after which bounced(rank) is each member's
// buffer.
inline char* next_bounce(MemberState& state) {
    HEDDLE_INVARIANT(state.rank >= 0 && state.rank < state.size());
    ++state.bounces;
    return state.segment.bounce_of(state.rank, state.bounces);
}

// Begins a publish step, and returns its number for inline_data, publish and await. more: the number of publish steps
// that follow without a barrier before all readers have read this one.
uint32_t begin_publish(const Call& call, MemberState& state, uint32_t more = 0);
inline void publish(MemberState& state, uint32_t step) {
    HEDDLE_INVARIANT(state.count - step < kDepth);  // a step that was begun
    state.segment.member_slots[state.rank].inline_slots[step % kDepth].event_count.advance_to(step);
}
void await(const Call& call, MemberState& state, int from_rank, uint32_t step);

// --- Steps as words, by which PEs publish where they wait; 0: none.

// Set in the word of a step of a team segment, with the segment's index and the step; clear in a word of Span::word_of.
constexpr uint64_t kStepOfSegment = uint64_t{1} << 62;

inline uint64_t word_of_segment(int index, uint32_t step) {
    return kStepOfSegment | static_cast<uint64_t>(index) << 32 | step;
}
inline uint64_t word_of(const MemberState& state, uint32_t step) {
    return word_of_segment(state.segment.index, step);
}

// --- The team segments of a job

// Bytes of the shared area for n_slots PEs. The area begins zeroed and stays valid across finalize and init.
size_t team_segments_bytes(int n_slots);

// Sets up this PE. shared: the area in this PE's address space. slot: this PE's among the n_slots PEs of the area.
// oversubscribed: the node has more PEs than cores. spans_nodes: the job has more than one node. slots: the slot of
// each PE of the world, an array that must stay valid; null: a PE's slot is its number.
void start_team_segments(char* shared, int slot, int n_slots, bool oversubscribed, bool spans_nodes = false,
                         const int* slots = nullptr);

// The value given to start_team_segments.
bool is_oversubscribed();

// The barrier algorithm for `size` members of this job.
BarrierAlgorithm barrier_algorithm_for(int size);

// The team segment with this index.
TeamSegment segment_at(int index);
// The further instance with that number of a team's segment: as new, but that of a predefined team keeps its steps.
// Called by each member, in its own time.
TeamSegment instance_segment_at(int index, int instance);
// The index of that instance of a segment.
int index_of_instance(int index, int instance);
// The segment of a member that is alone on its node, in private memory; clear makes the segment as new.
struct OwnSegment {
    sync::CentralBarrier central_barrier;
    MemberSlot member_slot;
    char bounce[2 * kBounceBytes];

    void clear();
    TeamSegment segment() { return {&central_barrier, &member_slot, bounce, kOwnSegment}; }
};
// Records the members of the segment for the deadlock detector.
void claim_segment(int index, const Members& members);
// Takes a free segment for these members, as new. kOwnSegment for one member, kNoSegment when all of its class are
// taken. One member calls, and tells the others. size: how many of the members are on this node.
int take_segment(const Members& members, int size);
inline int take_segment(const Members& members) {
    return take_segment(members, members.size);
}
// This member leaves for good; the last one frees the segment. Only for segments of take_segment.
void leave_segment(int index, int members);
// The segment of the active set, the same for each of its members on this node (`size` of them) until the job ends.
// kOwnSegment for one member, kNoSegment when all of its class are taken.
int active_set_segment(const char* function, const Members& members, int log_stride, int size);

// The class of segments for a number of members on this node: `number` segments, shared by all teams and active sets of
// `from` to `to` members.
struct SegmentLimit {
    int from, to;
    int number;
};
SegmentLimit segment_limit(int size);

}  // namespace heddle::team
