// Which algorithm a collective takes: one table, by the bytes of one member's part and by whether the PEs have a core
// each, and the settings that force one (HEDDLE_BROADCAST, HEDDLE_COLLECT, ...).
//
//   inline data    in the cache line that the reader waits on: the least latency
//   bounce buffers    through the team's team segment: one barrier, two copies
//   push    straight into the members' dest, then one barrier; dest is ready before any member calls (section 9.9)
//   pull    each copies from the root's source; one more barrier, but all members copy at the same time
//   slices  each member does its slice for all, between two barriers: no byte is read or written twice
//
// A forced algorithm that the data does not fit gives way to the next in this list.
#pragma once

#include "base/choices.h"

#include <cstddef>

namespace heddle::collective {

using Algorithm = base::CollectiveAlgorithm;
enum class Operation { kBroadcast, kCollect, kFcollect, kAlltoall, kReduce, kScan };

// bytes: of one member's part (alltoall: of all blocks of a member). size: members.
Algorithm select(Operation operation, size_t bytes, int size);

}  // namespace heddle::collective
