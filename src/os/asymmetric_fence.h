// A fence between a frequent side, which pays nothing, and a rare one, which pays for both: behind heavy_fence() every
// other thread of the process has passed a full fence at some point during the call. The frequent side keeps the
// compiler from reordering (atomic_signal_fence) and nothing more. (membarrier(2); Linux 4.14.) About 1 us per running
// thread; nothing in a process of one.
#pragma once

namespace heddle::os {

// Tells the kernel that this process will use it; false when the kernel cannot.
bool prepare_heavy_fence();
void heavy_fence();

}  // namespace heddle::os
