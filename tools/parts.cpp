#include "parts.h"

#include <dlfcn.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

namespace heddle::tools {

namespace {

// The library's function that tells its version, found through the plugin, which may need the library.
template <class T>
T function_of(void* library, const char* name) {
    return reinterpret_cast<T>(dlsym(library, name));
}

// The plugin of UCX is loaded without UCX (fabric/transport/ucx/ucx.cpp). False with the reason.
bool ask_ucx(InstalledPart* loaded) {
    void* const library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        loaded->reason = dlerror();
        return false;
    }
    if (const auto version = function_of<const char* (*)()>(library, "ucp_get_version_string"))
        loaded->version = version();
    return true;
}

// PMIx tells a line: "OpenPMIx 4.2.2 (PMIx Standard: ...)".
void ask_pmix(InstalledPart* loaded) {
    if (const auto version = function_of<const char* (*)()>(loaded->plugin, "PMIx_Get_version"))
        loaded->version = version();
    loaded->version.erase(std::min(loaded->version.find_first_of(",("), loaded->version.size()));
    loaded->version.erase(loaded->version.find_last_not_of(' ') + 1);
}

// No plugin, but a library that programs in Fortran are linked with.
constexpr os::Part kFortranPart = {"libheddle_fortran.a", "gfortran", "programs in Fortran (oshfort)",
                                   "gfortran (Debian, Ubuntu; Fedora: gcc-gfortran)", ""};

InstalledPart load(const os::Part& part) {
    InstalledPart loaded = {&part, nullptr, "", ""};
    char path[PATH_MAX];
    if (!os::find_plugin_of(part, path, sizeof path)) {
        loaded.reason = "this program cannot be found without /proc";
    } else if (!os::is_built(part)) {
        loaded.reason = os::describe_missing(part);
    } else if (loaded.plugin = dlopen(path, RTLD_LAZY | RTLD_LOCAL); !loaded.plugin) {
        loaded.reason = std::string("cannot be loaded: ") + dlerror();
    } else if (&part == &os::kPmixPart) {
        ask_pmix(&loaded);
    } else if (!ask_ucx(&loaded)) {
        loaded.reason.insert(0, "cannot be loaded: ");
        loaded.plugin = nullptr;
    }
    return loaded;
}

}  // namespace

std::vector<InstalledPart> load_parts() {
    return {load(os::kNetworkPart), load(os::kPmixPart)};
}

std::vector<std::string> network_devices(const std::vector<InstalledPart>& parts) {
    const auto list =
        parts[0].plugin ? function_of<size_t (*)(char*, size_t)>(parts[0].plugin, "heddle_transport_devices") : nullptr;
    std::string text(list ? 64 * 1024 : 0, '\0');
    if (list)
        text.resize(list(text.data(), text.size()));
    std::vector<std::pair<std::string, std::string>> devices;  // and their transports
    std::istringstream lines(text);
    const auto word = [&](std::string* read, char end) { return static_cast<bool>(std::getline(lines, *read, end)); };
    for (std::string device, kind, transport; word(&device, '\t') && word(&kind, '\t') && word(&transport, '\n');) {
        device += " (" + kind + ")";
        auto known = std::find_if(devices.begin(), devices.end(), [&](const auto& one) { return one.first == device; });
        if (known == devices.end())
            devices.emplace_back(device, transport);
        else
            known->second += " " + transport;
    }
    std::vector<std::string> found;
    found.reserve(devices.size());
    for (const auto& [device, transports] : devices) found.emplace_back(device).append(": ").append(transports);
    return found;
}

void print_parts(const std::vector<InstalledPart>& parts) {
    printf("parts\n");
    for (const InstalledPart& loaded : parts) {
        const bool names_itself = loaded.version.find(loaded.part->stands_on) != std::string::npos;
        printf("  %-18s %s%s%s\n", loaded.part->file,
               loaded.plugin ? (names_itself ? "" : loaded.part->stands_on) : "none: ",
               loaded.plugin && !names_itself ? " " : "",
               loaded.plugin ? (loaded.version.empty() ? "of an unknown version" : loaded.version.c_str())
                             : loaded.reason.c_str());
    }
    for (const std::string& device : network_devices(parts)) printf("  device             %s\n", device.c_str());
}

void print_missing_parts(const std::vector<InstalledPart>& parts) {
    for (const InstalledPart& loaded : parts)
        if (!loaded.plugin)
            printf("Heddle's part %s: %s\n", loaded.part->file, loaded.reason.c_str());
    if (!os::is_built(kFortranPart))
        printf("Heddle's part %s: %s\n", kFortranPart.file, os::describe_missing(kFortranPart).c_str());
}

}  // namespace heddle::tools
