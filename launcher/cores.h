// Which cores the PEs of this host get, and how many threads fit into them. A core is a CPU as the kernel numbers it: a
// hyper-thread where there are any. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace heddle::launcher {

using CpuList = std::vector<int>;  // numbers, ascending

struct Cpu {
    int number;
    int node;  // of the NUMA nodes; 0 where the kernel does not tell
    int core;  // the least number of its hyper-threads
};

// The CPUs of this process's affinity mask, which taskset, a cgroup or a job scheduler may have made small.
CpuList usable_cpus();

// Where CPUs lie, sorted by NUMA node, core and number. Tests give another folder than the kernel's.
std::vector<Cpu> read_cpus(const CpuList& numbers, const char* folder = "/sys/devices/system");

// The CPUs of each PE, `cores_per_pe` each if there are so many; cpus: sorted as by read_cpus. One CPU of each core
// serves while that suffices. A PE lies within a NUMA node where all PEs can. Otherwise PEs follow each other through
// the nodes, and share CPUs where these are too few.
std::vector<CpuList> plan_cores(const std::vector<Cpu>& cpus, int pes, int cores_per_pe);

// All CPUs of the NUMA nodes in which those of `list` lie.
CpuList widen_to_nodes(const std::vector<Cpu>& cpus, const CpuList& list);

// As the kernel writes lists: "0-3,8".
std::string to_text(const CpuList& list);
// False when the text is malformed; numbers are ascending and below 2^20.
bool parse_cpu_list(const char* text, CpuList* list);

// The CPUs of each PE of this host; empty: nothing is bound.
std::vector<CpuList> plan_bindings(const Options& options);

// Sets OMP_NUM_THREADS for each program that has no value: to -c, or to an equal share of `cores`, the usable ones.
// Where PEs and threads are more than the cores, makes OpenMP's threads wait passively. Returns a line for the user, if
// threads that were asked for are the reason; otherwise nothing.
std::string plan_threads(int cores, Options* options);

}  // namespace heddle::launcher
