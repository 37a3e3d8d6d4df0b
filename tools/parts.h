// The parts of this installation: what each plugin stands on, loaded and asked. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "os/plugin.h"

namespace heddle::tools {

struct InstalledPart {
    const os::Part* part;
    void* plugin = nullptr;  // of dlopen; null: `reason` says why
    std::string version;     // of the library that the part stands on
    std::string reason;      // one line, with its cure where the part was not built
};

// Loads all parts, which stay loaded.
std::vector<InstalledPart> load_parts();

// The network's devices, each with its transports: "eth0 (network): tcp". Empty when the part is not loaded.
std::vector<std::string> network_devices(const std::vector<InstalledPart>& parts);

void print_parts(const std::vector<InstalledPart>& parts);

// A line for each part that is missing, and none where all are there: the last words of a build.
void print_missing_parts(const std::vector<InstalledPart>& parts);

}  // namespace heddle::tools
