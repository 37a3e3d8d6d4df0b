// barrier_all and sync_all on the node. One thread per PE at a time, as the specification asks.
//
// Two algorithms over gates in the shared area, chosen once per job (HEDDLE_BARRIER):
//   dissemination (D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization", 1988): in round r
//   each
//     PE opens a gate of PE (me + 2^r) and waits for its own; log2(n) hand-offs of a cache line, one for two PEs. For
//     PEs that have a core each.
//   central: the last to arrive opens one gate for all. Each PE runs once per barrier, so it is the one for more PEs
//   than
//     cores, where a hand-off costs a context switch.
#pragma once

#include "base/pe_local.h"
#include "sync/gate.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heddle::collective {

enum class SyncAlgorithm : int { kAuto, kCentral, kDissemination };  // as in settings.def

struct Sync;
extern HEDDLE_PE_LOCAL Sync* sync_state;  // this PE's; lives as long as the process

// Bytes of the shared area for n_pes PEs. It begins zeroed, and stays valid across finalize and init.
size_t sync_shared_bytes(int n_pes);

// Sets up this PE; shared: the area, at its place in this PE's address space.
void start_sync(char* shared, int pe, int n_pes, SyncAlgorithm algorithm, uint32_t node_cores);

// Waits for all PEs; completes all operations before (quiet).
void barrier_all(const char* function);

// Waits for all PEs; local stores before are seen after.
void sync_all(const char* function);

}  // namespace heddle::collective
