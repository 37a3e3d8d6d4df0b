#include "collective/call_comparison.h"

#include "base/error.h"
#include "collective/internode/internode.h"
#include "collective/internode/internode_step.h"

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
    for (const memory::SymmetricRegion* region : {&memory::symmetric->heap, &memory::symmetric->data})
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

CallComparison::CallComparison(const base::Call& call, const Shape& shape, ShowPlace state) : call_(call) {
    const Shape::Argument shown[] = {shape.arguments[0],
                                     shape.arguments[1],
                                     shape.arguments[2],
                                     {"dest, from the start of its region,", symmetric_offset(shape.dest)},
                                     {"source, from the start of its region,", symmetric_offset(shape.source)}};
    mine_ = {0, hash(call.function), state == ShowPlace::kShown ? base::describe(call) : name_of(call), {}};
    for (size_t i = 0; i < std::size(shown); ++i) {
        names_[i] = shown[i].name;
        mine_.values[i] = shown[i].value;
    }
}

void CallComparison::show(team::MemberState& state) {
    mine_.step = state.count + 1;
    if (state.size() > 1)
        memcpy(team::next_inline_data(state), &mine_, sizeof mine_);
}

void CallComparison::compare_with(const team::MemberState& state, int rank) const {
    if (rank == state.rank)
        return;
    Shown theirs;
    memcpy(&theirs, state.inline_data(rank, mine_.step), sizeof theirs);
    compare(theirs, theirs.step == mine_.step ? sizeof theirs : 0, state.members.pe(rank));
}

void CallComparison::compare_with_all(const team::MemberState& state) const {
    for (int rank = 0; rank < state.size(); ++rank) compare_with(state, rank);
}

void CallComparison::compare_with_next(const team::MemberState& state) const {
    compare_with(state, (state.rank + 1) % state.size());
}

void CallComparison::compare(const Shown& theirs, size_t bytes, int pe) const {
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

void compare(CollectiveCall& coll, const Shape& shape) {
    CallComparison mine(coll.call, shape, CallComparison::ShowPlace::kShown);
    mine.show(coll.state);
    team::barrier(coll.call, coll.state);
    mine.compare_with_all(coll.state);
    if (coll.team.span)
        compare_nodes(coll, mine);
}

void comparing_barrier(CollectiveCall& coll, const Shape& shape) {
    CallComparison mine(coll.call, shape, CallComparison::ShowPlace::kNot);
    mine.show(coll.state);
    if (coll.team.span)
        return internode_barrier(coll, &mine);
    team::barrier(coll.call, coll.state);
    mine.compare_with_next(coll.state);
}

}  // namespace heddle::collective
