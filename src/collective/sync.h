// Synchronization: sync and barrier of all PEs, of a team, of an active set (sections 9.9.1 to 9.9.4).
#pragma once

#include "collective/collective_call.h"

namespace heddle::collective {

// A barrier of all PEs: what each stored locally before is seen by all afterwards.
void sync_all(const Call& call);
// sync_all after a quiet on the default context.
void barrier_all(const Call& call);
// barrier_all that in every run ends the PE when another PE is in a different call or passes different arguments. Takes
// as many steps as barrier_all.
void barrier_all_comparing(const Call& call, const Shape& shape);

// The last barrier of a world that spans nodes, when no PE of this node is in any other call. *first: a number that
// this PE gives, and then the lowest of all PEs' numbers. False when PEs of another node were in another collective.
bool part(const Call& call, int32_t* first);

// A barrier of the group: what each member stored locally before is seen by all afterwards.
int sync(const Call& call, const Group& group);
// sync after a quiet on the default context.
int barrier(const Call& call, const Group& group);

}  // namespace heddle::collective
