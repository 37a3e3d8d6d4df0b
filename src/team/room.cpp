#include "team/room.h"

#include "base/settings.h"
#include "base/tsan.h"
#include "os/pause.h"
#include "progress/wait_policy.h"
#include "sync/bell.h"
#include "team/rooms.h"
#include "team/whereabouts.h"

#include <bit>
#include <cstring>

namespace heddle::team {

HEDDLE_PE_LOCAL Rooms rooms;

namespace {

constexpr int kFirstActiveSet = 2;
constexpr int kFirstTeam = kFirstActiveSet + Directory::kActiveSets;
constexpr int kRooms = kFirstTeam + Directory::kTeams;
constexpr int kBits = 64;

constexpr size_t kPage = 4096;

constexpr size_t whole_pages(size_t bytes) {
    return (bytes + kPage - 1) / kPage * kPage;
}

size_t room_bytes(int n_slots) {
    return whole_pages(sizeof(RoomHead) + static_cast<size_t>(n_slots) * (sizeof(Seat) + 2 * kMailBytes));
}

// Where the bells begin, on a page of their own.
size_t bells_offset(int n_slots) {
    return whole_pages(sizeof(Directory) + static_cast<size_t>(n_slots) * sizeof(Whereabouts));
}

size_t head_bytes(int n_slots) {
    return bells_offset(n_slots) + whole_pages(static_cast<size_t>(n_slots) * sizeof(sync::Bell));
}

// Waits in a checked run, where it looks meanwhile whether that can end.
template <class Ready>
void watch(const Call& call, const sync::Gate& gate, Ready ready) {
    CircleWatch circle(call);
    progress::wait_for_store(call.function, &gate, [&] {
        if (ready())
            return true;
        circle.look();
        return false;
    });
}

// In a checked run; a non-blocking collective holds up nobody who would have to be named.
bool is_watched() {
    return base::settings.check && !progress::Fiber::current();
}

// Waits for a gate that every step of its kind opens.
void await(const Call& call, sync::Gate& gate, uint32_t step) {
    if (is_watched())
        watch(call, gate, [&] { return gate.reached(step); });
    else
        progress::wait_for_gate(call.function, gate, step);
}

// True when all others come while this member looks at their posts for about a microsecond.
bool all_come_soon(const Place& place, uint32_t step) {
    int looks = 100;
    for (int i = 1; i < place.size(); ++i) {
        const sync::Gate& gate = place.room.seats[(place.rank + i) % place.size()].posts[step % kDepth].gate;
        while (!gate.holds(step)) {
            if (--looks == 0)
                return false;
            os::pause();
        }
    }
    return true;
}

void meet_flat(const Call& call, Place& place, uint32_t step) {
    // Looking before waking lets this member's store travel while it fetches the others' lines.
    sync::Gate& mine = place.room.seats[place.rank].posts[step % kDepth].gate;
    mine.set(step);
    const bool all_here = all_come_soon(place, step);
    mine.wake();
    if (all_here)
        return;
    for (int i = 1; i < place.size(); ++i) hear(call, place, (place.rank + i) % place.size(), step);
}

void meet_central(const Call& call, Place& place, uint32_t step) {
    sync::Meeting& meeting = *place.room.meeting;
    meeting.arrive(static_cast<uint32_t>(place.size()), step);
    await(call, meeting.released, step);
}

void meet_by_dissemination(const Call& call, Place& place, uint32_t step) {
    for (int round = 0; 1 << round < place.size(); ++round) {
        const int partner = (place.rank + (1 << round)) % place.size();
        place.room.seats[partner].rounds[round].gate.open(step);
        // A partner may be one meeting ahead, never two: it cannot end the next one without this member.
        await(call, place.room.seats[place.rank].rounds[round].gate, step);
    }
}

uint32_t begin_step(Place& place) {
    const uint32_t step = ++place.count;
    if (base::settings.check)
        come_to(place, step);
    return step;
}

}  // namespace

void meet(const Call& call, Place& place) {
    const uint32_t step = begin_step(place);
    if (place.size() > 1) {
        switch (place.way) {
            case Way::kFlat:
                meet_flat(call, place, step);
                break;
            case Way::kDissemination:
                meet_by_dissemination(call, place, step);
                break;
            default:
                meet_central(call, place, step);
        }
    }
    place.all_done = step - 1;
}

uint32_t begin_telling(const Call& call, Place& place) {
    if (place.count + 1 - place.all_done == kDepth)
        meet(call, place);
    return begin_step(place);
}

void hear(const Call& call, Place& place, int from_rank, uint32_t step) {
    // A post may have been left at any older step, but is not opened to another before all have finished this one.
    sync::Gate& gate = place.room.seats[from_rank].posts[step % kDepth].gate;
    if (is_watched())
        watch(call, gate, [&] { return gate.holds(step); });
    else
        progress::wait_until_gate_holds(call.function, gate, step);
}

size_t rooms_bytes(int n_slots) {
    return head_bytes(n_slots) + kRooms * room_bytes(n_slots);
}

void start_rooms(char* shared, int slot, int n_slots, bool crowded, bool spans_nodes, const int* slots) {
    rooms.directory = reinterpret_cast<Directory*>(shared);
    rooms.whereabouts = reinterpret_cast<Whereabouts*>(shared + sizeof(Directory));
    rooms.first_room = shared + head_bytes(n_slots);
    rooms.room_bytes = room_bytes(n_slots);
    rooms.slot = slot;
    rooms.slots = slots;
    rooms.n_slots = n_slots;
    rooms.crowded = crowded;
    rooms.spans_nodes = spans_nodes;
    auto* const bells = reinterpret_cast<sync::Bell*>(shared + bells_offset(n_slots));
    sync::bells = {bells, n_slots, bells + slot};
}

bool is_crowded() {
    return rooms.crowded;
}

Way way_for(int size) {
    const Way asked = static_cast<Way>(base::settings.barrier);
    if (asked != Way::kAuto)
        return asked;
    constexpr int kFewReaders = 8;
    return rooms.crowded ? Way::kCentral : size <= kFewReaders ? Way::kFlat : Way::kDissemination;
}

RoomHead* head_of(int index) {
    return reinterpret_cast<RoomHead*>(rooms.first_room + static_cast<size_t>(index) * rooms.room_bytes);
}

Room room_at(int index) {
    RoomHead* head = head_of(index);
    Seat* seats = reinterpret_cast<Seat*>(head + 1);
    return {&head->meeting, seats, reinterpret_cast<char*>(seats + rooms.n_slots), index};
}

void claim_room(int index, const Members& members) {
    RoomHead* head = head_of(index);
    // Relaxed: read by CircleWatch alone, long after.
    head->start.store(members.start, std::memory_order_relaxed);
    head->stride.store(members.stride, std::memory_order_relaxed);
    // Circles are looked for where all members share the room.
    head->size.store(members.list || rooms.spans_nodes ? 0 : members.size, std::memory_order_relaxed);
}

int take_room(const Members& members, int size) {
    for (int word = 0; word < Directory::kTeams / kBits; ++word) {
        std::atomic<uint64_t>& used = rooms.directory->used[word];
        uint64_t bits = used.load(std::memory_order_relaxed);
        while (~bits != 0) {
            const int bit = std::countr_one(bits);
            // Acquire: pairs with the release in leave_room, after which nobody touches the room.
            if (!used.compare_exchange_weak(bits, bits | uint64_t{1} << bit, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                continue;
            tsan::acquire();
            const int index = kFirstTeam + word * kBits + bit;
            RoomHead* head = head_of(index);
            memset(static_cast<void*>(head), 0, sizeof *head);
            memset(static_cast<void*>(head + 1), 0, static_cast<size_t>(size) * sizeof(Seat));
            claim_room(index, members);
            return index;
        }
    }
    return -1;
}

void leave_room(int index, int members) {
    if (index < kFirstTeam)
        return;
    RoomHead* head = head_of(index);
    tsan::release();
    // acq_rel: the last to leave passes on that all others have left.
    if (head->left.fetch_add(1, std::memory_order_acq_rel) + 1 < static_cast<uint32_t>(members))
        return;
    const int team = index - kFirstTeam;
    rooms.directory->used[team / kBits].fetch_and(~(uint64_t{1} << (team % kBits)),
                                                  std::memory_order_release);  // pairs with take_room
}

int active_set_room(const Members& members, int log_stride) {
    const uint64_t key = uint64_t{1} << 63 | static_cast<uint64_t>(log_stride) << 48 |
                         static_cast<uint64_t>(members.start) << 24 | static_cast<uint64_t>(members.size);
    for (int i = 0; i < Directory::kActiveSets; ++i) {
        uint64_t found = 0;
        // Relaxed: only the number is agreed on; a room of an active set is new and zeroed when it is first used.
        if (rooms.directory->active_sets[i].compare_exchange_strong(found, key, std::memory_order_relaxed) ||
            found == key) {
            claim_room(kFirstActiveSet + i, members);
            return kFirstActiveSet + i;
        }
    }
    return -1;
}

}  // namespace heddle::team
