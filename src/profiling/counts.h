// What a profile counts, of one PE and of a job (HEDDLE_PROFILE, docs/decisions/0081). A job's profile has a fixed
// size, whatever the numbers of PEs, threads and calls, so that PEs pass it on as it is. Plain values: no threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle::profiling {

// Of a message: up to 8, 64, 512 bytes, 4, 32, 256 KiB, 2 MiB, and more.
constexpr size_t kSizes = 8;
constexpr uint64_t limit_of_size(size_t i) {
    return uint64_t{8} << 3 * i;
}
// How an operation gets to its target: loads and stores on the node, a record among others in a message, or large data
// that has messages of its own or goes natively.
enum class Path : uint32_t { kNode, kRecord, kLarge };
constexpr size_t kPaths = 3;
constexpr const char* kPathNames[kPaths] = {"node", "record", "large"};

enum class Kind : uint32_t {
    kPut,
    kGet,
    kAtomic,
    kPutSignal,
    kQuiet,
    kFence,
    kWait,
    kRequest,
    kLock,
    kCollective,
    kPosted
};
constexpr const char* kKinds[] = {"put",  "get",     "atomic", "put_signal", "quiet", "fence",
                                  "wait", "request", "lock",   "collective", "posted"};

// PEs in so many groups of neighbors, at most: each PE is one where there are no more.
constexpr int kGroups = 64;
constexpr int group_shift(int n_pes) {
    int shift = 0;
    while ((n_pes - 1) >> shift >= kGroups) ++shift;
    return shift;
}
constexpr int groups_of(uint64_t n_pes) {
    return static_cast<int>((n_pes - 1) >> group_shift(static_cast<int>(n_pes))) + 1;
}

// Of the calls at a place of the program in a context. Times are in ticks in a thread's counts, in ns in a profile.
struct Counts {
    uint64_t calls = 0;
    uint64_t bytes = 0;
    uint64_t exact_calls = 0, exact_time = 0;  // calls of which each is timed, as long as it takes
    uint64_t timed_calls = 0;                  // of the others, of which some are timed
    uint64_t time = 0;
    uint64_t longest = 0;
    std::array<uint64_t, kSizes> sizes = {};
    std::array<uint64_t, kPaths> paths = {};
    uint64_t partners = 0;    // groups of target PEs, a bit each
    uint64_t threads = 0;     // of a PE: a bit for each, the 64th for all further ones
    uint64_t following = 0;   // operations that begin where the one before of the thread has ended, on the same PE
    uint64_t operations = 0;  // of quiets, fences and requests: the operations since the last of them
    uint64_t singles = 0;     // of these calls: those with no more than one operation
    uint64_t window = 0;      // from the first of these operations to the call, outside the library: time for overlap
    // Time of all calls, if of the short ones those that were timed are like the others.
    uint64_t time_of_all() const {
        const double others = timed_calls == 0 ? 0
                                               : static_cast<double>(time) * static_cast<double>(calls - exact_calls) /
                                                     static_cast<double>(timed_calls);
        return exact_time + static_cast<uint64_t>(others);
    }
    void add(const Counts& other);
};

// A value of each PE: the sum, and the PEs with the least and the most.
struct Extremes {
    uint64_t sum = 0, least = UINT64_MAX, most = 0;
    int64_t least_pe = -1, most_pe = -1;

    void add(uint64_t value, int pe);
    void add(const Extremes& other);
};

// A call of the program in one context.
struct SiteName {
    static constexpr size_t kFunction = 48, kModule = 80;

    std::array<char, kFunction> function = {};
    std::array<char, kModule> module = {};  // the name of its file; empty: unknown
    uint64_t linked = 0;                    // the address of the call as in that file
    uint32_t context = 0;                   // 0: the default context; then in the order of first use
    Kind kind = Kind::kPut;
    uint64_t is_private = 0;  // the context is one of a single thread

    bool is_at_place_of(const SiteName& other) const;
    // The same call of the same context, perhaps at another place.
    bool is_alike(const SiteName& other) const;
};

struct Site : SiteName {
    uint64_t pes = 0;      // that have been here
    uint64_t threads = 0;  // of a PE that have been here, at most
    Counts counts;         // of all
    Extremes time;         // by PE, ns
    Extremes calls;

    void add(const Site& other);
    // A copy that the compiler has made of this call, which took less time: the PEs of least and most stay.
    void add_copy(const Site& other);
};

struct Pair {
    uint64_t operations = 0, bytes = 0;
};

struct JobProfile {
    static constexpr size_t kMostSites = 256;

    uint64_t n_sites = 0;
    uint64_t lost_calls = 0;  // at places for which there was no room
    uint64_t pes = 0;
    Extremes wall;     // ns from init to finalize
    Extremes library;  // of these, in calls, of a thread on average
    Extremes memory;   // most bytes of the heap that the program had allocated at once
    Extremes threads;  // that have called at the same time
    std::array<Site, kMostSites> sites = {};
    std::array<std::array<Pair, kGroups>, kGroups> pairs = {};  // from group to group

    // The whole that shares are of: the time of the PE that ran longest.
    double wall_s() const { return static_cast<double>(wall.most) * 1e-9; }

    // Behind it, the profile is that of both sets of PEs.
    void add(const JobProfile& other);
    // As one of those there, or a new one, or, where there is no room, as lost calls.
    void add(const Site& site);
};

}  // namespace heddle::profiling
