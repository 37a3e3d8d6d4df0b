// Topology: the CPUs and caches that the machine offers to this process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::os {

// The number of CPUs in this process's affinity mask, or its control groups' quota in CPUs if that is less; at least 1.
int usable_cores();

// The least quota in CPUs of the process's control groups, version 1 or 2, and of those above them; 0: no limit. Tests
// give other files than the kernel's.
int quota_cores(const char* groups = "/proc/self/cgroup", const char* folder = "/sys/fs/cgroup");

// A quota in CPUs, rounded up; 0: no limit. Format: "max 100000" or "150000 100000", microseconds of so many.
int cores_of_quota(const char* cpu_max);

// The CPUs of this process's affinity mask, a bit each, up to CPU 64 * words - 1.
void usable_cpus(uint64_t* cpus, size_t words);

// The other hyper-threads of the CPU's core, a bit each; none when there are none or the kernel does not tell. Tests
// give another cpu_folder than the kernel's.
void smt_siblings(int cpu, uint64_t* cpus, size_t words, const char* cpu_folder = "/sys/devices/system/cpu");

// The other CPUs that share the CPU's last-level cache, a bit each.
void cache_siblings(int cpu, uint64_t* cpus, size_t words, const char* cpu_folder = "/sys/devices/system/cpu");

// Bytes of the last-level cache; 32 MiB when the kernel does not tell.
size_t last_level_cache_bytes();

}  // namespace heddle::os
