// The profile of a run (HEDDLE_PROFILE): where the program calls, how long that takes, and what to change
// (docs/decisions/0081); and its trace (HEDDLE_TRACE, docs/decisions/0082). Threads: one of the PE, in init, finalize
// and the child of a fork.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::profiling {

// The first bytes of each PE's heap, where the PEs leave their profiles for each other, and their traces for PE 0. By
// the settings and the number of PEs.
size_t heap_bytes();
constexpr size_t kScratchBytes = 64;  // of these, for puts whose value nobody reads

// Begins to count, if the settings ask for it, before the hot path is opened.
void start();
// Behind that, when all can communicate: all PEs call it.
void begin_trace(const char* function);
// Whether the trace goes on, of any thread (shmem_pcontrol): 0 pauses it.
void control(int level);
// Ends that, while no thread of the program is in a call any more.
void stop();
// PE 0 prints and writes the profile and the trace of all PEs, behind the last meeting of all, while they can still be
// reached. All PEs call it.
void report(const char* function);

// In the child of a fork, which is no PE.
void forget();

}  // namespace heddle::profiling
