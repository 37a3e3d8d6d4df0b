// Leaving: the end of the OpenSHMEM part of a program, in its last shmem_finalize or, where it has none, at its end
// (runtime/exit.cpp). A PE that leaves waits for all others to leave, too, and helps nobody who waits for something
// else: so it looks meanwhile whether the others can still come, and names the one that cannot.
//
// It meets the others apart from their collectives, so that nobody takes its end for the barrier that it should have
// come to; between nodes, by a control message of its own kind.
//
// What is found, and why it is certain. Times play no part: "looks" are counted, not waited for.
//   a step     A PE waits in a step of a collective that this PE, a member, has never come to (PeRecord::wait_step); or
//              has left at another step of the world's room than this one (PeRecord::left).
//   a circle   All PEs that do not leave wait, each has looked in vain again and again since all others did nothing
//              (PeRecord::looks), and nothing of theirs is on its way. Such a look counts only where no other thread of
//              the PE could end the wait. On the page of the launcher alone, where all PEs can be seen.
// What is none of these, and lasts, is told once and goes on: a PE that waits for a thread of its own is right.
//
// Threads: the one that leaves; `looked` by any that waits.
#pragma once

#include "base/call.h"

#include <cstdint>

namespace heddle::runtime {

enum class Leave {
    kFinalize,  // shmem_finalize was called
    kExit,      // it was not, and need not be: start_pes
    kUntold,    // it was not, and should have been
};

// Meets all PEs for the last time, with all that this one has begun complete before. True for the one PE of the job
// that is to tell of those that ought to have called shmem_finalize. Ends the PE when not all come to leave.
bool leave(const base::Call& call, Leave how);

// For progress::WaitPolicy: of a thread that sleeps next.
uint64_t looked(const char* function);

}  // namespace heddle::runtime
