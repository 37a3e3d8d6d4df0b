// SIGTERM and SIGINT in PEs that a process manager has started (mpirun, srun, hydra): the first PE of a node that gets
// the signal prints where the PEs of the node are, as oshrun does for its own. Then each PE ends by the signal. Signals
// for which the program has a handler, or which it ignores, stay the program's. Threads: init calls; the handlers run
// on any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::checking {

// Takes these signals, once per process, where such a launcher has started it. False with the reason in error.
bool take_end_signals(char* error, size_t error_bytes);

// The library's threads that this has started.
uint32_t end_threads();

}  // namespace heddle::checking
