#include "collective/alike.h"

#include "base/error.h"
#include "collective/across.h"
#include "collective/step.h"

#include <cstring>
#include <iterator>

namespace heddle::collective {

using base::fatal;

namespace {

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

base::CallText name_of(const base::Call& call) {
    base::CallText text = {};
    strncpy(text.data(), call.function, text.size() - 1);
    return text;
}

}  // namespace

Alike::Alike(const base::Call& call, const Shape& shape, Place place) : call_(call) {
    const Shape::Argument shown[] = {shape.arguments[0],
                                     shape.arguments[1],
                                     shape.arguments[2],
                                     {"dest, from the start of its region,", symmetric_offset(shape.dest)},
                                     {"source, from the start of its region,", symmetric_offset(shape.source)}};
    mine_ = {0, hash(call.function), place == Place::kShown ? base::describe(call) : name_of(call), {}};
    for (size_t i = 0; i < std::size(shown); ++i) {
        names_[i] = shown[i].name;
        mine_.values[i] = shown[i].value;
    }
}

void Alike::show(team::Place& room) {
    mine_.step = room.count + 1;
    if (room.size() > 1)
        memcpy(team::next_note(room), &mine_, sizeof mine_);
}

void Alike::compare_with(const team::Place& room, int rank) const {
    if (rank == room.rank)
        return;
    Shown theirs;
    memcpy(&theirs, room.note(rank, mine_.step), sizeof theirs);
    compare(theirs, theirs.step == mine_.step ? sizeof theirs : 0, room.members.pe(rank));
}

void Alike::compare_with_all(const team::Place& room) const {
    for (int rank = 0; rank < room.size(); ++rank) compare_with(room, rank);
}

void Alike::compare_with_next(const team::Place& room) const {
    compare_with(room, (room.rank + 1) % room.size());
}

void Alike::compare(const Shown& theirs, size_t bytes, int pe) const {
    if (bytes != sizeof theirs)
        fatal(call_.function,
              "PE %d is in another collective while this PE is in %s: right would be the same collective on all "
              "members; HEDDLE_CHECK=1 names both",
              pe, mine_.text.data());
    if (theirs.function != mine_.function)
        fatal(call_.function,
              "PE %d is in %s while this PE is in %s: right would be the same collective on all members", pe,
              theirs.text.data(), mine_.text.data());
    for (size_t i = 0; i < std::size(names_); ++i)
        if (mine_.values[i] != theirs.values[i])
            fatal(call_.function, "%s is %lld in %s, but %lld on PE %d in %s: right would be the same on all",
                  names_[i], static_cast<long long>(mine_.values[i]), mine_.text.data(),
                  static_cast<long long>(theirs.values[i]), pe, theirs.text.data());
}

void compare(Entered& entered, const Shape& shape) {
    Alike mine(entered.call, shape, Alike::Place::kShown);
    mine.show(entered.place);
    team::meet(entered.call, entered.place);
    mine.compare_with_all(entered.place);
    if (entered.team.span)
        compare_across(entered, mine);
}

void meet_alike(Entered& entered, const Shape& shape) {
    Alike mine(entered.call, shape, Alike::Place::kNot);
    mine.show(entered.place);
    if (entered.team.span)
        return meet_across(entered, &mine);
    team::meet(entered.call, entered.place);
    mine.compare_with_next(entered.place);
}

}  // namespace heddle::collective
