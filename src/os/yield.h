// Leaves the core to another thread that is ready to run, and returns whether there was one. Cost: about 1 us. Threads:
// any.
#pragma once

#include <sched.h>
#include <sys/resource.h>

namespace heddle::os {

inline bool yield_to_another() {
    rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    sched_yield();
    getrusage(RUSAGE_THREAD, &after);
    return after.ru_nivcsw != before.ru_nivcsw;  // a thread that yields stays ready: its switch counts as involuntary
}

}  // namespace heddle::os
