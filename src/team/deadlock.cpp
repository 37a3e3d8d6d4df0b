#include "team/deadlock.h"

#include "base/error.h"
#include "os/clock.h"
#include "progress/engine.h"
#include "progress/wait_policy.h"
#include "team/segment_table.h"

#include <cstring>
#include <initializer_list>

namespace heddle::team {

namespace {

// Cycles are looked for in jobs on one node alone, where a PE's slot is its number.
constexpr uint64_t kBetweenLooksNs = 1000000000;

// Where a PE waits: its segment and step, or segment -1; and the PE that it waits for outside collectives, or -1.
struct Spot {
    int segment;
    uint32_t step;
    int awaited;

    bool waits() const { return segment >= 0 || awaited >= 0; }
};

Spot spot_of(int pe) {
    const WaitRecord& there = team_segments.wait_records[pe];
    return {there.segment.load(std::memory_order_relaxed) - 1, there.step.load(std::memory_order_relaxed),
            there.awaited.load(std::memory_order_relaxed) - 1};
}

Members members_of(int segment) {
    const SegmentHead* head = head_of(segment);
    return {head->start.load(std::memory_order_relaxed), head->stride.load(std::memory_order_relaxed),
            head->size.load(std::memory_order_relaxed)};
}

// The first PE, after the member *rank, that a PE at this spot waits for and that waits itself; -1: none. Advances
// *rank.
int awaited(const Spot& spot, int* rank) {
    if (spot.awaited >= 0)
        return ++*rank == 0 && spot_of(spot.awaited).waits() ? spot.awaited : -1;
    const Members members = members_of(spot.segment);
    const MemberSlot* member_slots = segment_at(spot.segment).member_slots;
    while (++*rank < members.size) {
        const uint32_t entered = member_slots[*rank].entered.load(std::memory_order_relaxed);
        if (static_cast<int32_t>(entered - spot.step) < 0 && spot_of(members.pe(*rank)).waits())
            return members.pe(*rank);
    }
    return -1;
}

// Follows "waits for" from pe, depth first, until `goal` is reached; path then holds the PEs. seen: a byte for each PE.
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

constexpr int kMaxLooked = 1024;  // PEs of a job in which cycles are looked for: `seen` and `path` fit on a stack

}  // namespace

namespace {

base::CallText show(const Call& call) {
    WaitRecord& here = team_segments.wait_records[team_segments.slot];
    const base::CallText text = base::describe(call);
    for (size_t i = 0; i < WaitRecord::kTextWords; ++i) {
        uint64_t word;
        memcpy(&word, text.data() + 8 * i, 8);
        here.text[i].store(word, std::memory_order_relaxed);
    }
    here.threads.store(progress::threads_of_program(), std::memory_order_relaxed);
    return text;
}

}  // namespace

void enter_collective(const Call& call, int segment_index) {
    const base::CallText text = show(call);
    if (progress::wait_policy && progress::wait_policy->record)
        progress::wait_policy->record(text.data());
    team_segments.wait_records[team_segments.slot].segment.store(segment_index + 1, std::memory_order_relaxed);
}

void leave_collective() {
    team_segments.wait_records[team_segments.slot].segment.store(0, std::memory_order_relaxed);
}

WaitForPe::WaitForPe(const Call& call, int pe) {
    show(call);
    team_segments.wait_records[team_segments.slot].awaited.store(team_segments.spans_nodes ? 0 : pe + 1,
                                                                 std::memory_order_relaxed);
}

WaitForPe::~WaitForPe() {
    team_segments.wait_records[team_segments.slot].awaited.store(0, std::memory_order_relaxed);
}

void come_to(const MemberState& state, uint32_t step) {
    state.segment.member_slots[state.rank].entered.store(step, std::memory_order_relaxed);
    if (!progress::Fiber::current())  // a posted collective: this PE is elsewhere
        team_segments.wait_records[team_segments.slot].step.store(step, std::memory_order_relaxed);
}

base::CallText awaited_call_of(int pe) {
    base::CallText text = {};
    static_assert(sizeof text == 8 * WaitRecord::kTextWords);
    const WaitRecord& there = team_segments.wait_records[team_segments.slots ? team_segments.slots[pe] : pe];
    for (size_t i = 0; i < WaitRecord::kTextWords; ++i) {
        const uint64_t word = there.text[i].load(std::memory_order_relaxed);
        memcpy(text.data() + 8 * i, &word, 8);
    }
    text.back() = '\0';
    return text;
}

void DeadlockDetector::look() {
    const uint64_t now = os::now_ns();
    if (now < next_look_ns_)
        return;
    const bool first = next_look_ns_ == 0;
    next_look_ns_ = now + kBetweenLooksNs;
    if (first || told_ || team_segments.n_slots > kMaxLooked)
        return;
    char seen[kMaxLooked] = {};
    int path[kMaxLooked], length = 0;
    uint64_t circle = 0;
    if (leads_back(team_segments.slot, team_segments.slot, seen, path, &length)) {
        circle = 1;
        for (int i = 0; i < length; ++i) {
            const Spot spot = spot_of(path[i]);
            for (const int64_t part :
                 {int64_t{path[i]}, int64_t{spot.segment}, int64_t{spot.step}, int64_t{spot.awaited}})
                circle = circle * 1000003u + static_cast<uint64_t>(part);
        }
    }
    const bool stands_still = circle != 0 && circle == last_cycle_;
    last_cycle_ = circle;
    if (!stands_still || length < 2)
        return;
    bool several_threads = false, has_lock = false;
    for (int i = 0; i < length; ++i) {
        several_threads |= team_segments.wait_records[path[i]].threads.load(std::memory_order_relaxed) > 1;
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
    const base::CallText theirs = awaited_call_of(other), mine = awaited_call_of(team_segments.slot);
    if (!several_threads)
        base::fatal(call_.function, kMessage, other, theirs.data(), by_way, right, mine.data());
    base::complain(call_.function, kMessage, other, theirs.data(), by_way, right, mine.data());
    told_ = true;
}

}  // namespace heddle::team
