// The command line of oshrun: its options, and the messages about wrong ones. Threads: one. Starts no process.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heddle::launcher {

constexpr int kStatusBadInput = 2;

struct Host {
    std::string name;
    int pes;  // the most PEs on this host
};

struct Options {
    int pes = 0;
    std::vector<Host> hosts;  // in the order in which they are filled; empty: this machine
    double timeout_s = 0;     // 0: none
    double grace_s = 0.5;     // from the first signal to SIGKILL
    bool has_grace = false;   // --grace was given
    bool bind_to_cores = false;
    bool tag_output = false;
    std::vector<std::pair<std::string, std::string>> environment;
    char** program = nullptr;  // its arguments, the name first, null last; points into argv
};

enum class Parsed { kRun, kAnswered, kBad };  // kAnswered: --help or --version, printed; kBad: one line on stderr

// Parses up to the first word that is no option: the program's options are its own.
Parsed parse_options(int argc, char** argv, Options* options);

}  // namespace heddle::launcher
