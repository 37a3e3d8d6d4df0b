// All rooms of the node as they lie in shared memory: for room.cpp and whereabouts.cpp alone.
#pragma once

#include "team/room.h"

namespace heddle::team {

struct alignas(64) Directory {
    static constexpr int kTeams = 768;       // made by splits and alive at once, on a node
    static constexpr int kActiveSets = 256;  // distinct ones of a job

    std::atomic<uint64_t> used[kTeams / 64];         // a bit for each room of a team
    std::atomic<uint64_t> active_sets[kActiveSets];  // the key of each, 0 where there is none
};

struct RoomHead {
    sync::Meeting meeting;
    std::atomic<uint32_t> left;  // members that have left for good
    std::atomic<int> start, stride, size;
};

// Where a PE is; all relaxed: a reader that sees half a change looks again a second later.
struct alignas(64) Whereabouts {
    static constexpr size_t kTextWords = 16;

    std::atomic<int> room;  // plus one; 0: in no collective
    std::atomic<uint32_t> step;
    std::atomic<uint32_t> threads;
    std::atomic<int> awaited;                // the PE that it waits for outside collectives, plus one; 0: none
    std::atomic<uint64_t> text[kTextWords];  // function and place of the call, as base::CallText
};

struct Rooms {
    Directory* directory = nullptr;
    Whereabouts* whereabouts = nullptr;  // by slot
    char* first_room = nullptr;
    size_t room_bytes = 0;
    int slot = 0;  // of n_slots: the PEs that share the memory, which in a job on one node are all, by their numbers
    int n_slots = 0;
    const int* slots = nullptr;  // of each PE; null: its number
    bool crowded = false;        // more PEs on the node than cores
    bool spans_nodes = false;    // the job does
};
extern HEDDLE_PE_LOCAL Rooms rooms;

RoomHead* head_of(int index);

}  // namespace heddle::team
