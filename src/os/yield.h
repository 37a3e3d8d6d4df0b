// Leaves the core to another thread that is ready to run on it, and says whether there was one. About 1 us. Any thread.
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
