// Inside: this thread takes locks of the search while it lives. What the handler of a signal does meanwhile is not
// told: the handler would wait for the locks of the thread that it has interrupted. Threads: each for itself.
#pragma once

#include "os/locked.h"

#include <pthread.h>
#include <atomic>

namespace heddle::checking::races {

class Inside {
  public:
    Inside() {
        ++depth_;
        std::atomic_signal_fence(std::memory_order_seq_cst);  // before the lock, as a handler sees it
    }
    ~Inside() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        --depth_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    static bool is_here() { return depth_ != 0; }

  private:
    static inline constinit thread_local int depth_ = 0;
};

class LockedInside {
  public:
    explicit LockedInside(pthread_mutex_t& mutex) : locked_(mutex) {}

  private:
    const Inside inside_;
    const os::Locked locked_;
};

}  // namespace heddle::checking::races
