// Distributed locks (section 9.12): first come, first served, after J. Mellor-Crummey and M. Scott, "Algorithms for
// scalable synchronization on shared-memory multiprocessors" (1991).
//
// A lock is a symmetric long, 0 everywhere when free. Its two halves are two words:
//   tail   on the lock's home PE, which its address chooses: the last PE in the queue, plus one; 0: free.
//   node   on each PE that holds the lock or waits for it: the next PE in the queue, and whether this PE still waits.
// A waiting PE reads only its own node, and sleeps on it when the wait is long. Uncontended, set is two locked
// instructions, and clear is one and a store. Each is a full fence, which gives the quiet that clear_lock must imply.
//
// The threads of a PE exclude each other by the node: a thread that finds the node in use waits until the node is free,
// and is in no queue meanwhile.
//
// A checked run reports a lock that its own thread takes again, and cycles of PEs that wait for locks or in collectives
// (team/deadlock.h).
#pragma once

#include "base/call.h"

#include <cstdint>

namespace heddle::operations {

void set_lock(base::Call call, long* lock);
void clear_lock(base::Call call, long* lock);
// 0: the lock was free, and is now held. 1: the lock was taken, and nothing has changed.
int test_lock(base::Call call, long* lock);

// In a checked run: reports the locks that this PE still holds, at its end in `function`.
void report_held_locks(const char* function);

// The PE of this node that holds the lock, for reports; -1: none, or not known. Cost: a look at each PE of the node.
int holder_of(const long* lock);

}  // namespace heddle::operations
