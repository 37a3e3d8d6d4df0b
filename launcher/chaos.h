// Chaos on the command line: the seed of a job, from which the library draws how late and in which order operations
// take effect (HEDDLE_CHAOS). Threads: one. Starts nothing; chaos_runs.h runs several seeds.
#pragma once

#include <cstdint>
#include <string>

#include "options.h"

namespace heddle::launcher {

constexpr const char* kChaosSetting = "HEDDLE_CHAOS";
constexpr uint64_t kLargestSeed = 1'000'000'000;  // of the settings that are numbers (base/settings.h)

// The value of --chaos= or --chaos-runs. option: the words before the value, for the message. False after a line on
// stderr.
bool parse_seed(const char* option, const char* text, uint64_t* seed);
bool parse_runs(const char* text, int* runs);

// Brings options and environment together: HEDDLE_CHAOS is set for a job with --chaos. A seed that neither of them
// gives is drawn. False, after a line on stderr, when they contradict each other.
bool settle_seed(Options* options);

// The command that runs one job with this seed, as a shell reads it: the settings in the environment, then oshrun.
std::string command_of(const Options& options, uint64_t seed);

// What oshrun says last of a job with --chaos, without "oshrun: ".
std::string seed_line(const Options& options);

// " (HEDDLE_CHAOS=17)", for messages about the end of a job; nothing without chaos.
std::string seed_note(const Options& options);

}  // namespace heddle::launcher
