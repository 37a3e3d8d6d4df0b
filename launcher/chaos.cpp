#include "chaos.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>

#include "base/settings.h"
#include "environment.h"

namespace heddle::launcher {

namespace {

// True for a whole number from 1 to `largest`.
template <class T>
bool parse_positive(const char* text, T largest, T* number) {
    const char* end = text + strlen(text);
    const auto [rest, error] = std::from_chars(text, end, *number);
    return error == std::errc() && rest == end && *number >= 1 && *number <= largest;
}

// The seed that a value of HEDDLE_CHAOS means; 0: none, or malformed, which the check of all settings tells.
uint64_t seed_in(const char* value) {
    uint64_t seed = 0;
    return value && parse_positive(value, kLargestSeed, &seed) ? seed : 0;
}

// The seed of a job without --chaos; 0 where its programs differ.
uint64_t seed_by_setting(const Options& options) {
    uint64_t seed = seed_in(Environment(options.programs[0]).get(kChaosSetting));
    for (const Program& program : options.programs)
        if (seed_in(Environment(program).get(kChaosSetting)) != seed)
            seed = 0;
    return seed;
}

bool chaos_fits_together(const Options& options) {
    if (options.compare_output && options.chaos_runs == 0) {
        fprintf(stderr, "oshrun: --compare-output: there is nothing to compare without --chaos-runs N\n");
        return false;
    }
    if (options.compare_output && !options.output_dir.empty()) {
        fprintf(stderr,
                "oshrun: --compare-output compares what the PEs write to stdout, which --output-dir takes: use one of "
                "them\n");
        return false;
    }
    for (const Program& program : options.programs)
        for (const auto& [name, value] : program.environment)
            if (options.chaos && name == kChaosSetting) {
                fprintf(stderr, "oshrun: --env %s=%s: --chaos sets it for all PEs: use one of them\n", kChaosSetting,
                        value.c_str());
                return false;
            }
    return true;
}

uint64_t draw_seed(uint64_t largest) {
    std::random_device device;
    return std::uniform_int_distribution<uint64_t>(1, largest)(device);
}

// A word as a shell reads it.
std::string quote(std::string_view word) {
    constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_";
    if (!word.empty() && word.find_first_not_of(kPlain) == word.npos)
        return std::string(word);
    std::string text = "'";
    for (const char letter : word) {
        if (letter == '\'')
            text += "'\\'";
        text += letter;
    }
    return text + "'";
}

// Whether a variable decides how the job runs: a setting that was set, or a variable of Heddle's tests.
bool is_setting(std::string_view name) {
    base::SettingRow rows[base::kMaxSettings];
    const size_t count = base::setting_rows(rows, base::kMaxSettings);
    return name.starts_with("HEDDLE_TEST_") ||
           std::any_of(rows, rows + count, [&](const base::SettingRow& row) { return name == row.origin; });
}

}  // namespace

bool parse_seed(const char* option, const char* text, uint64_t* seed) {
    if (parse_positive(text, kLargestSeed, seed))
        return true;
    fprintf(stderr, "oshrun: %s%s: the seed must be a whole number from 1 to %llu\n", option, text,
            static_cast<unsigned long long>(kLargestSeed));
    return false;
}

bool parse_runs(const char* text, int* runs) {
    if (parse_positive(text, static_cast<int>(kLargestSeed), runs))
        return true;
    fprintf(stderr, "oshrun: --chaos-runs %s: the number of jobs must be a whole number from 1 to %llu\n", text,
            static_cast<unsigned long long>(kLargestSeed));
    return false;
}

bool settle_seed(Options* options) {
    if (!chaos_fits_together(*options))
        return false;
    if (!options->chaos) {
        options->chaos_seed = seed_by_setting(*options);
        return true;
    }
    const char* const value = getenv(kChaosSetting);
    if (value && strcmp(value, "0") != 0) {
        uint64_t seed;
        if (!parse_seed("HEDDLE_CHAOS=", value, &seed))
            return false;
        if (options->chaos_seed != 0 && options->chaos_seed != seed) {
            fprintf(stderr, "oshrun: --chaos=%llu: HEDDLE_CHAOS=%llu is set here: use one of them\n",
                    static_cast<unsigned long long>(options->chaos_seed), static_cast<unsigned long long>(seed));
            return false;
        }
        options->chaos_seed = seed;
    }
    const auto further = static_cast<uint64_t>(std::max(options->chaos_runs, 1) - 1);
    if (options->chaos_seed == 0)
        options->chaos_seed = draw_seed(kLargestSeed - further);
    const unsigned long long last = options->chaos_seed + further;
    if (last > kLargestSeed) {
        fprintf(stderr, "oshrun: --chaos=%llu --chaos-runs %d: the last seed would be %llu; the largest is %llu\n",
                static_cast<unsigned long long>(options->chaos_seed), options->chaos_runs, last,
                static_cast<unsigned long long>(kLargestSeed));
        return false;
    }
    setenv(kChaosSetting, std::to_string(options->chaos_seed).c_str(), 1);
    return true;
}

std::string command_of(const Options& options, uint64_t seed) {
    std::string text;
    for (char** variable = environ; variable && *variable; ++variable) {
        const std::string_view entry = *variable;
        const std::string_view name = entry.substr(0, entry.find('='));
        if (name.size() < entry.size() && name != kChaosSetting && is_setting(name))
            text.append(name).append("=").append(quote(entry.substr(name.size() + 1))).append(" ");
    }
    for (const std::string& word : options.words) {
        text += quote(word) + " ";
        if (&word == options.words.data())
            text += "--chaos=" + std::to_string(seed) + " ";
    }
    text.pop_back();
    return text;
}

std::string seed_line(const Options& options) {
    const std::string seed = std::to_string(options.chaos_seed);
    return "chaos seed " + seed + " (HEDDLE_CHAOS=" + seed +
           "); this job again: " + command_of(options, options.chaos_seed);
}

std::string seed_note(const Options& options) {
    return options.chaos_seed == 0 ? "" : " (HEDDLE_CHAOS=" + std::to_string(options.chaos_seed) + ")";
}

}  // namespace heddle::launcher
