// Leaving: the end of the OpenSHMEM part of a program, in its last shmem_finalize or, without one, at its end
// (runtime/exit.cpp). A leaving PE waits for all others to leave, too, and makes no progress for a PE that waits for
// something else. So it checks meanwhile whether the others can still come, and names the PE that cannot.
//
// Leaving PEs have a barrier of their own, so that no PE takes the end of another for a barrier of a collective.
// Between nodes it is a control message of its own kind.
//
// What is found, and why it is certain. Looks are counted; times prove nothing.
//   a step     A PE waits in a step of a collective that this PE, a member, has never begun (PeRecord::wait_step); or
//              has left at another step of SHMEM_TEAM_WORLD than this PE (PeRecord::left).
//   a cycle    All PEs that do not leave wait, and each has looked in vain kLooks times in each of kRounds rounds in
//              which nothing changed (PeRecord::looks), with nothing of theirs in flight. Only looks of a PE's only
//              thread are counted: another thread might end the wait. Only when all PEs of the job share one page.
// A long wait that is neither is reported once, and continues: a PE may rightly wait for a thread of its own.
//
// Threads: the leaving thread; any waiting thread calls `looked`.
#pragma once

#include "base/call.h"

#include <cstdint>

namespace heddle::runtime {

enum class Leave {
    kFinalize,  // shmem_finalize was called
    kExit,      // shmem_finalize was not called, and need not be: start_pes
    kUntold,    // shmem_finalize was not called, and should have been
};

// The last barrier of all PEs, after all operations of this PE are complete. True for the one PE of the job that is to
// report those that should have called shmem_finalize. Ends the PE when the others cannot come to leave.
bool leave(const base::Call& call, Leave how);

// WaitPolicy::looked: called by a thread that sleeps next.
uint64_t looked(const char* function);

}  // namespace heddle::runtime
