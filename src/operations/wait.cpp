#include "operations/wait.h"

#include <atomic>

namespace heddle::operations {

constinit thread_local Turn turn;

uint64_t Turn::seed() {
    static std::atomic<uint64_t> threads{0};
    // Relaxed: only distinct numbers matter. The rest is the finalizer of splitmix64.
    uint64_t z = (threads.fetch_add(1, std::memory_order_relaxed) + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

}  // namespace heddle::operations
