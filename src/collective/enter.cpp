#include "collective/enter.h"

#include "base/error.h"
#include "operations/check.h"
#include "team/whereabouts.h"

#include <cstring>
#include <iterator>

namespace heddle::collective {

using base::fatal;

namespace {

team::Team& require_team(const Call& call, shmem_team_t handle) {
    operations::require_running(call.function);
    team::Team* team = team::find(handle);
    if (!team && handle == SHMEM_TEAM_INVALID)
        fatal(call.function, "team is SHMEM_TEAM_INVALID: right would be a team that this PE is a member of");
    if (!team)
        fatal(call.function, "team %p is no team: it was destroyed, or never created",
              static_cast<const void*>(handle));
    return *team;
}

team::Team& require_active_set(const Call& call, const Group& group) {
    const int start = group.start, log_stride = group.log_stride, size = group.size;
    operations::require_running(call.function);
    const int n_pes = memory::symmetric->n_pes, pe = memory::symmetric->pe;
    constexpr int kMostLog = 30;
    const bool shape_is_right = start >= 0 && log_stride >= 0 && log_stride <= kMostLog && size >= 1 &&
                                start + (static_cast<int64_t>(size) - 1) * (int64_t{1} << log_stride) < n_pes;
    if (!shape_is_right)
        fatal(call.function,
              "PE_start %d, logPE_stride %d, PE_size %d is no active set: right would be PE_start >= 0, logPE_stride "
              ">= 0, PE_size >= 1 and a last PE below %d",
              start, log_stride, size, n_pes);
    if (Members{start, 1 << log_stride, size}.rank(pe) < 0)
        fatal(call.function, "PE %d is not in the active set PE_start %d, logPE_stride %d, PE_size %d", pe, start,
              log_stride, size);
    if (base::settings.check)
        operations::require_symmetric(call.function, "pSync", group.psync, sizeof *group.psync, pe);
    team::Team* team = team::find_active_set(call.function, start, log_stride, size);
    if (!team) {
        const team::RoomLimit limit = team::room_limit(team::part_on_this_node({start, 1 << log_stride, size}).count);
        fatal(
            call.function,
            "no room for the active set PE_start %d, logPE_stride %d, PE_size %d: as many teams and active sets of %d "
            "to %d PEs are there on this node as there can be, %d; right would be fewer, or teams, which can be "
            "destroyed",
            start, log_stride, size, limit.from, limit.to, limit.number);
    }
    return *team;
}

uint32_t hash(const char* name) {
    uint32_t value = 2166136261u;  // FNV-1a
    for (; *name; ++name) value = (value ^ static_cast<unsigned char>(*name)) * 16777619u;
    return value;
}

// The offset of address in its region, or -1.
int64_t symmetric_offset(const void* address) {
    for (const memory::Region* region : {&memory::symmetric->heap, &memory::symmetric->data})
        if (region->holds(address))
            return static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) - region->base);
    return -1;
}

// What a member shows the others of its call: the function, hashed, where it was called, and the values of its shape.
struct Shown {
    uint32_t function;
    base::CallText text;
    int64_t values[5];
};

}  // namespace

team::Team& team_of(const Call& call, const Group& group) {
    return group.is_active_set ? require_active_set(call, group) : require_team(call, group.team);
}

// All members on this node show what they called, and each compares it with its own.
void Entered::compare(Shape shape) const {
    if (!progress::Fiber::current())  // this PE is elsewhere
        team::enter_collective(call, place.room.index);
    const Shape::Argument shown[] = {shape.arguments[0],
                                     shape.arguments[1],
                                     shape.arguments[2],
                                     {"dest, from the start of its region,", symmetric_offset(shape.dest)},
                                     {"source, from the start of its region,", symmetric_offset(shape.source)}};
    Shown mine = {hash(call.function), base::describe(call), {}};
    for (size_t i = 0; i < std::size(shown); ++i) mine.values[i] = shown[i].value;
    memcpy(team::next_letter(place), &mine, sizeof mine);
    team::meet(call, place);
    for (int rank = 0; rank < place.size(); ++rank) {
        Shown theirs;
        memcpy(&theirs, place.letter(rank), sizeof theirs);
        const int other = place.members.pe(rank);
        if (theirs.function != mine.function)
            fatal(call.function,
                  "PE %d is in %s while this PE is in %s: right would be the same collective on all members", other,
                  theirs.text.data(), mine.text.data());
        for (size_t i = 0; i < std::size(shown); ++i) {
            if (mine.values[i] != theirs.values[i])
                fatal(call.function, "%s is %lld here, but %lld on PE %d: right would be the same on all",
                      shown[i].name, static_cast<long long>(mine.values[i]), static_cast<long long>(theirs.values[i]),
                      other);
        }
    }
}

void Entered::leave() {
    if (!progress::Fiber::current())
        team::leave_collective();
}

void Buffer::check(const Call& call, const char* argument, const void* address, size_t bytes) {
    operations::require_symmetric(call.function, argument, address, bytes, memory::symmetric->pe);
    in_heap_ = memory::symmetric->heap.holds(address);
    const memory::Region& region = in_heap_ ? memory::symmetric->heap : memory::symmetric->data;
    offset_ = reinterpret_cast<uintptr_t>(address) - region.base;
}

void check_in_place(const Call& call, const void* dest, const void* source, size_t bytes) {
    if (base::settings.check && dest != source)
        operations::require_disjoint(call.function, dest, source, bytes);
}

}  // namespace heddle::collective
