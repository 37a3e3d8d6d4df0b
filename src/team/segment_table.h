// All team segments of the node as they lie in shared memory: for team_segment.cpp and deadlock.cpp alone.
#pragma once

#include "sync/wakeup.h"
#include "team/team_segment.h"

namespace heddle::team {

// TeamSegments come in classes: of 2 member slots, 4, 8, ... up to one for every PE of the node. A class has as many
// member slots as the others: kSegmentsPerPe for each PE, so that no class can run out before each PE is in that many
// teams of it. They are address space until they are used.
constexpr int kSegmentsPerPe = 1024;
constexpr int kMaxClasses = kMaxRounds;  // log2 of bootstrap::kMaxPes

// The active sets of the job with several members on this node, in the order in which they were first used; they keep
// their team segments.
struct ActiveSetEntry {
    std::atomic<uint64_t> key;  // 0: none
    std::atomic<int> segment;   // plus one; 0: being taken; -1: there was none
};

struct SegmentHead {
    sync::CentralBarrier central_barrier;
    std::atomic<uint32_t> left;  // members that have left for good
    std::atomic<int> start, stride, size;
    bool used;  // has had members before: its member slots are no longer zeroed. Of whoever takes it.
};

// Where a PE is; all relaxed: a reader that sees half a change looks again a second later.
struct alignas(64) WaitRecord {
    static constexpr size_t kTextWords = 16;

    std::atomic<int> segment;  // plus one; 0: in no collective; -1: in one where no other is
    std::atomic<uint32_t> step;
    std::atomic<uint32_t> threads;
    std::atomic<int> awaited;                // the PE that it waits for outside collectives, plus one; 0: none
    std::atomic<uint64_t> text[kTextWords];  // function and place of the call, as base::CallText
};

struct SegmentClass {
    int member_slots = 0;
    int number = 0;                         // of team segments
    int first = 0;                          // index
    std::atomic<uint64_t>* used = nullptr;  // a bit for each
    char* begin = nullptr;
    size_t segment_bytes = 0;
};

struct TeamSegments {
    WaitRecord* wait_records = nullptr;  // by slot
    sync::PeWakeup* wakeups = nullptr;   // by slot
    ActiveSetEntry* active_sets = nullptr;
    int n_active_sets = 0;  // room for as many as there are team segments
    int n_classes = 0;
    SegmentClass predefined;  // the two of the world and of what shares memory, which are always taken
    SegmentClass classes[kMaxClasses];
    int slot = 0;  // of n_slots: the PEs that share the memory, which in a job on one node are all, by their numbers
    int n_slots = 0;
    const int* slots = nullptr;   // of each PE; null: its number
    bool oversubscribed = false;  // more PEs on the node than cores
    bool spans_nodes = false;     // the job does
};
extern HEDDLE_PE_LOCAL TeamSegments team_segments;

SegmentHead* head_of(int index);

}  // namespace heddle::team
