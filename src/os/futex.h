// Futex: sleeping on a 32-bit word that processes share. Threads: any.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace heddle::os {

// Sleeps while *word == expected, at most until the absolute CLOCK_MONOTONIC deadline (null: for ever). Returns on
// wake, on change, on a signal or at the deadline: the caller checks again. The kernel compares under its own lock,
// after a full barrier.
inline void futex_wait(std::atomic<uint32_t>* word, uint32_t expected, const timespec* deadline) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_BITSET, expected, deadline, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

inline void futex_wake_all(std::atomic<uint32_t>* word) {
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace heddle::os
