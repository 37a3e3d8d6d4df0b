// The command line of oshrun: what it may say, and what is said when it does not. One thread; prints, starts nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heddle::launcher {

constexpr int kStatusBadInput = 2;

struct Host {
    std::string name;
    int pes;  // that it may have
};

struct Options {
    int pes = 0;
    std::vector<Host> hosts;  // in the order in which they are filled; none: this machine
    double timeout_s = 0;     // 0: none
    double grace_s = 0.5;     // from the first signal to SIGKILL
    bool has_grace = false;   // --grace was given
    bool bind_to_cores = false;
    bool tag_output = false;
    std::vector<std::pair<std::string, std::string>> environment;
    char** program = nullptr;  // its arguments, the name first, null last; points into argv
};

enum class Parsed { kRun, kAnswered, kBad };  // kAnswered: --help or --version, printed; kBad: one line on stderr

// The program's own options stay its own: parsing ends at the first word that is no option.
Parsed parse_options(int argc, char** argv, Options* options);

}  // namespace heddle::launcher
