// The tools that a run has on all PEs or on none, because their PEs wait for each other. Threads: the one in init.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::runtime {

enum Tool : uint8_t { kRaces = 1, kProfile = 2, kStats = 4, kTrace = 8 };

// Tools on which all PEs agree; for races, see agree_on_races.
constexpr uint8_t kAgreed = kProfile | kStats | kTrace;

// The tools that the settings of this PE ask for, a bit each.
uint8_t own_tools();

// Whether pe has those of the tools `among` that this PE has. False with the message in error, where one of both lacks
// one.
bool are_alike(uint8_t among, int pe, uint8_t theirs, char* error, size_t error_bytes);

}  // namespace heddle::runtime
