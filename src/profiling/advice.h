// What to change, by rules over a profile (docs/user/profiling.md has them). Threads: one.
#pragma once

#include "profiling/counts.h"

#include <string>
#include <vector>

namespace heddle::profiling {

struct Advice {
    const char* rule;
    size_t site;        // in the profile
    std::string text;   // what was seen, and what would be right
    double gain_s = 0;  // of a PE, on average
};

// names: of the sites. Those first that gain most; each gains a hundredth of the time or more.
std::vector<Advice> find_advice(const JobProfile& job, const std::vector<std::string>& names);

}  // namespace heddle::profiling
