#include "sync/bell.h"

namespace heddle::sync {

HEDDLE_PE_LOCAL Bells bells;

void wake_all_of(Gate& gate, uint32_t sleepers) {
    if (sleepers % kWatcher != 0)
        os::futex_wake_all(&gate.value);
    if (sleepers < kWatcher)
        return;
    for (int slot = 0; slot < bells.count; ++slot)
        if (bells.of[slot].watching.load(std::memory_order_relaxed) != 0)  // see Watch
            bells.of[slot].gate.advance();
}

}  // namespace heddle::sync
