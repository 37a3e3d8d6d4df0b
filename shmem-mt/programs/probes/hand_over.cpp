// What the hand-over of a line from one core to another takes, in seconds: half of a round trip between two threads
// that are bound to the first two CPUs that this process may use, the best of many short series. Prints it, or nothing
// where there is one CPU or where other work took too much of the time. Ends within kLimit_s.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>

#include "programs/common/clock.hpp"

namespace {

constexpr int kRoundTrips = 500, kSeries = 100;
constexpr double kLimit_s = 0.2;

alignas(128) std::atomic<long> there{0};
alignas(128) std::atomic<long> back{0};
alignas(128) std::atomic<bool> is_over{false};

void bind_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// Acquire and release throughout: each pairs with the other thread's, so that a number has arrived when it is answered.
void answer(int cpu) {
    bind_to(cpu);
    for (long seen = 0; !is_over.load(std::memory_order_relaxed);) {
        const long number = there.load(std::memory_order_acquire);
        if (number != seen)
            back.store(seen = number, std::memory_order_release);
    }
}

// False when the answer has not come by `end`.
bool is_answered(long number, double end) {
    for (int spins = 1; back.load(std::memory_order_acquire) != number; ++spins) {
        if (spins % 1024 == 0 && shmem_mt::now_seconds() > end)
            return false;
    }
    return true;
}

}  // namespace

int main() {
    cpu_set_t allowed;
    int cpus[2], found = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; ++cpu) {
        if (CPU_ISSET(cpu, &allowed))
            cpus[found++] = cpu;
    }
    if (found < 2)
        return 0;
    bind_to(cpus[0]);
    std::thread other(answer, cpus[1]);
    const double end = shmem_mt::now_seconds() + kLimit_s;
    double best_s = kLimit_s;
    long number = 0;
    bool goes_on = true;
    for (int series = 0; goes_on && series < kSeries; ++series) {
        const double start = shmem_mt::now_seconds();
        for (int trip = 0; goes_on && trip < kRoundTrips; ++trip) {
            there.store(++number, std::memory_order_release);
            goes_on = is_answered(number, end);
        }
        if (goes_on)
            best_s = std::min(best_s, (shmem_mt::now_seconds() - start) / (2 * kRoundTrips));
    }
    is_over.store(true, std::memory_order_relaxed);  // joined below
    other.join();
    if (best_s < kLimit_s)
        std::printf("%.4g\n", best_s);
    return 0;
}
