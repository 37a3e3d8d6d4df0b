// One line of JSON about the host that it runs on: what tells its kernel from others, and what its figures depend on. It
// calls no library, so that hosts are known also where PEs cannot talk to each other.
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "programs/common/output.hpp"

namespace {

std::string first_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// What stands behind the colon of that name; empty where there is none.
std::string field(const char* path, const std::string& name) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const size_t colon = line.find(':');
        if (line.rfind(name, 0) != 0 || colon == std::string::npos)
            continue;
        const size_t begin = line.find_first_not_of(" \t", colon + 1);
        return begin == std::string::npos ? "" : line.substr(begin);
    }
    return "";
}

}  // namespace

int main() {
    utsname system{};
    uname(&system);
    const std::string model = field("/proc/cpuinfo", "model name");
    const std::string memory = field("/proc/meminfo", "MemTotal");  // in kB
    shmem_mt::Json line;
    line.text("event", "host")
        .text("boot", first_line("/proc/sys/kernel/random/boot_id"))
        .text("name", system.nodename);
    line.text("cpu", model.empty() ? system.machine : model).integer("cores", sysconf(_SC_NPROCESSORS_ONLN));
    line.text("kernel", system.release);
    line.raw("memory_bytes",
             memory.empty() ? "null" : std::to_string(1024 * std::strtoll(memory.c_str(), nullptr, 10)));
    line.text("governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    line.print();
    return 0;
}
