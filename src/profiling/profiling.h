// The profile of a run (HEDDLE_PROFILE): where the program calls, how long that takes, and what to change
// (docs/decisions/0081). Threads: one of the PE, in init, finalize and the child of a fork.
#pragma once

#include "profiling/counts.h"

#include <cstddef>

namespace heddle::profiling {

// The first bytes of each PE's heap, where the PEs leave their profiles for each other.
constexpr size_t kHeapBytes = (sizeof(JobProfile) + 63) / 64 * 64;

// Begins to count, if the settings ask for it, before the hot path is opened.
void start();
// Ends that, while no thread of the program is in a call any more.
void stop();
// PE 0 prints and writes the profile of all PEs, behind the last meeting of all, while they can still be reached. All
// PEs call it.
void report(const char* function);

// In the child of a fork, which is no PE.
void forget();

}  // namespace heddle::profiling
