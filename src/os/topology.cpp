#include "os/topology.h"

#include <sched.h>
#include <unistd.h>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace heddle::os {

namespace {

// The least quota of the process's control group (version 2) and those above it; 0: no limit.
int quota_cores() {
    char group[PATH_MAX] = "", path[PATH_MAX + 64];
    FILE* file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(group, sizeof group, file) && strncmp(group, "0::/", 4) != 0) group[0] = '\0';
    if (file)
        fclose(file);
    if (!group[0])
        return 0;
    group[strcspn(group, "\n")] = '\0';
    int least = 0;
    for (char* end = group + strlen(group); end > group + 3; *end = '\0') {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group + 3);
        char line[64] = "";
        if (FILE* limit = fopen(path, "re")) {
            const int cores = fgets(line, sizeof line, limit) ? cores_of_quota(line) : 0;
            least = cores != 0 && (least == 0 || cores < least) ? cores : least;
            fclose(limit);
        }
        while (--end > group + 3 && *end != '/') {
        }
    }
    return least;
}

// The CPUs of a list that the kernel keeps for the CPU, but for itself. False when there is no list.
bool read_others(int cpu, const char* list, uint64_t* cpus, size_t words, const char* cpu_folder) {
    constexpr size_t kWordBits = 64;
    memset(cpus, 0, words * sizeof *cpus);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cpu%d/%s", cpu_folder, cpu, list);
    FILE* const file = fopen(path, "re");
    if (!file)
        return false;
    // A list of numbers and ranges: 3,35 or 0-1.
    size_t first, last;
    while (fscanf(file, "%zu", &first) == 1) {
        int separator = fgetc(file);
        last = first;
        if (separator == '-' && fscanf(file, "%zu", &last) == 1)
            separator = fgetc(file);
        for (size_t it = first; it <= last && it < words * kWordBits; ++it)
            cpus[it / kWordBits] |= uint64_t{1} << (it % kWordBits);
        if (separator != ',')
            break;
    }
    fclose(file);
    if (static_cast<size_t>(cpu) < words * kWordBits)
        cpus[static_cast<size_t>(cpu) / kWordBits] &= ~(uint64_t{1} << (static_cast<size_t>(cpu) % kWordBits));
    return true;
}

int affine_cores() {
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

}  // namespace

int cores_of_quota(const char* cpu_max) {
    unsigned long quota_us, period_us;
    if (sscanf(cpu_max, "%lu %lu", &quota_us, &period_us) != 2 || period_us == 0 || quota_us == 0)
        return 0;
    const unsigned long cores = (quota_us + period_us - 1) / period_us;
    return cores > INT_MAX ? 0 : static_cast<int>(cores);
}

int usable_cores() {
    const int affine = affine_cores(), quota = quota_cores();
    return quota != 0 && quota < affine ? quota : affine;
}

void smt_siblings(int cpu, uint64_t* cpus, size_t words, const char* cpu_folder) {
    read_others(cpu, "topology/thread_siblings_list", cpus, words, cpu_folder);
}

void cache_siblings(int cpu, uint64_t* cpus, size_t words, const char* cpu_folder) {
    if (!read_others(cpu, "cache/index3/shared_cpu_list", cpus, words, cpu_folder))
        read_others(cpu, "cache/index2/shared_cpu_list", cpus, words, cpu_folder);
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
