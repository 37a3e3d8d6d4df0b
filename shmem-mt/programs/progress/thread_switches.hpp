// How often the kernel has taken the calling thread from its core: because the thread waited (voluntary), or because
// another one had its turn (involuntary).
#pragma once

#include <sys/resource.h>

namespace shmem_mt {

struct ThreadSwitches {
    long voluntary = 0, involuntary = 0;
};

inline ThreadSwitches thread_switches() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return {usage.ru_nvcsw, usage.ru_nivcsw};
}

}  // namespace shmem_mt
