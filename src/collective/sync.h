// Synchronization: sync and barrier of all PEs, of a team, of an active set (sections 9.9.1 to 9.9.4).
#pragma once

#include "collective/collective_call.h"

namespace heddle::collective {

// Waits for all PEs; local stores before are seen after.
void sync_all(const Call& call);
// sync_all, and all operations on the default context before are complete (quiet).
void barrier_all(const Call& call);
// barrier_all, and the PE ends when another one is in another call, or passes something else: in every run, for the
// same number of steps.
void barrier_all_comparing(const Call& call, const Shape& shape);

// The last barrier of a world that spans nodes, none of whose PEs on this one is in anything else any more. *first: the
// lowest of the numbers that PEs bring along. False when another node's PEs met in another collective.
bool part(const Call& call, int32_t* first);

int sync(const Call& call, const Group& group);
// sync, and all operations on the default context before are complete.
int barrier(const Call& call, const Group& group);

}  // namespace heddle::collective
