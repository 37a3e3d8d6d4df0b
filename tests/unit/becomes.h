// What other threads make true, for tests of threads. No verdict depends on how busy the machine is.
#pragma once

#include "os/clock.h"

#include <cstdint>
#include <thread>

namespace heddle {

constexpr uint64_t kLostNs = 300000 * os::kMillisecondNs;  // what takes so long will not happen any more

// True when condition() holds in time, which this thread does nothing for.
template <class Condition>
bool becomes(Condition condition) {
    const uint64_t begin = os::now_ns();
    while (!condition()) {
        if (os::now_ns() - begin > kLostNs)
            return false;
        std::this_thread::yield();
    }
    return true;
}

inline uint64_t load(const uint64_t& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

inline bool becomes(const uint64_t& word, uint64_t value) {
    return becomes([&] { return load(word) == value; });
}

}  // namespace heddle
