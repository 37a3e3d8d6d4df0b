#include "os/topology.h"

#include <sched.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

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

void usable_cpus(uint64_t* cpus, size_t words) {
    memset(cpus, 0, words * sizeof *cpus);
    // Fails where the kernel's sets are larger: then none is known.
    sched_getaffinity(0, words * sizeof *cpus, reinterpret_cast<cpu_set_t*>(cpus));
}

size_t last_level_cache_bytes() {
    constexpr size_t kUsual = 32u << 20;
    // Not sysconf: glibc 2.36 adds up the caches of all dies of a processor.
    for (const char* path :
         {"/sys/devices/system/cpu/cpu0/cache/index3/size", "/sys/devices/system/cpu/cpu0/cache/index2/size"}) {
        FILE* file = fopen(path, "re");
        size_t kib = 0;
        const bool known = file && fscanf(file, "%zuK", &kib) == 1;
        if (file)
            fclose(file);
        if (known && kib > 0)
            return kib << 10;
    }
    return kUsual;
}

}  // namespace heddle::os
