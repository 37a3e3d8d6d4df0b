// Binds each thread of a PE to a core of that PE, where the PE has a core for each and no other PE may use them. What a
// launcher leaves unbound stays so: PEs that share their cores cannot divide them without knowing of each other.
#pragma once

#include <sched.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "programs/common/job.hpp"

namespace shmem_mt {

// The first hardware thread of the core of that CPU; the CPU itself where the kernel does not say.
inline int core_of(int cpu) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    int first = cpu;
    return file >> first ? first : cpu;
}

// Where the threads of a PE may be bound to.
struct Places {
    std::vector<cpu_set_t> sets;
    bool are_cores = false;  // each with all of its hardware threads; otherwise single hardware threads
};

// The cores among the CPUs that this PE may use; where threads are more than those, the CPUs.
inline Places places_of(const cpu_set_t& cpus, int threads) {
    std::map<int, cpu_set_t> by_core;
    Places found;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &cpus))
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        found.sets.push_back(one);
        const auto [core, is_new] = by_core.try_emplace(core_of(cpu), one);
        if (!is_new)
            CPU_SET(cpu, &core->second);
    }
    found.are_cores = static_cast<int>(by_core.size()) >= threads;
    if (found.are_cores)
        found.sets.clear();
    for (const auto& core : by_core) {
        if (found.are_cores)
            found.sets.push_back(core.second);
    }
    return found;
}

// Whether no two PEs of a host may use the same CPU.
inline bool are_apart(const std::vector<Cores>& pes) {
    std::map<long, cpu_set_t> taken;
    for (const Cores& one : pes) {
        const auto [host, is_new] = taken.try_emplace(one.host, one.cpus);
        cpu_set_t both;
        CPU_AND(&both, &host->second, &one.cpus);
        if (!is_new && CPU_COUNT(&both) > 0)
            return false;
        CPU_OR(&host->second, &host->second, &one.cpus);
    }
    return true;
}

// Binds the threads of all PEs, or none; says how: `core` (each to one), `cpu` (to a hardware thread), `none`. What the
// library starts later inherits the core of the thread that starts it. Collective.
inline std::string pin_threads(Job& job) {
    const Cores mine = cores_of(job.me());
    std::vector<Cores> all(job.me() == 0 ? static_cast<size_t>(job.n_pes()) : 0);
    job.gather(&mine, sizeof mine, all.data());
    const Places places = places_of(mine.cpus, job.threads());
    Report enough, cores;
    enough.ok = (job.me() != 0 || are_apart(all)) && static_cast<int>(places.sets.size()) >= job.threads();
    cores.ok = places.are_cores;
    const bool each_has_cores = job.agree(cores).ok;
    if (!job.agree(enough).ok)
        return "none";
    job.team().run(
        [&](int thread) { sched_setaffinity(0, sizeof(cpu_set_t), &places.sets[static_cast<size_t>(thread)]); });
    return each_has_cores ? "core" : "cpu";
}

}  // namespace shmem_mt
