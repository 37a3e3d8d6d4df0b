// oshrun: runs the PEs of an OpenSHMEM program on this machine, or hands over to a launcher for several hosts.
// Contract: kHelp in options.cpp. Implementation: job.h and hosts.h.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/settings.h"
#include "hosts.h"
#include "job.h"
#include "options.h"

namespace {

// Opens closed standard streams, so that no later descriptor takes their numbers.
bool fill_standard_streams() {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    return fd >= 0 && close(fd) == 0;
}

// Checks the settings that the PEs will find, so that an error is reported once and not by every PE. Each PE reads them
// again, because a script may set others.
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
