// The choice of a collective's algorithm: one table, by the bytes of one member's part and by whether every PE has a
// core, and the settings that force an algorithm (HEDDLE_BROADCAST, HEDDLE_COLLECT, ...).
//
//   inline  data in the cache line that the reader waits on: the lowest latency
//   bounce  through the team segment's bounce buffers: one barrier, two copies
//   push    straight into the members' dest, then one barrier; dest is ready before any member calls (section 9.9)
//   pull    each member copies from the root's source; one more barrier, but all members copy at the same time
//   sliced  each member does its slice for all, between two barriers: no byte is read or written twice
//
// If the data does not fit a forced algorithm, the table chooses.
#pragma once

#include "base/choices.h"

#include <cstddef>

namespace heddle::collective {

using Algorithm = base::CollectiveAlgorithm;
enum class Operation { kBroadcast, kCollect, kFcollect, kAlltoall, kReduce, kScan };

// How many of a PE's `threads` share what a collective sends to other nodes, and combines of it; 1: one does it for the
// others. bytes: of this PE's part. room(): how many threads have a core and a channel of their own. PEs may choose
// unlike: the messages of a step are the same ones, or parts of them.
int select_sharers(size_t bytes, int threads, int (*room)());
// In how many shares the PE's threads divide a collective of so many bytes that they have posted together; 1: it is not
// divided.
int select_shares(size_t bytes, int threads);

// bytes: of one member's part (alltoall: of all blocks of a member). size: number of members.
Algorithm select(Operation operation, size_t bytes, int size);

}  // namespace heddle::collective
