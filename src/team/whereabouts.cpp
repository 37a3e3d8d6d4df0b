#include "team/whereabouts.h"

#include "base/error.h"
#include "os/clock.h"
#include "progress/engine.h"
#include "team/rooms.h"

#include <cstring>
#include <initializer_list>

namespace heddle::team {

namespace {

// Circles are looked for in jobs on one node alone, where a PE's slot is its number.
constexpr uint64_t kBetweenLooksNs = 1000000000;

// Where pe is: its room and step, or room -1; or the PE that it waits for outside, otherwise -1. One number, to see
// whether it has moved.
struct Spot {
    int room;
    uint32_t step;
    int awaited;

    bool waits() const { return room >= 0 || awaited >= 0; }
};

Spot spot_of(int pe) {
    const Whereabouts& there = rooms.whereabouts[pe];
    return {there.room.load(std::memory_order_relaxed) - 1, there.step.load(std::memory_order_relaxed),
            there.awaited.load(std::memory_order_relaxed) - 1};
}

Members members_of(int room) {
    const RoomHead* head = head_of(room);
    return {head->start.load(std::memory_order_relaxed), head->stride.load(std::memory_order_relaxed),
            head->size.load(std::memory_order_relaxed)};
}

// The first PE that one at that spot waits for and that waits itself; -1 when there is none. Goes on behind *rank.
int awaited(const Spot& spot, int* rank) {
    if (spot.awaited >= 0)
        return ++*rank == 0 && spot_of(spot.awaited).waits() ? spot.awaited : -1;
    const Members members = members_of(spot.room);
    const Seat* seats = room_at(spot.room).seats;
    while (++*rank < members.size) {
        const uint32_t entered = seats[*rank].entered.load(std::memory_order_relaxed);
        if (static_cast<int32_t>(entered - spot.step) < 0 && spot_of(members.pe(*rank)).waits())
            return members.pe(*rank);
    }
    return -1;
}

// Follows "waits for" from pe, depth first, until it leads to `goal`; the way is left in path. seen: a byte per PE.
bool leads_back(int pe, int goal, char* seen, int* path, int* length) {
    seen[pe] = 1;
    path[(*length)++] = pe;
    const Spot spot = spot_of(pe);
    int rank = -1;
    for (int next; spot.waits() && (next = awaited(spot, &rank)) >= 0;) {
        if (next == goal)
            return true;
        if (!seen[next] && leads_back(next, goal, seen, path, length))
            return true;
    }
    --*length;
    return false;
}

constexpr int kMostLooked = 1024;  // PEs of a job that circles are looked for in: the books fit on a stack

}  // namespace

namespace {

void show(const Call& call) {
    Whereabouts& here = rooms.whereabouts[rooms.slot];
    const base::CallText text = base::describe(call);
    for (size_t i = 0; i < Whereabouts::kTextWords; ++i) {
        uint64_t word;
        memcpy(&word, text.data() + 8 * i, 8);
        here.text[i].store(word, std::memory_order_relaxed);
    }
    here.threads.store(progress::threads_of_program(), std::memory_order_relaxed);
}

}  // namespace

void enter_collective(const Call& call, int room_index) {
    show(call);
    rooms.whereabouts[rooms.slot].room.store(room_index + 1, std::memory_order_relaxed);
}

void leave_collective() {
    rooms.whereabouts[rooms.slot].room.store(0, std::memory_order_relaxed);
}

WaitForPe::WaitForPe(const Call& call, int pe) {
    show(call);
    rooms.whereabouts[rooms.slot].awaited.store(rooms.spans_nodes ? 0 : pe + 1, std::memory_order_relaxed);
}

WaitForPe::~WaitForPe() {
    rooms.whereabouts[rooms.slot].awaited.store(0, std::memory_order_relaxed);
}

void come_to(const Place& place, uint32_t step) {
    place.room.seats[place.rank].entered.store(step, std::memory_order_relaxed);
    if (!progress::Fiber::current())  // this PE is elsewhere
        rooms.whereabouts[rooms.slot].step.store(step, std::memory_order_relaxed);
}

base::CallText whereabouts_of(int pe) {
    base::CallText text = {};
    static_assert(sizeof text == 8 * Whereabouts::kTextWords);
    const Whereabouts& there = rooms.whereabouts[rooms.slots ? rooms.slots[pe] : pe];
    for (size_t i = 0; i < Whereabouts::kTextWords; ++i) {
        const uint64_t word = there.text[i].load(std::memory_order_relaxed);
        memcpy(text.data() + 8 * i, &word, 8);
    }
    text.back() = '\0';
    return text;
}

void CircleWatch::look() {
    const uint64_t now = os::now_ns();
    if (now < next_look_ns_)
        return;
    const bool first = next_look_ns_ == 0;
    next_look_ns_ = now + kBetweenLooksNs;
    if (first || told_ || rooms.n_slots > kMostLooked)
        return;
    char seen[kMostLooked] = {};
    int path[kMostLooked], length = 0;
    uint64_t circle = 0;
    if (leads_back(rooms.slot, rooms.slot, seen, path, &length)) {
        circle = 1;
        for (int i = 0; i < length; ++i) {
            const Spot spot = spot_of(path[i]);
            for (const int64_t part : {int64_t{path[i]}, int64_t{spot.room}, int64_t{spot.step}, int64_t{spot.awaited}})
                circle = circle * 1000003u + static_cast<uint64_t>(part);
        }
    }
    const bool stands_still = circle != 0 && circle == last_circle_;
    last_circle_ = circle;
    if (!stands_still || length < 2)
        return;
    bool several_threads = false, has_lock = false;
    for (int i = 0; i < length; ++i) {
        several_threads |= rooms.whereabouts[path[i]].threads.load(std::memory_order_relaxed) > 1;
        has_lock |= spot_of(path[i]).awaited >= 0;
    }
    const int other = path[1];
    constexpr const char* kMessage =
        "waits for PE %d, which is in %s and waits for this PE%s: right would be %s; this PE is in %s";
    const char* by_way = length > 2 ? " by way of others" : "";
    const char* right = has_lock
                            ? "to clear a lock before waiting for others in a collective, and to take locks in the "
                              "same order everywhere"
                            : "the same order of collectives on all PEs";
    const base::CallText theirs = whereabouts_of(other), mine = whereabouts_of(rooms.slot);
    if (!several_threads)
        base::fatal(call_.function, kMessage, other, theirs.data(), by_way, right, mine.data());
    base::complain(call_.function, kMessage, other, theirs.data(), by_way, right, mine.data());
    told_ = true;
}

}  // namespace heddle::team
