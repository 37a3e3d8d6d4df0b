#include "os/topology.h"

#include <sched.h>
#include <unistd.h>
#include <cstdlib>

namespace heddle::os {

int usable_cores() {
    // Machines with more than CPU_SETSIZE CPUs need a larger set; the kernel says EINVAL until it is large enough.
    for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {
        cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
        const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
        const int failed = set ? sched_getaffinity(0, bytes, set) : -1;
        const int count = failed ? 0 : CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    return 1;
}

size_t last_level_cache_bytes() {
    constexpr size_t kUsual = 32u << 20;
    const long known = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return known > 0 ? static_cast<size_t>(known) : kUsual;
}

}  // namespace heddle::os
