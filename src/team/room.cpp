#include "team/room.h"

#include "base/settings.h"
#include "base/tsan.h"
#include "os/pause.h"
#include "progress/wait_policy.h"
#include "sync/bell.h"
#include "team/rooms.h"
#include "team/whereabouts.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace heddle::team {

HEDDLE_PE_LOCAL Rooms rooms;

namespace {

constexpr int kBits = 64;
constexpr int kPredefined = 2;  // kWorldRoom, kSharedRoom

constexpr size_t kPage = 4096;

constexpr size_t whole_pages(size_t bytes) {
    return (bytes + kPage - 1) / kPage * kPage;
}

size_t room_bytes(int seats) {
    return whole_pages(sizeof(RoomHead) + static_cast<size_t>(seats) * (sizeof(Seat) + 2 * kMailBytes));
}

// The class of rooms for so many members, two or more: classes[0] is of two seats.
int class_for(int size) {
    return std::bit_width(static_cast<unsigned>(size) - 1) - 1;
}

// Lays the area out from `shared` on, which may be null, and returns how many bytes that takes.
size_t lay_out(Rooms* to, char* shared, int n_slots) {
    size_t bytes = 0;
    const auto take = [&](size_t more) {
        char* const taken = shared ? shared + bytes : nullptr;
        bytes += whole_pages(more);
        return taken;
    };
    const auto slots = static_cast<size_t>(n_slots);
    to->whereabouts = reinterpret_cast<Whereabouts*>(take(slots * sizeof(Whereabouts)));
    to->bells = reinterpret_cast<sync::Bell*>(take(slots * sizeof(sync::Bell)));
    to->n_classes = n_slots > 1 ? class_for(n_slots) + 1 : 0;
    int first = kPredefined;
    for (int i = 0; i < to->n_classes; ++i) {
        RoomClass& one = to->classes[i];
        one.seats = std::min(2 << i, n_slots);
        one.number = kRoomsPerPe * n_slots / one.seats;
        one.first = first;
        one.used = reinterpret_cast<std::atomic<uint64_t>*>(take(static_cast<size_t>(one.number) / kBits * 8 + 8));
        one.room_bytes = room_bytes(one.seats);
        first += one.number;
    }
    to->n_active_sets = first - kPredefined;
    const auto n_active_sets = static_cast<size_t>(to->n_active_sets);
    to->active_sets = reinterpret_cast<ActiveSetEntry*>(take(n_active_sets * sizeof(ActiveSetEntry)));
    to->predefined = {n_slots, kPredefined, 0, nullptr, nullptr, room_bytes(n_slots)};
    to->predefined.begin = take(kPredefined * to->predefined.room_bytes);
    for (int i = 0; i < to->n_classes; ++i)
        to->classes[i].begin = take(static_cast<size_t>(to->classes[i].number) * to->classes[i].room_bytes);
    return bytes;
}

const RoomClass& class_of(int index) {
    const RoomClass* found = &rooms.predefined;
    for (int i = 0; i < rooms.n_classes && rooms.classes[i].first <= index; ++i) found = &rooms.classes[i];
    return *found;
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

uint32_t begin_telling(const Call& call, Place& place, uint32_t more) {
    if (place.count + 1 + more - place.all_done >= kDepth)
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
    Rooms plan;
    return lay_out(&plan, nullptr, n_slots);
}

void start_rooms(char* shared, int slot, int n_slots, bool crowded, bool spans_nodes, const int* slots) {
    lay_out(&rooms, shared, n_slots);
    rooms.slot = slot;
    rooms.slots = slots;
    rooms.n_slots = n_slots;
    rooms.crowded = crowded;
    rooms.spans_nodes = spans_nodes;
    sync::bells = {rooms.bells, n_slots, rooms.bells + slot};
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
    const RoomClass& of = class_of(index);
    return reinterpret_cast<RoomHead*>(of.begin + static_cast<size_t>(index - of.first) * of.room_bytes);
}

Room room_at(int index) {
    RoomHead* head = head_of(index);
    Seat* seats = reinterpret_cast<Seat*>(head + 1);
    return {&head->meeting, seats, reinterpret_cast<char*>(seats + class_of(index).seats), index};
}

void OwnRoom::clear() {
    memset(static_cast<void*>(this), 0, offsetof(OwnRoom, mail));
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
    if (size <= 1)
        return kOwnRoom;
    const RoomClass& of = rooms.classes[class_for(size)];
    for (int begin = 0; begin < of.number; begin += kBits) {
        std::atomic<uint64_t>& used = of.used[begin / kBits];
        uint64_t bits = used.load(std::memory_order_relaxed);
        for (int bit; (bit = std::countr_one(bits)) < std::min(kBits, of.number - begin);) {
            // Acquire: pairs with the release in leave_room, after which nobody touches the room.
            if (!used.compare_exchange_weak(bits, bits | uint64_t{1} << bit, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                continue;
            tsan::acquire();
            const int index = of.first + begin + bit;
            RoomHead* head = head_of(index);
            const bool was_used = head->used;
            memset(static_cast<void*>(head), 0, sizeof *head);
            head->used = true;
            if (was_used)
                memset(static_cast<void*>(head + 1), 0, static_cast<size_t>(size) * sizeof(Seat));
            claim_room(index, members);
            return index;
        }
    }
    return kNoRoom;
}

void leave_room(int index, int members) {
    if (index < kPredefined)
        return;
    RoomHead* head = head_of(index);
    tsan::release();
    // acq_rel: the last to leave passes on that all others have left.
    if (head->left.fetch_add(1, std::memory_order_acq_rel) + 1 < static_cast<uint32_t>(members))
        return;
    const RoomClass& of = class_of(index);
    const int number = index - of.first;
    of.used[number / kBits].fetch_and(~(uint64_t{1} << (number % kBits)),
                                      std::memory_order_release);  // pairs with take_room
}

int active_set_room(const char* function, const Members& members, int log_stride, int size) {
    if (size <= 1)
        return kOwnRoom;
    const uint64_t key = uint64_t{1} << 63 | static_cast<uint64_t>(log_stride) << 48 |
                         static_cast<uint64_t>(members.start) << 24 | static_cast<uint64_t>(members.size);
    for (int i = 0; i < rooms.n_active_sets; ++i) {
        ActiveSetEntry& entry = rooms.active_sets[i];
        uint64_t found = 0;
        // Relaxed: the key says only who takes the room; what is in it comes with the room.
        if (entry.key.compare_exchange_strong(found, key, std::memory_order_relaxed)) {
            const int room = take_room(members, size);
            entry.room.store(room + 1 == 0 ? -1 : room + 1, std::memory_order_release);  // pairs with the load below
            return room;
        }
        if (found != key)
            continue;
        int room = 0;
        progress::wait_for_store(function, &entry.room, [&] {
            return (room = entry.room.load(std::memory_order_acquire)) != 0;  // pairs with the store above
        });
        return room > 0 ? room - 1 : kNoRoom;
    }
    return kNoRoom;
}

RoomLimit room_limit(int size) {
    const int which = class_for(std::max(size, 2));
    return {(1 << which) + 1, rooms.classes[which].seats, rooms.classes[which].number};
}

}  // namespace heddle::team
