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

// The smaller of the two limits; 0: none.
int least(int limit, int cores) {
    return limit == 0 || (cores != 0 && cores < limit) ? cores : limit;
}

bool read_line(const char* folder, const char* file, char* line, size_t bytes) {
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE* const opened = fopen(path, "re");
    const bool is_read = opened && fgets(line, static_cast<int>(bytes), opened);
    if (opened)
        fclose(opened);
    return is_read;
}

// The quota of one control group in CPUs, from either version's files; 0: no limit.
int quota_of_group(const char* folder) {
    char quota[64], period[64];
    if (read_line(folder, "cpu.max", quota, sizeof quota))
        return cores_of_quota(quota);
    if (!read_line(folder, "cpu.cfs_quota_us", quota, sizeof quota) || quota[0] == '-' ||
        !read_line(folder, "cpu.cfs_period_us", period, sizeof period))
        return 0;
    char both[2 * sizeof quota + 1];
    snprintf(both, sizeof both, "%.*s %s", static_cast<int>(strcspn(quota, "\n")), quota, period);
    return cores_of_quota(both);
}

// The least quota of the group and of those above it, up to the mounted one. In a container only the mounted one may
// exist.
int quota_of_path(const char* mounted, const char* group) {
    char folder[PATH_MAX];
    const int length = snprintf(folder, sizeof folder, "%s%s", mounted, group);
    if (length < 0 || static_cast<size_t>(length) >= sizeof folder)
        return 0;
    int limit = 0;
    size_t end = static_cast<size_t>(length);
    end -= end > 0 && folder[end - 1] == '/';  // of the mounted group itself
    for (; end >= strlen(mounted); --end) {
        if (folder[end] != '\0' && folder[end] != '/')
            continue;
        folder[end] = '\0';
        limit = least(limit, quota_of_group(folder));
    }
    return limit;
}

bool is_in_list(const char* word, const char* list) {
    for (const size_t length = strlen(word); list; list = strchr(list, ','), list += list ? 1 : 0)
        if (strncmp(list, word, length) == 0 && (list[length] == ',' || list[length] == '\0'))
            return true;
    return false;
}

// The CPUs of a list that the kernel keeps for `cpu`, without `cpu`. False when there is no list.
bool read_others(int cpu, const char* list, uint64_t* cpus, size_t words, const char* cpu_folder) {
    constexpr size_t kWordBits = 64;
    memset(cpus, 0, words * sizeof *cpus);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cpu%d/%s", cpu_folder, cpu, list);
    FILE* const file = fopen(path, "re");
    if (!file)
        return false;
    // The list has numbers and ranges: 3,35 or 0-1.
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
    // Machines with more than CPU_SETSIZE CPUs need a larger set: EINVAL until the set is large enough.
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

int quota_cores(const char* groups, const char* folder) {
    FILE* const file = fopen(groups, "re");
    int limit = 0;
    char line[PATH_MAX];
    while (file && fgets(line, sizeof line, file)) {
        // A line is number:controllers:group; version 2 has no controllers.
        line[strcspn(line, "\n")] = '\0';
        char* const controllers = strchr(line, ':');
        char* const group = controllers ? strchr(controllers + 1, ':') : nullptr;
        if (!group)
            continue;
        *group = '\0';
        if (controllers[1] == '\0') {
            limit = least(limit, quota_of_path(folder, group + 1));
        } else if (is_in_list("cpu", controllers + 1)) {
            char mounted[PATH_MAX];
            const char* const others = controllers + 1;
            for (const char* name : {"cpu", strcmp(others, "cpu") == 0 ? nullptr : others})
                if (name && snprintf(mounted, sizeof mounted, "%s/%s", folder, name) < static_cast<int>(sizeof mounted))
                    limit = least(limit, quota_of_path(mounted, group + 1));
        }
    }
    if (file)
        fclose(file);
    return limit;
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
    // Fails where the kernel's sets are larger: the result is then empty.
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
