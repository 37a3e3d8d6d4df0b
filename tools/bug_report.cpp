#include "bug_report.h"

#include <gnu/libc-version.h>
#include <heddle/constants.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/settings.h"
#include "os/command.h"
#include "os/topology.h"
#include "parts.h"

namespace heddle::tools {

std::string value_in(const char* path, const std::string& key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.rfind(key, 0) != 0)
            continue;
        const size_t begin = line.find_first_not_of(" \t:=\"", key.size());
        const size_t end = line.find_last_not_of(" \t\"");
        return begin == std::string::npos ? "" : line.substr(begin, end + 1 - begin);
    }
    return "unknown";
}

namespace {

void print(const char* name, const std::string& text) {
    printf("  %-18s %s\n", name, text.c_str());
}

void print_build() {
    printf("build\n");
    print("version", std::string(SHMEM_VENDOR_STRING) + ", OpenSHMEM " + std::to_string(SHMEM_MAJOR_VERSION) + "." +
                         std::to_string(SHMEM_MINOR_VERSION));
    print("commit", kCommit[0] ? kCommit : "unknown: not built from a repository");
#ifdef __clang__
    print("compiler", __VERSION__);
#else
    print("compiler", "gcc " __VERSION__);
#endif
}

// The number of NUMA nodes, as the kernel lists them.
int numa_nodes() {
    std::error_code error;
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/node", error)) {
        const std::string name = entry.path().filename();
        count += name.size() > 4 && name.rfind("node", 0) == 0 && name.find_first_not_of("0123456789", 4) == name.npos;
    }
    return std::max(count, 1);
}

void print_machine() {
    utsname system = {};
    uname(&system);
    printf("machine\n");
    print("system", value_in("/etc/os-release", "PRETTY_NAME"));
    print("kernel", std::string(system.sysname) + " " + system.release + " " + system.machine);
    print("C library", gnu_get_libc_version());
    print("cpu", value_in("/proc/cpuinfo", "model name"));
    print("cores", std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " online, " + std::to_string(os::usable_cores()) +
                       " usable, " + std::to_string(numa_nodes()) + " NUMA node(s)");
    print("memory", value_in("/proc/meminfo", "MemTotal") + ", available " + value_in("/proc/meminfo", "MemAvailable"));
    print("overcommit", value_in("/proc/sys/vm/overcommit_memory", ""));
    print("cgroup's memory", value_in("/sys/fs/cgroup/memory.max", ""));
    print("huge pages", value_in("/sys/kernel/mm/transparent_hugepage/enabled", ""));
    print("yama", value_in("/proc/sys/kernel/yama/ptrace_scope", ""));
}

void print_limits() {
    constexpr struct {
        const char* name;
        int number;
    } kLimits[] = {{"address space", RLIMIT_AS}, {"locked memory", RLIMIT_MEMLOCK}, {"open files", RLIMIT_NOFILE},
                   {"processes", RLIMIT_NPROC},  {"stack", RLIMIT_STACK},           {"core file", RLIMIT_CORE}};
    const auto text = [](rlim_t value) { return value == RLIM_INFINITY ? "unlimited" : std::to_string(value); };
    printf("limits\n");
    for (const auto& limit : kLimits) {
        rlimit values = {};
        getrlimit(static_cast<__rlimit_resource>(limit.number), &values);
        print(limit.name, text(values.rlim_cur) + " (at most " + text(values.rlim_max) + ")");
    }
}

constexpr const char* kSecret = "HEDDLE_LAUNCH_TOKEN";  // a report is for others

// Those that differ from their defaults, and UCX's, which UCX reads itself.
void print_settings() {
    base::SettingRow rows[base::kMaxSettings];
    const size_t count = base::setting_rows(rows, base::kMaxSettings);
    printf("settings\n");
    for (size_t i = 0; i < count; ++i)
        if (strcmp(rows[i].origin, "default") != 0)
            printf("  %s=%s\n", rows[i].name, strcmp(rows[i].name, kSecret) == 0 ? "(set)" : rows[i].value);
    for (char** variable = environ; *variable; ++variable)
        if (strncmp(*variable, "UCX_", 4) == 0)
            printf("  %s\n", *variable);
}

void print_launchers() {
    printf("launchers\n");
    for (const char* name : {"prterun", "mpirun", "srun", "mpiexec.hydra", "mpiexec", "flux"}) {
        std::string said;
        // $0: the launcher. 127: there is none.
        const char* const ask = strcmp(name, "flux") == 0 ? "exec \"$0\" version" : "exec \"$0\" --version";
        const int status = os::run_command({"/bin/sh", "-c", ask, name}, &said);
        if (status == 127)
            continue;
        // hydra's first lines are a heading and the version.
        size_t begin = said.find("Version:");
        begin = begin == std::string::npos ? 0 : said.find_first_not_of(' ', begin + strlen("Version:"));
        said = said.substr(std::min(begin, said.size()));
        said.erase(std::min(said.find('\n'), said.size()));
        print(name, status == 0 ? said : "does not tell its version");
    }
}

}  // namespace

void print_bug_report() {
    print_build();
    print_machine();
    print_limits();
    print_settings();
    print_parts(load_parts());
    print_launchers();
}

}  // namespace heddle::tools
