// The memory of a job, and whether what it computes with fits the caches of its machine.
#pragma once

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>

#include "programs/common/job.hpp"

namespace shmem_mt {

// Bytes of this process: its own pages, and of pages that processes share its part. So PEs add up. 0 where the kernel
// does not say.
inline double resident_bytes() {
    std::ifstream file("/proc/self/smaps_rollup");
    for (std::string line; std::getline(file, line);) {
        double kib = 0;
        if (std::sscanf(line.c_str(), "Pss: %lf", &kib) == 1)
            return 1024 * kib;
    }
    return 0;
}

// Of all PEs. Collective.
inline double job_bytes(Job& job) {
    Report mine;
    mine.seconds = resident_bytes();
    return job.agree(mine).mean_seconds * job.n_pes();
}

// Bytes of all last caches of this machine together; 0 where the kernel does not say.
inline double last_caches_bytes() {
    std::map<std::string, double> caches;  // by the CPUs that share them
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
        std::string cpus, size;
        for (int index = 0; index < 8; ++index) {
            std::ifstream sizes(folder + std::to_string(index) + "/size");
            if (!(sizes >> size))
                break;
            std::ifstream(folder + std::to_string(index) + "/shared_cpu_list") >> cpus;
        }
        double value = 0;
        char unit = ' ';
        if (!size.empty() && std::sscanf(size.c_str(), "%lf%c", &value, &unit) == 2)
            caches[cpus] = value * (unit == 'M' ? 1 << 20 : unit == 'K' ? 1 << 10 : 1);
    }
    double all = 0;
    for (const auto& [cpus, bytes] : caches) all += bytes;
    return all;
}

}  // namespace shmem_mt
