// A fence between a frequent side, which costs nothing, and a rare side, which pays for both. During heavy_fence()
// every other thread of the process passes a full fence (membarrier(2), Linux 4.14). The frequent side only keeps the
// compiler from reordering, with atomic_signal_fence. Cost of heavy_fence: about 1 us per running thread; nothing in a
// single-threaded process.
#pragma once

namespace heddle::os {

// Registers this process for heavy_fence; false when the kernel cannot.
bool prepare_heavy_fence();
void heavy_fence();

}  // namespace heddle::os
