// What the machine offers to this process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::os {

// CPUs that this process may run on (its affinity mask), or as many as its control groups' quota comes to, if that is
// fewer; at least 1.
int usable_cores();

// The least quota of the process's control groups, of version 1 or 2, and of those above them, in CPUs; 0: no limit.
// groups, folder: where the kernel tells, but in tests.
int quota_cores(const char* groups = "/proc/self/cgroup", const char* folder = "/sys/fs/cgroup");

// What a quota ("max 100000", "150000 100000": microseconds of so many) comes to in CPUs, rounded up; 0: no limit.
int cores_of_quota(const char* cpu_max);

// The same, a bit each; those beyond 64 * words are left out.
void usable_cpus(uint64_t* cpus, size_t words);

// The other hyper-threads of the CPU's core, a bit each; none where there are none or the kernel does not tell.
// cpu_folder: where it tells, but in tests.
void smt_siblings(int cpu, uint64_t* cpus, size_t words, const char* cpu_folder = "/sys/devices/system/cpu");

// Likewise the other CPUs that share the CPU's last-level cache.
void cache_siblings(int cpu, uint64_t* cpus, size_t words, const char* cpu_folder = "/sys/devices/system/cpu");

// Bytes of the last-level cache, as the kernel tells; 32 MiB where it does not.
size_t last_level_cache_bytes();

}  // namespace heddle::os
