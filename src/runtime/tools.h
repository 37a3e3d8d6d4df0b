// The tools that a run has on all PEs or on none, because their PEs wait for each other. Threads: the one in init.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::runtime {

enum Tool : uint8_t { kRaces = 1, kProfile = 2, kStats = 4, kTrace = 8 };

// The tools that the settings of this PE ask for, a bit each.
uint8_t own_tools();

// The message where a PE has a tool, kProfile, kStats or kTrace, and another one has not.
void describe_unlike(Tool tool, int with, int without, char* error, size_t error_bytes);

}  // namespace heddle::runtime
