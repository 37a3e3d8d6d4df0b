// oshrun: runs the PEs of an OpenSHMEM program on this machine, or has another launcher run them on several hosts. See
// options.cpp for what it promises, job.h and hosts.h for how.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/settings.h"
#include "hosts.h"
#include "job.h"
#include "options.h"

namespace {

// A descriptor made later must not take the number of a standard stream that is closed.
bool fill_standard_streams() {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    return fd >= 0 && close(fd) == 0;
}

// The settings that the PEs will find. What is wrong with them is said here, once, and not by every PE; each reads them
// again, for a script between may set others.
bool are_settings_right(const heddle::launcher::Options& options) {
    for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
    char error[1024];
    heddle::base::Settings settings;
    if (heddle::base::read_settings(&settings, error, sizeof error))
        return true;
    fprintf(stderr, "oshrun: %s\n", error);
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace heddle::launcher;
    if (!fill_standard_streams()) {
        fprintf(stderr, "oshrun: cannot open /dev/null\n");
        return 1;
    }
    Options options;
    switch (parse_options(argc, argv, &options)) {
        case Parsed::kAnswered:
            return 0;
        case Parsed::kBad:
            return kStatusBadInput;
        case Parsed::kRun:
            break;
    }
    if (!are_settings_right(options))
        return kStatusBadInput;
    return options.hosts.empty() ? Job(options).run() : hand_over(options);
}
