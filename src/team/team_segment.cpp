#include "team/team_segment.h"

#include "base/invariant.h"
#include "base/settings.h"
#include "base/tsan.h"
#include "os/pause.h"
#include "progress/wait_policy.h"
#include "sync/wakeup.h"
#include "team/deadlock.h"
#include "team/segment_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace heddle::team {

HEDDLE_PE_LOCAL TeamSegments team_segments;

namespace {

constexpr int kBits = 64;
constexpr int kPredefined = 2;  // kWorldSegment, kSharedSegment

constexpr size_t kPage = 4096;

constexpr size_t whole_pages(size_t bytes) {
    return (bytes + kPage - 1) / kPage * kPage;
}

size_t segment_bytes(int member_slots) {
    return whole_pages(sizeof(SegmentHead) +
                       static_cast<size_t>(member_slots) * (sizeof(MemberSlot) + 2 * kBounceBytes));
}

// The class of segments for `size` members, two or more: classes[0] has two member slots.
int class_for(int size) {
    return std::bit_width(static_cast<unsigned>(size) - 1) - 1;
}

// Lays the area out from `shared` on, which may be null, and returns the number of bytes.
size_t lay_out(TeamSegments* to, char* shared, int n_slots) {
    size_t bytes = 0;
    const auto take = [&](size_t more) {
        char* const taken = shared ? shared + bytes : nullptr;
        bytes += whole_pages(more);
        return taken;
    };
    const auto slots = static_cast<size_t>(n_slots);
    to->wait_records = reinterpret_cast<WaitRecord*>(take(slots * sizeof(WaitRecord)));
    to->wakeups = reinterpret_cast<sync::PeWakeup*>(take(slots * sizeof(sync::PeWakeup)));
    to->n_classes = n_slots > 1 ? class_for(n_slots) + 1 : 0;
    HEDDLE_INVARIANT(n_slots >= 1 && to->n_classes <= kMaxClasses);
    int first = kPredefined;
    for (int i = 0; i < to->n_classes; ++i) {
        SegmentClass& one = to->classes[i];
        one.member_slots = std::min(2 << i, n_slots);
        one.number = kSegmentsPerPe * n_slots / one.member_slots;
        one.first = first;
        HEDDLE_INVARIANT(one.number >= kSegmentsPerPe);  // no class runs out before each PE is in that many teams of it
        one.used = reinterpret_cast<std::atomic<uint64_t>*>(take(static_cast<size_t>(one.number) / kBits * 8 + 8));
        one.segment_bytes = segment_bytes(one.member_slots);
        first += one.number;
    }
    to->n_segments = first;
    to->n_active_sets = first - kPredefined;
    const auto n_active_sets = static_cast<size_t>(to->n_active_sets);
    to->active_sets = reinterpret_cast<ActiveSetEntry*>(take(n_active_sets * sizeof(ActiveSetEntry)));
    to->predefined = {n_slots, kPredefined, 0, nullptr, nullptr, segment_bytes(n_slots)};
    to->predefined.begin = take(kInstances * to->predefined.instance_bytes());
    for (int i = 0; i < to->n_classes; ++i) to->classes[i].begin = take(kInstances * to->classes[i].instance_bytes());
    return bytes;
}

const SegmentClass& class_of(int index) {  // of any instance
    index %= team_segments.n_segments;
    const SegmentClass* found = &team_segments.predefined;
    for (int i = 0; i < team_segments.n_classes && team_segments.classes[i].first <= index; ++i)
        found = &team_segments.classes[i];
    HEDDLE_INVARIANT(index >= 0 && index - found->first < found->number);
    return *found;
}

// Waits in a checked run, where the wait looks for deadlocks.
template <class Ready>
void watch(const Call& call, const sync::EventCount& event_count, Ready ready) {
    DeadlockDetector circle(call);
    progress::wait_for_store(call.function, &event_count, [&] {
        if (ready())
            return true;
        circle.look();
        return false;
    });
}

// True in a checked run. A non-blocking collective is not watched: its PE is elsewhere and holds up no other.
bool is_watched() {
    return base::settings.check && !progress::Fiber::current();
}

// Waits for an event count that every step of its kind advances.
void wait_at(const Call& call, const MemberState& state, sync::EventCount& event_count, uint32_t step) {
    if (event_count.reached(step))
        return;
    const progress::AtStep here(word_of(state, step));
    if (is_watched())
        watch(call, event_count, [&] { return event_count.reached(step); });
    else
        progress::wait_for_event_count(call.function, event_count, step);
}

// True when all other members arrive while this one looks at their inline slots for about a microsecond.
bool all_come_soon(const MemberState& state, uint32_t step) {
    int looks = 100;
    for (int i = 1; i < state.size(); ++i) {
        const sync::EventCount& event_count =
            state.segment.member_slots[(state.rank + i) % state.size()].inline_slots[step % kDepth].event_count;
        while (!event_count.holds(step)) {
            if (--looks == 0)
                return false;
            os::pause();
        }
    }
    return true;
}

void barrier_flat(const Call& call, MemberState& state, uint32_t step) {
    // Looking before waking lets this member's store travel while it fetches the other members' lines.
    sync::EventCount& mine = state.segment.member_slots[state.rank].inline_slots[step % kDepth].event_count;
    HEDDLE_INVARIANT(!mine.holds(step));  // a step is published once
    mine.set(step);
    const bool all_here = all_come_soon(state, step);
    mine.wake();
    if (all_here)
        return;
    for (int i = 1; i < state.size(); ++i) await(call, state, (state.rank + i) % state.size(), step);
}

void barrier_central(const Call& call, MemberState& state, uint32_t step) {
    sync::CentralBarrier& central_barrier = *state.segment.central_barrier;
    central_barrier.arrive(static_cast<uint32_t>(state.size()), step);
    wait_at(call, state, central_barrier.released, step);
    HEDDLE_INVARIANT(central_barrier.released.reached(step));
}

void barrier_by_dissemination(const Call& call, MemberState& state, uint32_t step) {
    for (int round = 0; 1 << round < state.size(); ++round) {
        HEDDLE_INVARIANT(round < kMaxRounds);
        const int partner = (state.rank + (1 << round)) % state.size();
        state.segment.member_slots[partner].rounds[round].event_count.advance_to(step);
        // A partner may be one barrier ahead, never two: it cannot end the next one without this member.
        wait_at(call, state, state.segment.member_slots[state.rank].rounds[round].event_count, step);
    }
}

// Makes the segment with that head as new, for so many members.
void clear(SegmentHead* head, int members) {
    memset(static_cast<void*>(head), 0, sizeof *head);
    memset(static_cast<void*>(head + 1), 0, static_cast<size_t>(members) * sizeof(MemberSlot));
}

uint32_t begin_step(MemberState& state) {
    const uint32_t step = ++state.count;
    HEDDLE_INVARIANT(state.rank >= 0 && state.rank < state.size());
    // No inline slot is used again before all members have finished the step that it carried.
    HEDDLE_INVARIANT_MSG(step - state.all_done <= kDepth, "step %u, all done %u", step, state.all_done);
    if (base::settings.check)
        come_to(state, step);
    return step;
}

// Inlined, as a barrier of few members takes no longer than a call.
__attribute__((always_inline)) inline void go_through(const Call& call, MemberState& state, uint32_t step) {
    if (state.size() > 1) {
        switch (state.barrier_algorithm) {
            case BarrierAlgorithm::kFlat:
                barrier_flat(call, state, step);
                break;
            case BarrierAlgorithm::kDissemination:
                barrier_by_dissemination(call, state, step);
                break;
            default:
                barrier_central(call, state, step);
        }
    }
    state.all_done = step - 1;
}

}  // namespace

void barrier(const Call& call, MemberState& state) {
    go_through(call, state, begin_step(state));
}

void published_barrier(const Call& call, MemberState& state) {
    const uint32_t step = begin_step(state);
    if (state.barrier_algorithm != BarrierAlgorithm::kFlat)  // which publishes it itself
        publish(state, step);
    go_through(call, state, step);
}

uint32_t begin_publish(const Call& call, MemberState& state, uint32_t more) {
    if (state.count + 1 + more - state.all_done >= kDepth)
        barrier(call, state);
    HEDDLE_INVARIANT(state.count + 1 + more - state.all_done < kDepth);
    return begin_step(state);
}

void await(const Call& call, MemberState& state, int from_rank, uint32_t step) {
    HEDDLE_INVARIANT(from_rank >= 0 && from_rank < state.size());
    HEDDLE_INVARIANT(state.count - step < kDepth);  // a step that this member has begun, and not long ago
    // An inline slot may hold any older step, but advances to a later one only when all members have finished this
    // step.
    sync::EventCount& event_count = state.segment.member_slots[from_rank].inline_slots[step % kDepth].event_count;
    if (event_count.holds(step))
        return;
    const progress::AtStep here(word_of(state, step));
    if (is_watched())
        watch(call, event_count, [&] { return event_count.holds(step); });
    else
        progress::wait_until_event_count_holds(call.function, event_count, step);
}

size_t team_segments_bytes(int n_slots) {
    TeamSegments plan;
    return lay_out(&plan, nullptr, n_slots);
}

void start_team_segments(char* shared, int slot, int n_slots, bool oversubscribed, bool spans_nodes, const int* slots) {
    HEDDLE_INVARIANT(slot >= 0 && slot < n_slots);
    HEDDLE_INVARIANT(reinterpret_cast<uintptr_t>(shared) % alignof(MemberSlot) == 0);
    lay_out(&team_segments, shared, n_slots);
    team_segments.slot = slot;
    team_segments.slots = slots;
    team_segments.n_slots = n_slots;
    team_segments.oversubscribed = oversubscribed;
    team_segments.spans_nodes = spans_nodes;
    sync::wakeups = {team_segments.wakeups, n_slots, team_segments.wakeups + slot};
}

bool is_oversubscribed() {
    return team_segments.oversubscribed;
}

BarrierAlgorithm barrier_algorithm_for(int size) {
    const BarrierAlgorithm asked = base::settings.barrier;
    if (asked != BarrierAlgorithm::kAuto)
        return asked;
    constexpr int kFewReaders = 8;
    return team_segments.oversubscribed ? BarrierAlgorithm::kCentral
           : size <= kFewReaders        ? BarrierAlgorithm::kFlat
                                        : BarrierAlgorithm::kDissemination;
}

SegmentHead* head_of(int index) {
    const SegmentClass& of = class_of(index);
    const auto instance = static_cast<size_t>(index / team_segments.n_segments);
    HEDDLE_INVARIANT(instance < kInstances);
    const auto number = static_cast<size_t>(index % team_segments.n_segments - of.first);
    return reinterpret_cast<SegmentHead*>(of.begin + instance * of.instance_bytes() + number * of.segment_bytes);
}

TeamSegment segment_at(int index) {
    SegmentHead* head = head_of(index);
    HEDDLE_INVARIANT(reinterpret_cast<uintptr_t>(head) % alignof(SegmentHead) == 0);
    MemberSlot* member_slots = reinterpret_cast<MemberSlot*>(head + 1);
    return {&head->central_barrier, member_slots, reinterpret_cast<char*>(member_slots + class_of(index).member_slots),
            index};
}

int index_of_instance(int index, int instance) {
    return index + instance * team_segments.n_segments;
}

TeamSegment instance_segment_at(int index, int instance) {
    HEDDLE_INVARIANT(index < team_segments.n_segments && instance > 0 && instance < kInstances);
    // Relaxed: the next taker of the segment sees it, which comes behind all members' leaving.
    head_of(index)->instances.fetch_or(1u << instance, std::memory_order_relaxed);
    return segment_at(index_of_instance(index, instance));
}

void OwnSegment::clear() {
    memset(static_cast<void*>(this), 0, offsetof(OwnSegment, bounce));
}

void claim_segment(int index, const Members& members) {
    SegmentHead* head = head_of(index);
    // Relaxed: read by DeadlockDetector alone, long after.
    head->start.store(members.start, std::memory_order_relaxed);
    head->stride.store(members.stride, std::memory_order_relaxed);
    // Cycles are looked for only where all members share the segment.
    head->size.store(members.list || team_segments.spans_nodes ? 0 : members.size, std::memory_order_relaxed);
}

int take_segment(const Members& members, int size) {
    if (size <= 1)
        return kOwnSegment;
    HEDDLE_INVARIANT(class_for(size) < team_segments.n_classes);
    const SegmentClass& of = team_segments.classes[class_for(size)];
    HEDDLE_INVARIANT(size <= of.member_slots);
    for (int begin = 0; begin < of.number; begin += kBits) {
        std::atomic<uint64_t>& used = of.used[begin / kBits];
        uint64_t bits = used.load(std::memory_order_relaxed);
        for (int bit; (bit = std::countr_one(bits)) < std::min(kBits, of.number - begin);) {
            // Acquire: pairs with team::leave_segment, after which no former member touches the segment.
            if (!used.compare_exchange_weak(bits, bits | uint64_t{1} << bit, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                continue;
            tsan::acquire();
            const int index = of.first + begin + bit;
            HEDDLE_INVARIANT(index >= kPredefined && index - of.first < of.number);
            SegmentHead* head = head_of(index);
            const bool was_used = head->used;
            const uint32_t instances = head->instances.load(std::memory_order_relaxed);  // behind the acquire above
            clear(head, was_used ? size : 0);
            for (int instance = 1; instance < kInstances; ++instance)
                if (instances >> instance & 1)
                    clear(head_of(index_of_instance(index, instance)), size);
            head->used = true;
            head->instances.store(instances, std::memory_order_relaxed);
            claim_segment(index, members);
            return index;
        }
    }
    return kNoSegment;
}

void leave_segment(int index, int members) {
    if (index < kPredefined)
        return;
    SegmentHead* head = head_of(index);
    tsan::release();
    // acq_rel: the last to leave passes on that all others have left.
    const uint32_t left = head->left.fetch_add(1, std::memory_order_acq_rel) + 1;
    HEDDLE_INVARIANT(left <= static_cast<uint32_t>(members));  // each member leaves once
    if (left < static_cast<uint32_t>(members))
        return;
    const SegmentClass& of = class_of(index);
    const int number = index - of.first;
    [[maybe_unused]] const uint64_t used =
        of.used[number / kBits].fetch_and(~(uint64_t{1} << (number % kBits)),
                                          std::memory_order_release);  // pairs with team::take_segment
    HEDDLE_INVARIANT(used >> (number % kBits) & 1);                    // what becomes free was taken
}

int active_set_segment(const char* function, const Members& members, int log_stride, int size) {
    if (size <= 1)
        return kOwnSegment;
    const uint64_t key = uint64_t{1} << 63 | static_cast<uint64_t>(log_stride) << 48 |
                         static_cast<uint64_t>(members.start) << 24 | static_cast<uint64_t>(members.size);
    for (int i = 0; i < team_segments.n_active_sets; ++i) {
        ActiveSetEntry& entry = team_segments.active_sets[i];
        uint64_t found = 0;
        // Relaxed: the key only decides which member takes the segment; the entry's `segment` publishes the contents.
        if (entry.key.compare_exchange_strong(found, key, std::memory_order_relaxed)) {
            const int segment = take_segment(members, size);
            // Pairs with team::active_set_segment: the load in another member.
            entry.segment.store(segment + 1 == 0 ? -1 : segment + 1, std::memory_order_release);
            return segment;
        }
        if (found != key)
            continue;
        int segment = 0;
        progress::wait_for_store(function, &entry.segment, [&] {
            // Pairs with team::active_set_segment.
            return (segment = entry.segment.load(std::memory_order_acquire)) != 0;
        });
        HEDDLE_INVARIANT(segment == -1 || segment - 1 >= kPredefined);
        return segment > 0 ? segment - 1 : kNoSegment;
    }
    return kNoSegment;
}

SegmentLimit segment_limit(int size) {
    const int which = class_for(std::max(size, 2));
    return {(1 << which) + 1, team_segments.classes[which].member_slots, team_segments.classes[which].number};
}

}  // namespace heddle::team
