// All team segments of a node as they lie in shared memory; for team_segment.cpp and deadlock.cpp alone.
#pragma once

#include "sync/wakeup.h"
#include "team/team_segment.h"

namespace heddle::team {

// Segments come in classes of 2, 4, 8, ... member slots, up to one slot for every PE of the node. All classes have
// equally many member slots in total, kSegmentsPerPe for each PE: no class runs out before each PE is in that many of
// its teams. Unused segments take address space, no memory.
constexpr int kSegmentsPerPe = 1024;
constexpr int kMaxClasses = kMaxRounds;  // log2 of bootstrap::kMaxPes

// An active set with several members on this node, in the order of first use. An active set keeps its segment.
struct ActiveSetEntry {
    std::atomic<uint64_t> key;  // 0: the entry is free
    std::atomic<int> segment;   // index plus one; 0: being taken; -1: no segment was free
};

struct SegmentHead {
    sync::CentralBarrier central_barrier;
    std::atomic<uint32_t> left;  // members that have left for good
    std::atomic<int> start, stride, size;
    bool used;  // the segment had members before, so its member slots are not zeroed; accessed by the taker alone
    // A bit for each further instance that had members before; in the head of instance 0 alone.
    std::atomic<uint32_t> instances;
};

// Where a PE waits. All accesses relaxed: a reader that sees half a change looks again a second later.
struct alignas(64) WaitRecord {
    static constexpr size_t kTextWords = 16;

    std::atomic<int> segment;  // index plus one; 0: in no collective; -1: alone in its segment
    std::atomic<uint32_t> step;
    std::atomic<uint32_t> threads;
    std::atomic<int> awaited;                // the PE that it waits for outside collectives, plus one; 0: none
    std::atomic<uint64_t> text[kTextWords];  // function and place of the call, a base::CallText
};

struct SegmentClass {
    int member_slots = 0;
    int number = 0;                         // of segments
    int first = 0;                          // the index of the first segment
    std::atomic<uint64_t>* used = nullptr;  // a bit for each segment
    char* begin = nullptr;
    size_t segment_bytes = 0;

    // Of all segments of an instance. Instances are behind each other.
    size_t instance_bytes() const { return static_cast<size_t>(number) * segment_bytes; }
};

struct TeamSegments {
    WaitRecord* wait_records = nullptr;  // by slot
    sync::PeWakeup* wakeups = nullptr;   // by slot
    ActiveSetEntry* active_sets = nullptr;
    int n_segments = 0;     // of an instance: those of instance k have the numbers from k * n_segments on
    int n_active_sets = 0;  // as many as there are segments in all classes of an instance
    int n_classes = 0;
    SegmentClass predefined;  // those of SHMEM_TEAM_WORLD and SHMEM_TEAM_SHARED, always taken
    SegmentClass classes[kMaxClasses];
    int slot = 0;  // this PE's, of the n_slots PEs that share the memory
    int n_slots = 0;
    const int* slots = nullptr;   // the slot of each PE of the world; null: its number
    bool oversubscribed = false;  // more PEs on the node than cores
    bool spans_nodes = false;     // the job has several nodes
};
extern HEDDLE_PE_LOCAL TeamSegments team_segments;

SegmentHead* head_of(int index);

}  // namespace heddle::team
