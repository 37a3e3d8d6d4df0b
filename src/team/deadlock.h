// Deadlock detector of checked runs: which collective each PE is in, or which lock it waits for, so that a wait that
// can never end is reported instead of hanging.
//
// A PE in step s of a collective waits for the members of its team segment that have not come to step s. A PE in
// set_lock waits for the PE before it in the lock's queue. When the relation "waits for" leads from a PE back to
// itself, no PE of that cycle can ever continue. The message names two call sites of the cycle. A cycle must be seen
// twice, one second apart. Where PEs have several threads, another thread may still arrive, so the cycle is only
// reported.
#pragma once

#include "team/team_segment.h"

#include <array>

namespace heddle::team {

// Records that this PE enters a collective, or leaves it. Checked runs only.
void enter_collective(const Call& call, int segment_index);
void leave_collective();
// Records, while the object lives, that this PE waits for another PE outside collectives. Checked runs only.
class WaitForPe {
  public:
    WaitForPe(const Call& call, int pe);
    ~WaitForPe();
    WaitForPe(const WaitForPe&) = delete;
    WaitForPe& operator=(const WaitForPe&) = delete;
};
// Records that this PE has come to a step of its collective. Checked runs only.
void come_to(const MemberState& state, uint32_t step);

// The call that a PE on this node recorded when it entered its collective or began to wait.
base::CallText awaited_call_of(int pe);

// Looks, while this PE waits, whether the wait can end. Cost: a reading of the clock; the search runs once a second.
class DeadlockDetector {
  public:
    explicit DeadlockDetector(const Call& call) : call_(call) {}
    void look();

  private:
    const Call& call_;
    uint64_t next_look_ns_ = 0;
    uint64_t last_cycle_ = 0;  // a hash of the cycle that was found last; 0: none
    bool told_ = false;
};

}  // namespace heddle::team
