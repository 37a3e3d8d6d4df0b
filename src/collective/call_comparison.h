// CallComparison: what the members of a team show each other of their call, and the comparison. In a checked run each
// collective begins with it. In every run the collectives that manage memory carry it in their barrier, without a
// further step. Members on one node show their calls as inline data. Between nodes each leader sends its call to the
// next node, in a ring: where not all are alike, some leader finds that its node and the one before differ.
#pragma once

#include "base/call.h"
#include "team/team_segment.h"

#include <cstddef>
#include <cstdint>

namespace heddle::collective {

class CollectiveCall;

// The argument that is a rank whose data goes to all members.
constexpr const char* kRootArgument = "PE_root";

// The arguments that all members must pass alike, with the parameters' names.
struct Shape {
    struct Argument {
        const char* name = nullptr;
        int64_t value = 0;
    };
    Argument arguments[3] = {};
    const void* dest = nullptr;  // dest and source: compared as offsets from the start of their region
    const void* source = nullptr;
};

class CallComparison {
  public:
    enum class ShowPlace { kShown, kNot };  // kShown: also the place of the call, which costs a microsecond

    CallComparison(const base::Call& call, const Shape& shape, ShowPlace state);

    // Writes this member's inline data for the coming barrier.
    void show(team::MemberState& state);
    // After that barrier: end the PE where a member's call differs. compare_with_next suffices where all members
    // compare.
    void compare_with_all(const team::MemberState& state) const;
    void compare_with_next(const team::MemberState& state) const;

    // A call as inline data or control message. compare's `bytes`: the length of the control message that `pe` sent.
    struct Shown {
        uint32_t step;      // of the team segment; tells this call from data that another step has left there
        uint32_t function;  // a hash of its name
        base::CallText text;
        int64_t values[5];
    };
    const Shown& message() const { return mine_; }
    void compare(const Shown& theirs, size_t bytes, int pe) const;

  private:
    void compare_with(const team::MemberState& state, int rank) const;

    const base::Call& call_;
    const char* names_[5];
    Shown mine_;
};
static_assert(sizeof(CallComparison::Shown) <= team::kInlineBytes);

// In a checked run: ends the PE unless all members are in this call with these arguments.
void compare(CollectiveCall& coll, const Shape& shape);
// A barrier in which the members compare their calls.
void comparing_barrier(CollectiveCall& coll, const Shape& shape);

}  // namespace heddle::collective
