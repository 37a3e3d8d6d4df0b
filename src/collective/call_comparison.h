// CallComparison: what members of a team show each other of the call that they are in, and the comparison. In a checked
// run each collective begins with it; in every run those that manage memory carry it in their barrier, at no step more.
// Members on one node show it in their inline data; nodes send what their leader has shown to the next one, in a ring,
// so that where not all are alike some leader finds that its node and the one before differ.
#pragma once

#include "base/call.h"
#include "team/team_segment.h"

#include <cstddef>
#include <cstdint>

namespace heddle::collective {

class CollectiveCall;

// What all members must pass alike, by the names that the function has for it.
struct Shape {
    struct Argument {
        const char* name = nullptr;
        int64_t value = 0;
    };
    Argument arguments[3] = {};
    const void* dest = nullptr;  // compared as offsets from the start of their region
    const void* source = nullptr;
};

class CallComparison {
  public:
    enum class ShowPlace { kShown, kNot };  // where it was called is shown, too, which takes a microsecond

    CallComparison(const base::Call& call, const Shape& shape, ShowPlace state);

    // This member's inline data for the coming barrier.
    void show(team::MemberState& state);
    // Behind it. They end the PE where a member differs; with_next is enough where all members look.
    void compare_with_all(const team::MemberState& state) const;
    void compare_with_next(const team::MemberState& state) const;

    // As a control message; bytes: of what came from the PE.
    struct Shown {
        uint32_t step;      // of the team segment: tells it from what another step has left there
        uint32_t function;  // hashed
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

// In a checked run: all members are in this call, with these arguments, or the PE ends.
void compare(CollectiveCall& coll, const Shape& shape);
// The members meet, and compare.
void comparing_barrier(CollectiveCall& coll, const Shape& shape);

}  // namespace heddle::collective
