// A lock in memory that PEs share: begins zeroed, is held for less than a microsecond, and spins. Threads: of any
// process.
#pragma once

#include "os/pause.h"

#include <sched.h>
#include <atomic>
#include <cstdint>

namespace heddle::checking::races {

class SharedLock {
  public:
    bool try_lock() {
        return word_.load(std::memory_order_relaxed) == 0 &&
               word_.exchange(1, std::memory_order_acquire) == 0;  // pairs with SharedLock::unlock
    }
    void lock() {
        constexpr int kSpins = 200;  // then the holder may wait for this core
        for (int i = 0; !try_lock(); ++i) i < kSpins ? os::pause() : void(sched_yield());
    }
    void unlock() { word_.store(0, std::memory_order_release); }  // pairs with SharedLock::try_lock

  private:
    std::atomic<uint32_t> word_;
};

}  // namespace heddle::checking::races
