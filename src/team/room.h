// Room: the shared memory in which the members of one team meet, and how they do it. Everything that collectives
// synchronize with is here.
//
//     whereabouts by slot | bells by slot | active sets | which rooms are taken | room | room | ...
//     room = [ meeting | seat of each member | mail of each ]
//
// A place without other members on this node has a room in memory of its own (kOwnRoom).
//
// Members go through one sequence of steps, numbered 1, 2, ... alike on all of them. A step is
//   a meeting   all come, and nobody passes before all have come; what each wrote before is seen by all behind it;
//   a telling   some open their post, others wait for the posts that they need: nobody waits for the slow ones.
// A post carries a note, a few bytes that begin in the very cache line its reader waits on; mail lies beside for more.
//
// Invariant: all_done, the last step that every member is known to have finished, is alike on all members, because only
// meetings move it: a meeting of step k shows that all have finished step k - 1. A post and its note are used again
// kDepth steps later, so begin_telling puts a meeting in between before that could be too early. Mail is used by
// meetings alone, two pieces in turn: the one of two meetings ago is read.
//
// Ways to meet (HEDDLE_BARRIER):
//   flat           each opens its own post and waits for all the others: one hand-off of a cache line, n - 1 reads.
//   dissemination  in round r each opens a gate of member (me + 2^r) and waits for its own; log2(n) hand-offs
//                  (D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization", 1988).
//   central        the last to arrive lets all go. Each runs once per meeting, so it is the way where there are more
//   PEs
//                  than cores, and every hand-off costs a context switch.
//
// Threads: one thread per PE and team at a time, as the specification asks of collectives.
#pragma once

#include "base/call.h"
#include "base/pe_local.h"
#include "sync/meeting.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::team {

using base::Call;

// The PEs start, start + stride, ... of the world, in the order of their numbers in the team; or those places of a
// list, where the PEs of a node have no such order.
struct Members {
    int start = 0;
    int stride = 1;
    int size = 0;
    const int* list = nullptr;

    int pe(int rank) const {
        const int at = start + rank * stride;
        return list ? list[at] : at;
    }
    // The number that a PE of the world has among them, or -1.
    int rank(int pe) const {
        for (int rank = 0; list && rank < size; ++rank)
            if (this->pe(rank) == pe)
                return rank;
        if (list)
            return -1;
        if (stride == 0)
            return pe == start ? 0 : -1;
        const int rank = (pe - start) / stride;
        return rank >= 0 && rank < size && this->pe(rank) == pe ? rank : -1;
    }
};

enum class Way : int { kAuto, kCentral, kDissemination, kFlat };  // as in settings.def

constexpr uint32_t kDepth = 32;  // tellings that the others may be behind: 30 between two meetings
constexpr size_t kNoteBytes = 240;
constexpr size_t kMailBytes = 16384;
constexpr int kMostRounds = 12;  // log2 of bootstrap::kMaxPes

struct alignas(128) Post {
    sync::Gate gate;  // open to k: the note of step k is there
    alignas(16) char note[kNoteBytes];
};
static_assert(sizeof(Post) == 256);

struct alignas(128) PaddedGate {  // at the distance at which no prefetcher joins two of them
    sync::Gate gate;
};

struct alignas(128) Seat {
    Post posts[kDepth];
    PaddedGate rounds[kMostRounds];
    std::atomic<uint32_t> entered;  // the last step that the member has come to; kept in checked runs alone
};

constexpr int kWorldRoom = 0;
constexpr int kSharedRoom = 1;
constexpr int kNoRoom = -1;   // all are taken
constexpr int kOwnRoom = -2;  // for one member, who brings the memory

// A room as this PE has it.
struct Room {
    sync::Meeting* meeting = nullptr;
    Seat* seats = nullptr;
    char* mail = nullptr;  // two pieces for each member
    int index = kOwnRoom;

    char* mail_of(int rank, uint32_t piece) const {
        return mail + (static_cast<size_t>(rank) * 2 + piece % 2) * kMailBytes;
    }
};

// One PE's place in a room: what it needs to go through the steps.
struct Place {
    Room room;
    Members members;
    int rank = 0;
    Way way = Way::kCentral;
    uint32_t count = 0;     // steps begun
    uint32_t all_done = 0;  // steps that all members have finished
    uint32_t letters = 0;   // meetings with mail

    int size() const { return members.size; }
    char* note(int of_rank, uint32_t step) const { return room.seats[of_rank].posts[step % kDepth].note; }
    const char* letter(int of_rank) const { return room.mail_of(of_rank, letters); }
};

// --- Steps. function and caller are for messages and for the checks of a checked run.

// Meets; a note of this member may have been written into next_note before.
void meet(const Call& call, Place& place);
// Where this member's note for the coming meeting goes.
inline char* next_note(const Place& place) {
    return place.note(place.rank, place.count + 1);
}
// Where this member's mail for the coming meeting goes (kMailBytes); letter(rank) is each member's behind it.
inline char* next_letter(Place& place) {
    ++place.letters;
    return place.room.mail_of(place.rank, place.letters);
}

// Begins a telling, and returns its number for note, tell and hear. more: so many follow before the first has been
// heard by all who hear it, with no meeting in between.
uint32_t begin_telling(const Call& call, Place& place, uint32_t more = 0);
inline void tell(Place& place, uint32_t step) {
    place.room.seats[place.rank].posts[step % kDepth].gate.open(step);
}
void hear(const Call& call, Place& place, int from_rank, uint32_t step);

// --- Rooms of a job.

// Bytes of the shared area for so many PEs. It begins zeroed and stays valid across finalize and init.
size_t rooms_bytes(int n_slots);

// Sets up this PE; shared: the area in this PE's address space. slot: of n_slots, the PEs of the area.
// crowded: there are more PEs on the node than cores. spans_nodes: the job has more than one node.
// slots: of each PE of the world, which lives on; null: a PE's slot is its number.
void start_rooms(char* shared, int slot, int n_slots, bool crowded, bool spans_nodes = false,
                 const int* slots = nullptr);

// As start_rooms was told.
bool is_crowded();

// How `size` members of this job meet.
Way way_for(int size);

// The room of an index, for a place in it.
Room room_at(int index);
// The same for one, in its own memory; clear makes that as new.
struct OwnRoom {
    sync::Meeting meeting;
    Seat seat;
    char mail[2 * kMailBytes];

    void clear();
    Room room() { return {&meeting, &seat, mail, kOwnRoom}; }
};
// Tells all who look at the room whom it belongs to.
void claim_room(int index, const Members& members);
// A room that nobody uses, as new, for these members; kOwnRoom for one, kNoRoom when all of its class are taken. One
// member calls, and tells the others. size: how many of the members are on this node.
int take_room(const Members& members, int size);
inline int take_room(const Members& members) {
    return take_room(members, members.size);
}
// This member has left for good; the last one makes the room free. Teams made by take_room alone.
void leave_room(int index, int members);
// The room of the active set, `size` of whose members are on this node: the same for all of them, for ever. kOwnRoom
// for one, kNoRoom when all of its class are taken.
int active_set_room(const char* function, const Members& members, int log_stride, int size);

// Rooms for that many members on this node are shared by teams and active sets of from to to.
struct RoomLimit {
    int from, to;
    int number;
};
RoomLimit room_limit(int size);

}  // namespace heddle::team
