// heddle-info: prints this installation, the machine, the code paths that would be chosen, and the settings with their
// values and origins. `heddle-info --settings-markdown` writes docs/user/settings.md.

#include "base/settings.h"
#include "os/memfd.h"
#include "os/monitor_wait.h"
#include "os/topology.h"

#include <dlfcn.h>
#include <getopt.h>
#include <heddle/constants.h>
#include <heddle/request.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace {

using heddle::base::SettingRow;

constexpr size_t kMaxRows = 64;

// The first value of a key in /proc/cpuinfo, or "unknown".
std::string cpuinfo(const char* key) {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const size_t colon = line.find(": ");
        if (line.rfind(key, 0) == 0 && colon != std::string::npos)
            return line.substr(colon + 2);
    }
    return "unknown";
}

void print_machine() {
    utsname system = {};
    uname(&system);
    printf("machine\n");
    printf("  kernel             %s %s %s\n", system.sysname, system.release, system.machine);
    printf("  cpu                %s\n", cpuinfo("model name").c_str());
    printf("  cores usable       %d\n", heddle::os::usable_cores());
    const std::string flags = cpuinfo("flags").append(" ");
    printf("  cpu features      ");
    for (const char* feature : {"avx2", "avx512f", "waitpkg", "monitorx", "erms", "fsrm"})
        printf(" %s=%s", feature, flags.find(std::string(feature).append(" ")) != std::string::npos ? "yes" : "no");
    printf("\n");
}

// The monitor's name, the states in which the core may rest, and the longest wait.
std::string monitor_text(const heddle::os::Monitor* monitor) {
    if (!monitor)
        return "no monitor instruction";
    std::string limits = monitor->states ? monitor->states : "";
    if (monitor->longest_ns != UINT64_MAX)
        limits +=
            (limits.empty() ? "at most " : ", at most ") + std::to_string(monitor->longest_ns / 1000) + " us at a time";
    return monitor->name + (limits.empty() ? "" : " (" + limits + ")");
}

// A plugin of this program's installation, loaded, or why it cannot be loaded.
struct Plugin {
    void* library = nullptr;
    std::string reason;
};
Plugin plugin(const char* file) {
    char self[PATH_MAX] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        return {nullptr, "it cannot be found without /proc"};
    std::string path = self;
    for (int up = 0; up < 2; ++up) path.erase(std::min(path.rfind('/'), path.size()));
    Plugin found = {dlopen((path + "/" HEDDLE_LIBRARY_FOLDER "/" + file).c_str(), RTLD_LAZY | RTLD_LOCAL), ""};
    if (!found.library)
        found.reason = dlerror();
    return found;
}

std::string network_text() {
    const Plugin ucx = plugin("libheddle_ucx.so");
    if (!ucx.library)
        return "none: " + ucx.reason;
    void* const library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL);
    if (!library)
        return std::string("none: ") + dlerror();
    const auto version = reinterpret_cast<const char* (*)()>(dlsym(library, "ucp_get_version_string"));
    return std::string("UCX ") + (version ? version() : "of an unknown version");
}

std::string launchers_text() {
    const Plugin pmix = plugin("libheddle_pmix.so");
    return pmix.library ? "those that speak PMIx: mpirun, prterun, srun" : "none: " + pmix.reason;
}

void print_paths(const heddle::base::Settings& settings) {
    const int fd = heddle::os::create_memory("heddle-info", heddle::os::page_bytes());
    const auto* monitor = heddle::os::find_monitor(settings.monitor);
    printf("paths\n");
    printf("  on the node        %s\n", settings.check ? "checked: every operation through the slow path"
                                                       : "inlined loads and stores, heap and static data");
    printf("  shared memory      memfd: %s\n", fd >= 0 ? "works" : strerror(-fd));
    printf("  waiting            spin, %s, yield, sleep\n", monitor_text(monitor).c_str());
    printf("  contexts           %d bytes each, none per PE; 32 bytes per PE once for each team that has one\n",
           HEDDLE_CONTEXT_BYTES);
    printf("  between nodes      %s\n", network_text().c_str());
    printf("  other launchers    %s\n", launchers_text().c_str());
    if (fd >= 0)
        close(fd);
}

void print_settings() {
    SettingRow rows[kMaxRows];
    const size_t count = heddle::base::setting_rows(rows, kMaxRows);
    printf("settings\n");
    for (size_t i = 0; i < count; ++i) {
        const std::string value = rows[i].value;
        const bool is_list = strcmp(rows[i].origin, "default") == 0;
        printf("  %-20s = %-12s (%s)\n", rows[i].name, (is_list ? value.substr(0, value.find('|')) : value).c_str(),
               rows[i].origin);
        printf("      %s\n", rows[i].help);
    }
}

void print_markdown() {
    printf("# Environment variables\n\n");
    printf("Generated by `heddle-info --settings-markdown` from src/base/settings.def: change that, not this file.\n");
    printf("`heddle-info` prints the values that apply, and where they came from.\n\n");
    printf("| variable | default | meaning |\n|---|---|---|\n");
    SettingRow rows[kMaxRows];
    const size_t count = heddle::base::setting_rows(rows, kMaxRows);
    for (size_t i = 0; i < count; ++i) {
        std::string words = rows[i].fallback;
        for (size_t bar = 0; (bar = words.find('|', bar)) != std::string::npos; bar += 2) words.replace(bar, 1, ", ");
        const std::string old_name = rows[i].old_name ? std::string(" (or `") + rows[i].old_name + "`)" : "";
        printf("| `%s`%s | %s | %s |\n", rows[i].name, old_name.c_str(), words.c_str(), rows[i].help);
    }
}

void print_help() {
    printf(
        "heddle-info: prints version, machine, paths and settings of this installation of Heddle.\n"
        "  --settings-markdown   the settings as a table for the documentation\n"
        "  --help, --version\n");
}

}  // namespace

int main(int argc, char** argv) {
    const option options[] = {{"help", no_argument, nullptr, 'h'},
                              {"version", no_argument, nullptr, 'V'},
                              {"settings-markdown", no_argument, nullptr, 'm'},
                              {}};
    switch (getopt_long(argc, argv, "hV", options, nullptr)) {
        case 'h':
            print_help();
            return 0;
        case 'm':
            print_markdown();
            return 0;
        case -1:
        case 'V':
            printf("%s, OpenSHMEM %d.%d\n", SHMEM_VENDOR_STRING, SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
            break;
        default:
            return 2;
    }
    if (optind > 1)
        return 0;
    heddle::base::Settings settings;
    char error[512];
    if (!heddle::base::read_settings(&settings, error, sizeof error)) {
        fprintf(stderr, "heddle-info: %s\n", error);
        return 1;
    }
    print_machine();
    print_paths(settings);
    print_settings();
    return 0;
}
