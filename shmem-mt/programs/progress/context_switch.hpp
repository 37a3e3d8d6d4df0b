// The cost of a switch from one process to another: half of a round trip of a byte through two pipes between this
// process and a child on the same core, system calls included.
//
// The child is made before the library starts, knows nothing of it, and ends with this process, however that ends. One
// thread uses the class. The core should be free of other work meanwhile.
#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "programs/common/clock.hpp"

namespace shmem_mt {

class ContextSwitch {
  public:
    ContextSwitch() {
        int there[2], back[2];
        if (pipe(there) != 0)
            return;
        if (pipe(back) != 0) {
            close(there[0]);
            close(there[1]);
            return;
        }
        child_ = fork();
        if (child_ == 0) {
            close(there[1]);
            close(back[0]);
            for (char byte; read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1;) {
            }
            _exit(0);
        }
        close(there[0]);
        close(back[1]);
        to_child_ = there[1];
        from_child_ = back[0];
    }

    ~ContextSwitch() {
        if (to_child_ < 0)
            return;
        close(to_child_);
        close(from_child_);
        if (child_ > 0)
            waitpid(child_, nullptr, 0);
    }

    ContextSwitch(const ContextSwitch&) = delete;
    ContextSwitch& operator=(const ContextSwitch&) = delete;

    // Seconds of one, over at least `window_s`; 0 when it cannot be measured. The calling thread runs on one core
    // meanwhile.
    double measure(double window_s) {
        cpu_set_t before, one;
        if (child_ <= 0 || sched_getaffinity(0, sizeof before, &before) != 0)
            return 0;
        CPU_ZERO(&one);
        for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
            if (CPU_ISSET(cpu, &before))
                CPU_SET(cpu, &one);
        }
        double seconds = 0;
        if (sched_setaffinity(child_, sizeof one, &one) == 0 && sched_setaffinity(0, sizeof one, &one) == 0)
            seconds = round_trip(window_s) / 2;
        sched_setaffinity(0, sizeof before, &before);
        return seconds;
    }

  private:
    double round_trip(double window_s) {
        long trips = 0;
        const double start = now_seconds();
        double now = start;
        do {
            for (int i = 0; i < 64; ++i, ++trips) {
                char byte = 0;
                if (write(to_child_, &byte, 1) != 1 || read(from_child_, &byte, 1) != 1)
                    return 0;
            }
            now = now_seconds();
        } while (now - start < window_s);
        return (now - start) / static_cast<double>(trips);
    }

    pid_t child_ = -1;
    int to_child_ = -1;
    int from_child_ = -1;
};

}  // namespace shmem_mt
