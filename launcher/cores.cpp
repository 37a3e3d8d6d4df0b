#include "cores.h"

#include <sched.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "environment.h"

namespace heddle::launcher {

namespace {

constexpr int kMostCpus = 1 << 20;
constexpr const char* kThreads = "OMP_NUM_THREADS";
constexpr const char* kWaiting = "OMP_WAIT_POLICY";

// The list in a file of the kernel; empty when there is none.
CpuList read_list(const std::string& path) {
    CpuList list;
    char line[4096];  // longer than a list of a thousand CPUs with holes
    FILE* const file = fopen(path.c_str(), "re");
    if (!file)
        return list;
    if (!fgets(line, sizeof line, file) || !parse_cpu_list(line, &list))
        list.clear();
    fclose(file);
    return list;
}

// Gives `n` consecutive units of one NUMA node to each PE. False when the nodes have no room for all.
bool fill_nodes(const std::vector<Cpu>& units, int pes, int n, std::vector<CpuList>* plan) {
    plan->clear();
    const size_t wanted = static_cast<size_t>(n);
    for (size_t at = 0; at + wanted <= units.size() && static_cast<int>(plan->size()) < pes;) {
        if (units[at].node != units[at + wanted - 1].node) {
            ++at;  // the rest of this node is too small
            continue;
        }
        CpuList list;
        for (size_t i = 0; i < wanted; ++i) list.push_back(units[at++].number);
        std::sort(list.begin(), list.end());
        plan->push_back(list);
    }
    return static_cast<int>(plan->size()) == pes;
}

// The number of threads that a program's PEs start, by its environment; 0: it does not tell.
int threads_told(const Environment& environment) {
    const char* const text = environment.get(kThreads);
    return text ? static_cast<int>(std::clamp(strtol(text, nullptr, 10), 0L, static_cast<long>(kMostCpus))) : 0;
}

}  // namespace

CpuList usable_cpus() {
    CpuList numbers;
    // Machines with more than CPU_SETSIZE CPUs need a larger set: EINVAL until the set is large enough.
    for (int cpus = CPU_SETSIZE; cpus <= kMostCpus && numbers.empty(); cpus *= 2) {
        cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
        const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
        if (set && sched_getaffinity(0, bytes, set) == 0) {
            for (int cpu = 0; cpu < cpus; ++cpu) {
                if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set))
                    numbers.push_back(cpu);
            }
        }
        CPU_FREE(set);
    }
    return numbers;
}

std::vector<Cpu> read_cpus(const CpuList& numbers, const char* folder) {
    std::map<int, int> node_of;
    for (const int node : read_list(std::string(folder) + "/node/online"))
        for (const int cpu : read_list(std::string(folder) + "/node/node" + std::to_string(node) + "/cpulist"))
            node_of[cpu] = node;
    std::vector<Cpu> cpus;
    for (const int number : numbers) {
        const CpuList siblings =
            read_list(std::string(folder) + "/cpu/cpu" + std::to_string(number) + "/topology/thread_siblings_list");
        const auto node = node_of.find(number);
        cpus.push_back({number, node == node_of.end() ? 0 : node->second, siblings.empty() ? number : siblings[0]});
    }
    std::sort(cpus.begin(), cpus.end(), [](const Cpu& a, const Cpu& b) {
        return a.node != b.node ? a.node < b.node : a.core != b.core ? a.core < b.core : a.number < b.number;
    });
    return cpus;
}

std::vector<CpuList> plan_cores(const std::vector<Cpu>& cpus, int pes, int cores_per_pe) {
    std::vector<Cpu> firsts;  // a hyper-thread of each core
    for (const Cpu& cpu : cpus)
        if (firsts.empty() || firsts.back().core != cpu.core || firsts.back().node != cpu.node)
            firsts.push_back(cpu);
    const int n = std::min(cores_per_pe, static_cast<int>(cpus.size()));
    std::vector<CpuList> plan;
    if (fill_nodes(firsts, pes, n, &plan) || fill_nodes(cpus, pes, n, &plan))
        return plan;
    plan.clear();
    for (size_t pe = 0, at = 0; pe < static_cast<size_t>(pes); ++pe) {
        CpuList list;
        for (int i = 0; i < n; ++i) list.push_back(cpus[at++ % cpus.size()].number);
        std::sort(list.begin(), list.end());
        plan.push_back(list);
    }
    return plan;
}

CpuList widen_to_nodes(const std::vector<Cpu>& cpus, const CpuList& list) {
    const auto is_in = [&](int node) {
        return std::any_of(cpus.begin(), cpus.end(), [&](const Cpu& cpu) {
            return cpu.node == node && std::count(list.begin(), list.end(), cpu.number) > 0;
        });
    };
    CpuList all;
    for (const Cpu& cpu : cpus)
        if (is_in(cpu.node))
            all.push_back(cpu.number);
    std::sort(all.begin(), all.end());
    return all;
}

std::string to_text(const CpuList& list) {
    std::string text;
    for (size_t i = 0; i < list.size();) {
        size_t last = i;
        while (last + 1 < list.size() && list[last + 1] == list[last] + 1) ++last;
        if (!text.empty())
            text += ',';
        text += std::to_string(list[i]);
        if (last > i)
            text.append(1, '-').append(std::to_string(list[last]));
        i = last + 1;
    }
    return text;
}

bool parse_cpu_list(const char* text, CpuList* list) {
    list->clear();
    while (*text != '\0' && *text != '\n') {
        char* rest;
        const long first = strtol(text, &rest, 10);
        long last = first;
        if (rest == text || *text < '0' || *text > '9')
            return false;
        if (*rest == '-') {
            text = rest + 1;
            last = strtol(text, &rest, 10);
            if (*text < '0' || *text > '9')
                return false;
        }
        if (last < first || last >= kMostCpus || (!list->empty() && first <= list->back()))
            return false;
        for (long it = first; it <= last; ++it) list->push_back(static_cast<int>(it));
        if (*rest != ',' && *rest != '\0' && *rest != '\n')
            return false;
        text = *rest == ',' ? rest + 1 : rest;
    }
    return true;
}

std::vector<CpuList> plan_bindings(const Options& options) {
    if (!options.is_bound())
        return {};
    const std::vector<Cpu> cpus = read_cpus(usable_cpus());
    if (cpus.empty())
        return {};
    const bool to_nodes = options.bind == Bind::kNuma;
    const int share = to_nodes ? std::max(1, static_cast<int>(cpus.size()) / options.pes) : 1;
    std::vector<CpuList> plan = plan_cores(cpus, options.pes, options.cores_per_pe > 0 ? options.cores_per_pe : share);
    for (CpuList& list : plan)
        if (to_nodes)
            list = widen_to_nodes(cpus, list);
    return plan;
}

std::string plan_threads(int cores, Options* options) {
    const int share = options->bind == Bind::kCore ? 1 : std::max(1, cores / options->pes);
    const int own = options->cores_per_pe > 0 ? options->cores_per_pe : share;
    int most = 0;
    long all = 0;
    for (Program& program : options->programs) {
        const Environment environment(program);
        if (!environment.get(kThreads))
            program.environment.emplace_back(kThreads, std::to_string(own));
        const int threads = environment.get(kThreads) ? std::max(1, threads_told(environment)) : own;
        most = std::max(most, threads);
        all += static_cast<long>(threads) * program.pes;
    }
    if (all <= cores)
        return {};
    bool passive = true;
    for (Program& program : options->programs) {
        const Environment environment(program);
        const char* const told = environment.get(kWaiting);
        if (!told)
            program.environment.emplace_back(kWaiting, "passive");
        passive = passive && (!told || strcasecmp(told, "passive") == 0);
    }
    if (most == 1)
        return {};
    return std::to_string(options->pes) + " PEs with up to " + std::to_string(most) + " threads each (" +
           (options->cores_per_pe == most ? "-c" : kThreads) + ") share " + std::to_string(cores) +
           (cores == 1 ? " core" : " cores") +
           (passive ? ": OpenMP waits passively" : ": OMP_WAIT_POLICY=passive would help");
}

}  // namespace heddle::launcher
