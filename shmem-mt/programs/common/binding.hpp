// Which CPU each thread of a PE is bound to. Launchers bind a PE to as many CPUs as it has threads, or to none; a thread
// that the kernel moves from one NUMA domain to another leaves its memory behind. PEs of a host that may use the same
// CPUs share them out; where there are too few for all threads, or PEs share some of their CPUs only, no thread is bound.
#pragma once

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "programs/common/cores.hpp"

namespace shmem_mt {

// A PE among those of its host that may use the same CPUs.
struct Seat {
    long index = 0;
    long sharers = 0;  // 0: threads are not to be bound
};

inline std::vector<Seat> seats_of(const std::vector<Cores>& pes) {
    std::vector<Seat> seats(pes.size());
    for (size_t me = 0; me < pes.size(); ++me) {
        bool partly = CPU_COUNT(&pes[me].cpus) == 0;
        for (size_t other = 0; other < pes.size(); ++other) {
            if (pes[other].host != pes[me].host)
                continue;
            cpu_set_t both;
            CPU_AND(&both, &pes[me].cpus, &pes[other].cpus);
            const bool same = CPU_EQUAL(&pes[me].cpus, &pes[other].cpus);
            seats[me].sharers += same;
            seats[me].index += same && other < me;
            partly = partly || (!same && CPU_COUNT(&both) > 0);
        }
        if (partly)
            seats[me] = {};
    }
    return seats;
}

// A CPU and where it is: the hardware thread of its core that it is, and its package.
struct CpuPlace {
    int cpu, sibling, package;
};

// Which of the CPUs of a list as the kernel writes it, such as 0-1 or 3,67, that CPU is.
inline int place_in_list(const std::string& list, int cpu) {
    int before = 0;
    std::stringstream items(list);
    for (std::string item; std::getline(items, item, ',');) {
        const int first = std::atoi(item.c_str());
        const size_t dash = item.find('-');
        const int last = dash == std::string::npos ? first : std::atoi(item.c_str() + dash + 1);
        before += std::max(0, std::min(cpu, last + 1) - first);
    }
    return before;
}

inline CpuPlace find_cpu(int cpu) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    CpuPlace place{cpu, 0, 0};
    std::string siblings;
    if (std::ifstream(folder + "thread_siblings_list") >> siblings)
        place.sibling = place_in_list(siblings, cpu);
    std::ifstream(folder + "physical_package_id") >> place.package;
    return place;
}

// A CPU for each thread of the PE: cores before second hardware threads, those of one package side by side. Empty: none
// is to be bound.
inline std::vector<int> cpus_for(std::vector<CpuPlace> cpus, const Seat& seat, int threads) {
    if (seat.sharers == 0 || static_cast<long>(cpus.size()) < seat.sharers * threads)
        return {};
    std::sort(cpus.begin(), cpus.end(), [](const CpuPlace& a, const CpuPlace& b) {
        return std::tie(a.sibling, a.package, a.cpu) < std::tie(b.sibling, b.package, b.cpu);
    });
    std::vector<int> chosen;
    for (long i = seat.index * threads; i < (seat.index + 1) * threads; ++i)
        chosen.push_back(cpus[static_cast<size_t>(i)].cpu);
    return chosen;
}

inline std::vector<CpuPlace> places_of(const cpu_set_t& cpus) {
    std::vector<CpuPlace> places;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &cpus))
            places.push_back(find_cpu(cpu));
    }
    return places;
}

// While it lives, the calling thread may run on all of the CPUs that it could use before it was bound: a thread that a
// library makes meanwhile is not bound with it.
class Unbound {
  public:
    static void bind(int cpu) {
        Binding& mine = binding();
        mine.is_bound = sched_getaffinity(0, sizeof mine.all, &mine.all) == 0;
        CPU_ZERO(&mine.one);
        CPU_SET(cpu, &mine.one);
        mine.is_bound = mine.is_bound && sched_setaffinity(0, sizeof mine.one, &mine.one) == 0;
    }

    Unbound() {
        if (binding().is_bound)
            sched_setaffinity(0, sizeof(cpu_set_t), &binding().all);
    }
    ~Unbound() {
        if (binding().is_bound)
            sched_setaffinity(0, sizeof(cpu_set_t), &binding().one);
    }
    Unbound(const Unbound&) = delete;
    Unbound& operator=(const Unbound&) = delete;

  private:
    struct Binding {
        bool is_bound = false;
        cpu_set_t all, one;
    };
    static Binding& binding() {
        thread_local Binding mine;
        return mine;
    }
};

}  // namespace shmem_mt
