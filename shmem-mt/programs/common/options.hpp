// The command line that all programs share. Lists are separated by commas. Bad input ends the program with
// status 2 and one line on stderr, before shmem_init.
#pragma once

#include <getopt.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "programs/common/faults.hpp"

namespace shmem_mt {

struct Options {
    std::vector<std::string> ops;         // empty: all of the program's
    std::vector<std::string> syncs;       // empty: all
    std::vector<std::string> placements;  // heap, static
    std::vector<std::string> contexts;    // default, shared, private; of patterns more (known_contexts)
    std::vector<std::string> teams;       // world, strided
    std::vector<std::string> schemes;     // collectives: back-to-back, window (windows.hpp)
    std::vector<std::string> touches;     // read, write-only: what the target does with the payload of a put
    std::vector<std::string> caches;      // hot; cold: buffers rotate through more than twice the last cache
    std::vector<std::string> owners;      // who had the line (pt2pt/owner.hpp)
    std::vector<long> sizes;              // bytes
    std::vector<long> batches;            // consumed rate: messages per flag
    std::vector<long> outstanding;        // ordering: messages of a thread that may be incomplete; powers of two
    std::vector<std::string> policies;    // overlap: progress policies (progress_policy.hpp)
    std::vector<long> polls_us;           // overlap: microseconds of computing from poll to poll, to be tried
    std::vector<long> waits_ms;           // wait: how long PEs wait
    std::vector<long> waiters;            // idle-waiters: threads of each PE that wait, 0 to kMaxWaiters
    int threads = 1;
    int samples = 8;                // samples of each point
    double sample_s = 0.0025;       // shortest sample, seconds
    double point_s = 1.0;           // sampling of one point stops early (after 3 samples) when it took longer
    long buffer_bytes = 64L << 20;  // collectives, alltoallv, ordering: no point whose source or dest is larger
    double compute_ratio = 1;       // overlap: seconds of computing for a second of communicating
    long seed = 1;                  // alltoallv: the sizes of the blocks
    double sleep_s = 1.0;           // wait_burn: how long PE 0 sleeps
    std::string size = "tiny";      // mini-apps: tiny, small, medium, large, or a number (apps/common/problem_size.hpp)
    std::string scale = "strong";   // mini-apps: strong, weak (apps/common/problem_size.hpp)
    std::string problem;            // cg, is: the class of the problem; empty: by size
    long pieces = 0;                // mini-apps: how many parts an overlapped exchange has; 0: by its size
    long poll_rows = 0;             // mini-apps: rows between two polls of the manual form; 0: what turns out best
    std::string image;              // mandelbrot: the file for the picture; empty: none
    bool validate = true;
    Fault fault = Fault::kNone;
    std::vector<std::string> computations = {"registers"};  // overlap (progress/overlap_computation.hpp)
    std::string benchmark = "message-rate";                 // programs of several: which of them
    std::string transports;  // bare UCX: those that it may use, as in UCX_TLS; empty: all
    std::string partner;     // of patterns of pairs: near, far; empty: far where that can be
    std::string level;       // patterns: the thread level asked for; empty: what the number of threads needs
    long messages = 0;       // patterns: of a window, or that a face or a block is cut into; 0: the pattern's own
    std::vector<std::string> known_contexts = {"default", "shared", "private"};
    bool has_pools = false;  // pool:K is a context, too: K of them for all threads

    bool wants_op(const std::string& op) const { return std::find(ops.begin(), ops.end(), op) != ops.end(); }

    bool wants_sync(const std::string& sync) const {
        return syncs.empty() || std::find(syncs.begin(), syncs.end(), sync) != syncs.end();
    }
};

[[noreturn]] inline void usage_error(const char* program, const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", program, what.c_str());
    std::exit(2);
}

inline std::vector<std::string> split_list(const std::string& text) {
    std::vector<std::string> items;
    std::stringstream stream(text);
    for (std::string item; std::getline(stream, item, ',');) {
        if (!item.empty())
            items.push_back(item);
    }
    return items;
}

inline std::string joined(const std::vector<std::string>& items) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : ", ") + item;
    return text;
}

inline double parse_number(const char* program, const char* name, const std::string& text, double low, double high) {
    char* end = nullptr;
    errno = 0;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || errno != 0 || !(value >= low) || !(value <= high)) {
        char message[256];
        std::snprintf(message, sizeof message, "--%s: '%s' is not a number between %g and %g", name, text.c_str(), low,
                      high);
        usage_error(program, message);
    }
    return value;
}

inline std::vector<long> parse_longs(const char* program, const char* name, const std::string& text, long high,
                                     long low = 1) {
    std::vector<long> values;
    for (const auto& item : split_list(text)) {
        const double value = parse_number(program, name, item, static_cast<double>(low), static_cast<double>(high));
        values.push_back(static_cast<long>(value));
    }
    return values;
}

constexpr const char* kSizeNames[] = {"tiny", "small", "medium", "large"};
constexpr double kLargestSize = 1e9;
constexpr long kMostOutstanding = 65536;
constexpr long kMaxWaiters = 4096;
constexpr int kMaxThreads = 992;  // of a PE: as many as make_base tells apart (validation.hpp)

inline bool is_size_name(const std::string& text) {
    return std::find(std::begin(kSizeNames), std::end(kSizeNames), text) != std::end(kSizeNames);
}

// The K of a context pool:K; 0 where the name is none.
inline int pool_of(const std::string& context) {
    const std::string digits = context.rfind("pool:", 0) == 0 ? context.substr(5) : "";
    const bool is_number = !digits.empty() && digits.size() < 4 &&
                           std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    return is_number ? std::stoi(digits) : 0;
}

// Those of the program, and the pools that were asked for.
inline std::vector<std::string> known_contexts(const Options& options) {
    std::vector<std::string> known = options.known_contexts;
    for (const auto& context : options.has_pools ? options.contexts : std::vector<std::string>{}) {
        if (pool_of(context) > 0)
            known.push_back(context);
    }
    if (options.has_pools && known.size() == options.known_contexts.size())
        known.push_back("pool:K with K from 1 to 999");
    return known;
}

// Ends the program when one of the lists names what is not there.
inline void check_names(const char* program, const Options& options, const std::vector<std::string>& known_ops) {
    const struct {
        const char* what;
        const std::vector<std::string> asked;
        const std::vector<std::string> known;
    } kLists[] = {
        {"operation", options.ops, known_ops},
        {"placement", options.placements, {"heap", "static"}},
        {"context", options.contexts, known_contexts(options)},
        {"level", split_list(options.level), {"single", "funneled", "serialized", "multiple"}},
        {"team", options.teams, {"world", "strided"}},
        {"scheme", options.schemes, {"back-to-back", "window"}},
        {"touch", options.touches, {"read", "write-only"}},
        {"cache", options.caches, {"hot", "cold"}},
        {"computation", options.computations, {"registers", "fma", "branches", "l1", "memory"}},
        {"partner", split_list(options.partner), {"near", "far"}},
        {"scale", {options.scale}, {"strong", "weak"}},
        {"owner", options.owners, {"handed-over", "warm", "contended", "false-sharing"}},
        {"policy",
         options.policies,
         {"manual", "polled", "auto", "thread", "thread:spin", "thread:monitor", "thread:block"}},
    };
    for (const auto& list : kLists) {
        for (const auto& name : list.asked) {
            if (std::find(list.known.begin(), list.known.end(), name) == list.known.end())
                usage_error(program,
                            std::string("unknown ") + list.what + " " + name + "; there are " + joined(list.known));
        }
    }
}

// Parses the command line over `defaults`; `known_ops` are the operations that the program has.
inline Options parse_options(int argc, char** argv, Options defaults, const std::vector<std::string>& known_ops) {
    Options options = std::move(defaults);
    if (options.ops.empty())
        options.ops = known_ops;
    const char* program = argv[0];
    static const option kLong[] = {
        {"ops", required_argument, nullptr, 'o'},          {"sizes", required_argument, nullptr, 's'},
        {"syncs", required_argument, nullptr, 'y'},        {"placements", required_argument, nullptr, 'p'},
        {"contexts", required_argument, nullptr, 'c'},     {"threads", required_argument, nullptr, 't'},
        {"samples", required_argument, nullptr, 'n'},      {"sample-ms", required_argument, nullptr, 'm'},
        {"point-ms", required_argument, nullptr, 'P'},     {"sleep-ms", required_argument, nullptr, 'S'},
        {"batches", required_argument, nullptr, 'b'},      {"outstanding", required_argument, nullptr, 'O'},
        {"teams", required_argument, nullptr, 'T'},        {"touches", required_argument, nullptr, 'u'},
        {"caches", required_argument, nullptr, 'a'},       {"owners", required_argument, nullptr, 'r'},
        {"buffer-bytes", required_argument, nullptr, 'B'}, {"no-validate", no_argument, nullptr, 'V'},
        {"plant-fault", required_argument, nullptr, 'F'},  {"compute-ratio", required_argument, nullptr, 'C'},
        {"computation", required_argument, nullptr, 'X'},  {"seed", required_argument, nullptr, 'D'},
        {"policies", required_argument, nullptr, 'L'},     {"polls-us", required_argument, nullptr, 'U'},
        {"waits-ms", required_argument, nullptr, 'W'},     {"form", required_argument, nullptr, 'o'},
        {"size", required_argument, nullptr, 'Z'},         {"scale", required_argument, nullptr, 'G'},
        {"class", required_argument, nullptr, 'K'},        {"pieces", required_argument, nullptr, 'i'},
        {"poll-rows", required_argument, nullptr, 'R'},    {"image", required_argument, nullptr, 'I'},
        {"waiters", required_argument, nullptr, 'w'},      {"schemes", required_argument, nullptr, 'E'},
        {"partner", required_argument, nullptr, 'N'},      {"level", required_argument, nullptr, 'l'},
        {"messages", required_argument, nullptr, 'M'},     {"benchmark", required_argument, nullptr, 'Q'},
        {"transports", required_argument, nullptr, 'A'},   {nullptr, 0, nullptr, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
        const std::string value = optarg ? optarg : "";
        switch (c) {
            case 'o':
                options.ops = split_list(value);
                break;
            case 's':
                options.sizes = parse_longs(program, "sizes", value, 1L << 26);
                break;
            case 'y':
                options.syncs = split_list(value);
                break;
            case 'p':
                options.placements = split_list(value);
                break;
            case 'c':
                options.contexts = split_list(value);
                break;
            case 't':
                options.threads = static_cast<int>(parse_number(program, "threads", value, 1, kMaxThreads));
                break;
            case 'n':
                options.samples = static_cast<int>(parse_number(program, "samples", value, 1, 1e6));
                break;
            case 'm':
                options.sample_s = 1e-3 * parse_number(program, "sample-ms", value, 0.01, 1e5);
                break;
            case 'P':
                options.point_s = 1e-3 * parse_number(program, "point-ms", value, 1, 1e6);
                break;
            case 'S':
                options.sleep_s = 1e-3 * parse_number(program, "sleep-ms", value, 1, 1e6);
                break;
            case 'b':
                options.batches = parse_longs(program, "batches", value, 512);
                break;
            case 'O':
                options.outstanding = parse_longs(program, "outstanding", value, kMostOutstanding);
                for (const long count : options.outstanding) {
                    if (count & (count - 1))
                        usage_error(program, "--outstanding: " + std::to_string(count) + " is not a power of two");
                }
                break;
            case 'T':
                options.teams = split_list(value);
                break;
            case 'E':
                options.schemes = split_list(value);
                break;
            case 'N':
                options.partner = value;
                break;
            case 'l':
                options.level = value;
                break;
            case 'M':
                options.messages = static_cast<long>(parse_number(program, "messages", value, 1, 4096));
                break;
            case 'Q':
                options.benchmark = value;
                break;
            case 'A':
                options.transports = value;
                break;
            case 'u':
                options.touches = split_list(value);
                break;
            case 'a':
                options.caches = split_list(value);
                break;
            case 'r':
                options.owners = split_list(value);
                break;
            case 'B':
                options.buffer_bytes = static_cast<long>(parse_number(program, "buffer-bytes", value, 8, 1e12));
                break;
            case 'C':
                options.compute_ratio = parse_number(program, "compute-ratio", value, 0.01, 100);
                break;
            case 'X':
                options.computations = split_list(value);
                break;
            case 'D':
                options.seed = static_cast<long>(parse_number(program, "seed", value, 0, 1e9));
                break;
            case 'L':
                options.policies = split_list(value);
                break;
            case 'U':
                options.polls_us = parse_longs(program, "polls-us", value, 1000000);
                break;
            case 'W':
                options.waits_ms = parse_longs(program, "waits-ms", value, 60000);
                break;
            case 'w':
                options.waiters = parse_longs(program, "waiters", value, kMaxWaiters, 0);
                break;
            case 'Z':
                if (!is_size_name(value))
                    parse_number(program, "size", value, 1, kLargestSize);
                options.size = value;
                break;
            case 'G':
                options.scale = value;
                break;
            case 'K':
                options.problem = value;
                break;
            case 'i':
                options.pieces = static_cast<long>(parse_number(program, "pieces", value, 1, 64));
                break;
            case 'R':
                options.poll_rows = static_cast<long>(parse_number(program, "poll-rows", value, 1, 1e6));
                break;
            case 'I':
                options.image = value;
                break;
            case 'V':
                options.validate = false;
                break;
            case 'F':
                if (!fault_from_name(value, &options.fault))
                    usage_error(program, "no fault is called " + value);
                break;
            default:
                std::exit(2);
        }
    }
    if (optind < argc)
        usage_error(program, std::string("unexpected argument ") + argv[optind]);
    check_names(program, options, known_ops);
    return options;
}

}  // namespace shmem_mt
