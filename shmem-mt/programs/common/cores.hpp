// Where the PEs run, and whether they have enough to run on: hosts, the CPUs that the kernel lets a PE use, and the CPU
// time that its control group may take.
#pragma once

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace shmem_mt {

// What one PE may use.
struct Cores {
    long host = 0;          // equal on all PEs of one kernel, and on no others
    cpu_set_t cpus{};       // empty: not known
    long group = 0;         // the control group that leaves it the least CPU time; 0: none limits it
    double group_cpus = 0;  // so many CPUs' time
};

// A part that a PE has of what its host has.
struct HostPart {
    long host = 0;
    double amount = 0;
};

// What tells this kernel from others. Where that is not known every PE counts as a host.
inline long host_of(int pe) {
    constexpr long kMost = (1L << 40) - 1;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    long hash = 0;
    for (char c; file.get(c);) hash = (hash * 131 + c) & kMost;
    return hash != 0 ? hash : -1 - pe;
}

// Each level of the control group (version 2) of this process may limit it.
inline void find_group(Cores* cores) {
    std::string own;
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        if (line.rfind("0::/", 0) == 0)
            own = line.substr(3);
    }
    size_t end = 0;
    do {
        const std::string path = "/sys/fs/cgroup" + own.substr(0, end) + "/cpu.max";
        std::ifstream file(path);
        double time = 0, period = 0;
        struct stat status;
        const bool limits = file >> time >> period && period > 0 && stat(path.c_str(), &status) == 0;
        if (limits && (cores->group == 0 || time / period < cores->group_cpus)) {
            cores->group = static_cast<long>(status.st_ino);
            cores->group_cpus = time / period;
        }
        end = end < own.size() ? std::min(own.find('/', end + 1), own.size()) : std::string::npos;
    } while (end != std::string::npos);
}

inline Cores cores_of(int pe) {
    Cores own;
    own.host = host_of(pe);
    if (sched_getaffinity(0, sizeof own.cpus, &own.cpus) != 0)
        CPU_ZERO(&own.cpus);
    find_group(&own);
    return own;
}

// Whether PEs of so many threads each have more threads than cores: those of a host that must share the CPUs of one of
// them, or those of a control group. That finds all where the CPUs of two PEs are the same, apart, or some of the others',
// as launchers bind.
inline bool too_few_cores(const std::vector<Cores>& pes, long threads) {
    for (const Cores& one : pes) {
        const int cpus = CPU_COUNT(&one.cpus);
        long confined = 0, limited = 0;
        for (const Cores& other : pes) {
            if (other.host != one.host)
                continue;
            cpu_set_t both;
            CPU_AND(&both, &one.cpus, &other.cpus);
            confined += CPU_EQUAL(&both, &other.cpus) ? threads : 0;
            limited += other.group == one.group ? threads : 0;
        }
        if ((cpus > 0 && confined > cpus) || (one.group != 0 && static_cast<double>(limited) > one.group_cpus))
            return true;
    }
    return false;
}

// The sum of the parts of a host, on the host where that is most.
inline double most_of_a_host(const std::vector<HostPart>& parts) {
    std::map<long, double> sums;
    double most = 0;
    for (const HostPart& part : parts) most = std::max(most, sums[part.host] += part.amount);
    return most;
}

}  // namespace shmem_mt
