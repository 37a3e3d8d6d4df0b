#include "allocation.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bootstrap/job_page.h"
#include "bootstrap/launch_environment.h"
#include "environment.h"
#include "os/command.h"
#include "start.h"

namespace heddle::launcher {

namespace {

constexpr size_t kMostNames = 1 << 16;

// Reads digits. False when there are none, or too many.
bool read_number(const char** at, long* number) {
    char* rest;
    *number = strtol(*at, &rest, 10);
    const bool good = **at >= '0' && **at <= '9' && rest - *at <= 9;
    *at = rest;
    return good;
}

// Appends each number of a bracket, "1-3,07]", to each name. Leaves `at` behind the bracket.
bool expand_bracket(const char** at, std::vector<std::string>* names) {
    std::vector<std::string> suffixes;
    for (bool more = true; more; ++*at) {
        const char* const begin = *at;
        long first, last;
        if (!read_number(at, &first))
            return false;
        const int width = static_cast<int>(*at - begin);
        last = first;
        if (**at == '-') {
            ++*at;
            if (!read_number(at, &last))
                return false;
        }
        if (last < first || static_cast<size_t>(last - first) >= kMostNames || (**at != ',' && **at != ']'))
            return false;
        for (; first <= last; ++first) {
            char number[16];
            snprintf(number, sizeof number, "%0*ld", width, first);
            suffixes.push_back(number);
        }
        more = **at == ',';
    }
    if (names->size() * suffixes.size() > kMostNames)
        return false;
    std::vector<std::string> all;
    for (const std::string& name : *names)
        for (const std::string& suffix : suffixes) all.push_back(name + suffix);
    *names = all;
    return true;
}

std::string short_name(const std::string& host) {
    return host.substr(0, host.find('.'));
}

bool is_this_host(const std::string& name) {
    char own[HOST_NAME_MAX + 1] = {};
    gethostname(own, sizeof own - 1);
    const char* const slurm = getenv("SLURMD_NODENAME");
    return short_name(name) == short_name(own) || (slurm && name == slurm);
}

// Flux's command, where there is an instance of Flux. False after a line on stderr.
bool ask_flux(Allocation* allocation) {
    std::string path, output;
    if (!bootstrap::has_flux() || find_program("flux", getenv("PATH"), &path) != 0)
        return true;
    if (os::run_command({path, "resource", "list", "-s", "up", "-no", "{ncores} {nodelist}"}, &output) == 0 &&
        read_flux(output, allocation))
        return true;
    fprintf(stderr, "oshrun: FLUX_URI is set, but flux resource list does not tell the hosts; name them by --hosts\n");
    return false;
}

}  // namespace

bool expand_host_list(const char* text, std::vector<std::string>* names) {
    names->clear();
    while (true) {
        std::vector<std::string> group = {""};
        while (*text != '\0' && *text != ',') {
            if (*text == '[') {
                ++text;
                if (!expand_bracket(&text, &group))
                    return false;
            } else if (isgraph(static_cast<unsigned char>(*text)) && *text != ']') {
                for (std::string& name : group) name += *text;
                ++text;
            } else {
                return false;
            }
        }
        if (group[0].empty() || names->size() + group.size() > kMostNames)
            return false;
        names->insert(names->end(), group.begin(), group.end());
        if (*text++ == '\0')
            return true;
    }
}

bool expand_counts(const char* text, std::vector<int>* counts) {
    counts->clear();
    while (true) {
        long count, times = 1;
        if (!read_number(&text, &count) || count == 0)
            return false;
        if (strncmp(text, "(x", 2) == 0) {
            text += 2;
            if (!read_number(&text, &times) || *text != ')')
                return false;
            ++text;
        }
        if (static_cast<size_t>(times) + counts->size() > kMostNames)
            return false;
        counts->insert(counts->end(), static_cast<size_t>(times), static_cast<int>(count));
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
}

bool read_slurm(Allocation* allocation, std::string* error) {
    const char* const list = bootstrap::slurm_hosts();
    if (!list)
        return true;
    std::vector<std::string> names;
    std::vector<int> counts;
    const char* const cores = getenv("SLURM_CPUS_PER_TASK");
    const int cores_per_pe = cores ? std::max(0, atoi(cores)) : 0;
    const char* const tasks = getenv("SLURM_TASKS_PER_NODE");
    const char* const cpus = tasks ? tasks : getenv("SLURM_JOB_CPUS_PER_NODE");
    if (!expand_host_list(list, &names)) {
        *error = std::string("SLURM_JOB_NODELIST=") + list + " is no list of hosts";
        return false;
    }
    if (!cpus || !expand_counts(cpus, &counts) || counts.size() != names.size()) {
        *error = std::string(tasks || !cpus ? "SLURM_TASKS_PER_NODE=" : "SLURM_JOB_CPUS_PER_NODE=") +
                 (cpus ? cpus : "") + " does not tell a number for each host of " + list;
        return false;
    }
    allocation->scheduler = "Slurm";
    allocation->cores_per_pe = cores_per_pe;
    for (size_t i = 0; i < names.size(); ++i)
        allocation->hosts.push_back({names[i], tasks ? counts[i] : std::max(1, counts[i] / std::max(1, cores_per_pe))});
    return true;
}

bool read_flux(const std::string& output, Allocation* allocation) {
    for (size_t begin = 0; begin < output.size();) {
        const size_t end = std::min(output.find('\n', begin), output.size());
        const std::string line = output.substr(begin, end - begin);
        begin = end + 1;
        const char* at = line.c_str();
        long cores;
        std::vector<std::string> names;
        if (!read_number(&at, &cores) || *at != ' ' || !expand_host_list(at + 1, &names))
            return false;
        const int each = static_cast<int>(cores / static_cast<long>(names.size()));
        for (const std::string& name : names) allocation->hosts.push_back({name, std::max(1, each)});
    }
    allocation->scheduler = "Flux";
    return !allocation->hosts.empty();
}

bool use_allocation(Options* options) {
    Allocation allocation;
    std::string error;
    if (!options->hosts.empty())
        return true;
    if (!read_slurm(&allocation, &error)) {
        fprintf(stderr, "oshrun: %s; name the hosts by --hosts\n", error.c_str());
        return false;
    }
    if (allocation.scheduler.empty() && !ask_flux(&allocation))
        return false;
    if (allocation.scheduler.empty())
        return true;
    Program& first = options->programs[0];
    const bool sets_pes = first.pes == 0 && options->programs.size() == 1 && options->pes_per_host == 0;
    if (sets_pes) {
        const int divisor = allocation.scheduler == "Flux" ? std::max(1, options->cores_per_pe) : 1;
        for (Host& host : allocation.hosts) host.pes = std::max(1, host.pes / divisor);
        for (const Host& host : allocation.hosts) first.pes += host.pes;
        if (options->cores_per_pe == 0)
            options->cores_per_pe = allocation.cores_per_pe;
    }
    if (allocation.hosts.size() == 1 && is_this_host(allocation.hosts[0].name))
        return true;
    for (Host& host : allocation.hosts)
        if (options->pes_per_host > 0)
            host.pes = options->pes_per_host;
    options->hosts = allocation.hosts;
    options->scheduler = allocation.scheduler;
    return true;
}

}  // namespace heddle::launcher
