// All rooms of the node as they lie in shared memory: for room.cpp and whereabouts.cpp alone.
#pragma once

#include "sync/bell.h"
#include "team/room.h"

namespace heddle::team {

// Rooms come in classes: of 2 seats, 4, 8, ... up to one for every PE of the node. A class has as many seats as the
// others: kRoomsPerPe for each PE, so that no class can run out before each PE is in that many teams of it. They are
// address space until they are used.
constexpr int kRoomsPerPe = 1024;
constexpr int kMostClasses = kMostRounds;  // log2 of bootstrap::kMaxPes

// The active sets of the job with several members on this node, in the order in which they were first used; they keep
// their rooms.
struct ActiveSetEntry {
    std::atomic<uint64_t> key;  // 0: none
    std::atomic<int> room;      // plus one; 0: being taken; -1: there was none
};

struct RoomHead {
    sync::Meeting meeting;
    std::atomic<uint32_t> left;  // members that have left for good
    std::atomic<int> start, stride, size;
    bool used;  // has had members before: its seats are no longer zeroed. Of whoever takes it.
};

// Where a PE is; all relaxed: a reader that sees half a change looks again a second later.
struct alignas(64) Whereabouts {
    static constexpr size_t kTextWords = 16;

    std::atomic<int> room;  // plus one; 0: in no collective; -1: in one where no other is
    std::atomic<uint32_t> step;
    std::atomic<uint32_t> threads;
    std::atomic<int> awaited;                // the PE that it waits for outside collectives, plus one; 0: none
    std::atomic<uint64_t> text[kTextWords];  // function and place of the call, as base::CallText
};

struct RoomClass {
    int seats = 0;
    int number = 0;                         // of rooms
    int first = 0;                          // index
    std::atomic<uint64_t>* used = nullptr;  // a bit for each
    char* begin = nullptr;
    size_t room_bytes = 0;
};

struct Rooms {
    Whereabouts* whereabouts = nullptr;  // by slot
    sync::Bell* bells = nullptr;         // by slot
    ActiveSetEntry* active_sets = nullptr;
    int n_active_sets = 0;  // room for as many as there are rooms
    int n_classes = 0;
    RoomClass predefined;  // the two of the world and of what shares memory, which are always taken
    RoomClass classes[kMostClasses];
    int slot = 0;  // of n_slots: the PEs that share the memory, which in a job on one node are all, by their numbers
    int n_slots = 0;
    const int* slots = nullptr;  // of each PE; null: its number
    bool crowded = false;        // more PEs on the node than cores
    bool spans_nodes = false;    // the job does
};
extern HEDDLE_PE_LOCAL Rooms rooms;

RoomHead* head_of(int index);

}  // namespace heddle::team
