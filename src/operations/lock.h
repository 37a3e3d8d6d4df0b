// Distributed locks (section 9.12): first come, first served, after J. Mellor-Crummey and M. Scott, "Algorithms for
// scalable synchronization on shared-memory multiprocessors" (1991).
//
// A lock is a symmetric long, 0 everywhere when free. Its two halves are two words:
//   tail   on the lock's home PE, which its address chooses: the last PE in the queue, plus one; 0: free.
//   node   on each PE that holds the lock or waits for it: who comes next, and whether it still waits.
// A PE that waits looks at its own node alone, and sleeps on it when that takes long. Uncontended, set is two locked
// instructions and clear is one and a store; each is a full fence, and so the quiet that clear_lock owes.
//
// A PE's threads exclude each other as PEs do: the one that finds the node in use waits until it is free again, and
// stands in no queue meanwhile.
//
// A checked run names a lock that its own thread takes again, and circles of PEs that wait for locks, or in collectives
// (team/deadlock.h).
#pragma once

#include "base/call.h"

#include <cstdint>

namespace heddle::operations {

void set_lock(base::Call call, long* lock);
void clear_lock(base::Call call, long* lock);
// 0: the lock was free, and is held now. 1: it was not, and nothing has changed.
int test_lock(base::Call call, long* lock);

}  // namespace heddle::operations
