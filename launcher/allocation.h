// The hosts that a job scheduler has given to the user, read from the environment it sets (Slurm) or from its command
// (Flux). Threads: one.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace heddle::launcher {

struct Allocation {
    std::string scheduler;  // empty: there is no allocation
    std::vector<Host> hosts;
    int cores_per_pe = 0;  // that the user has asked the scheduler for; 0: not told
};

// The names in a list as Slurm and Flux write them: "n[1-3,07],m", with leading zeros kept, and one bracket or several.
// False when the list is malformed, or has more than 2^16 names.
bool expand_host_list(const char* text, std::vector<std::string>* names);

// The numbers in a list as Slurm writes it: "2(x3),1" is 2, 2, 2, 1. False when it is malformed or too long.
bool expand_counts(const char* text, std::vector<int>* counts);

// Slurm's allocation, by this process's environment. False, with a line about the variable, when it is malformed.
bool read_slurm(Allocation* allocation, std::string* error);

// Flux's, from the output of `flux resource list -no "{ncores} {nodelist}"`. False when it is malformed.
bool read_flux(const std::string& output, Allocation* allocation);

// Uses the whole allocation where neither hosts nor a number of PEs are named, and its hosts where no hosts are. A
// single host that is this one needs no other launcher, and is not entered. False after a line on stderr.
bool use_allocation(Options* options);

}  // namespace heddle::launcher
