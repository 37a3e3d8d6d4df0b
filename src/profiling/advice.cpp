#include "profiling/advice.h"

#include "profiling/text.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace heddle::profiling {

namespace {

constexpr double kWorthTelling = 0.01;  // of the time
// Operations under way at once, of which each waits for a share of what one alone waits.
constexpr double kUnderWay = 16;

// What the rules look at of a site.
struct Seen {
    const JobProfile& job;
    const std::vector<std::string>& names;
    size_t number;
    const Site& site = job.sites[number];
    const std::string& name = names[number];

    double pes() const { return static_cast<double>(job.pes); }
    double calls() const { return static_cast<double>(site.counts.calls) / pes(); }  // of a PE, on average
    // A thread's, of those that have been here, on average.
    double time_s() const { return static_cast<double>(site.time.sum) * 1e-9 / pes() / threads(); }
    double threads() const { return static_cast<double>(std::max<uint64_t>(site.threads, 1)); }
    double size() const { return static_cast<double>(site.counts.bytes) / static_cast<double>(site.counts.calls); }
    double share(uint64_t of) const { return static_cast<double>(of) / static_cast<double>(site.counts.calls); }
    double share_of_time() const { return job.wall_s() > 0 ? 100 * time_s() / job.wall_s() : 0; }
    bool is_over_network() const { return site.counts.paths[0] * 2 < site.counts.calls; }
    bool says(const char* word) const { return strstr(site.function.data(), word) != nullptr; }
    bool is(Kind kind) const { return site.kind == kind; }
};

struct Rule {
    const char* name;
    // The gain in seconds; 0: nothing to advise. text: what was seen, and what would be right.
    double (*look)(const Seen& seen, std::string* text);
};

double look_for_single_quiets(const Seen& seen, std::string* text) {
    if (!seen.is(Kind::kQuiet) || !seen.says("quiet") || seen.calls() < 100 ||
        seen.share(seen.site.counts.singles) < 0.8)
        return 0;
    *text = print(
        "%s: %.0f quiets of a PE, each behind a single operation. Right would be one quiet behind many "
        "operations; put with signal where a flag follows; or a request for what must be known complete",
        seen.name.c_str(), seen.calls());
    return seen.time_s() * (1 - 1 / kUnderWay);
}

double look_for_late_pe(const Seen& seen, std::string* text) {
    const Extremes& time = seen.site.time;
    if (!seen.is(Kind::kCollective) || seen.calls() < 10 || seen.site.pes < 2 || seen.site.pes < seen.job.pes ||
        time.most == 0)
        return 0;
    const double saved = seen.time_s() - static_cast<double>(time.least) * 1e-9 / seen.threads();
    if (saved < 0.3 * seen.time_s() || saved < 0.05 * seen.job.wall_s())
        return 0;
    *text = print(
        "%s: PE %lld waits %.1f %% of its time here, PE %lld only %.1f %%: the others wait for that one. Right "
        "would be the same work for all between two of these calls",
        seen.name.c_str(), static_cast<long long>(time.most_pe),
        100 * static_cast<double>(time.most) * 1e-9 / seen.job.wall_s(), static_cast<long long>(time.least_pe),
        100 * static_cast<double>(time.least) * 1e-9 / seen.job.wall_s());
    return saved;
}

double look_for_small_gets(const Seen& seen, std::string* text) {
    if (!seen.is(Kind::kGet) || seen.calls() < 1000 || seen.size() > 64 || seen.says("nbi") || seen.says("nbe"))
        return 0;
    if (seen.share(seen.site.counts.following) > 0.8) {
        *text = print(
            "%s: %.0f gets of %.0f bytes of a PE, most of them where the one before ended. Right would be one "
            "get of the whole run of data",
            seen.name.c_str(), seen.calls(), seen.size());
        return seen.time_s() * 0.9;
    }
    if (!seen.is_over_network())
        return 0;
    *text = print(
        "%s: %.0f gets of %.0f bytes of a PE, each of which waits for its answer. Right would be the nbi form, or "
        "one under a request, for many at once, with a wait behind them",
        seen.name.c_str(), seen.calls(), seen.size());
    return seen.time_s() * (1 - 1 / kUnderWay);
}

double look_for_small_puts(const Seen& seen, std::string* text) {
    if (!seen.is(Kind::kPut) || seen.calls() < 1000 || seen.size() > 64 || seen.share(seen.site.counts.following) < 0.8)
        return 0;
    *text = print(
        "%s: %.0f puts of %.0f bytes of a PE, most of them where the one before ended. Right would be one put of "
        "the whole run of data",
        seen.name.c_str(), seen.calls(), seen.size());
    return seen.time_s() * 0.9;
}

double look_for_fetches(const Seen& seen, std::string* text) {
    if (!seen.is(Kind::kAtomic) || seen.calls() < 1000 || !seen.is_over_network() || seen.says("nbi") ||
        seen.says("nbe") || !(seen.says("fetch") || seen.says("swap")))
        return 0;
    *text = print(
        "%s: %.0f atomics of a PE, each of which waits for the old value. Right would be the form without fetch "
        "where the value is not used, else the nbi form for many at once",
        seen.name.c_str(), seen.calls());
    return seen.time_s() * (1 - 1 / kUnderWay);
}

double look_for_shared_context(const Seen& seen, std::string* text) {
    const auto threads = static_cast<int>(seen.site.threads);
    if (seen.site.kind > Kind::kPutSignal || threads < 2 || seen.site.is_private || seen.calls() < 1000 ||
        !seen.is_over_network())
        return 0;
    *text = print(
        "%s: %d threads of a PE use one context over the network. Right would be a context for each thread "
        "(shmem_ctx_create with SHMEM_CTX_PRIVATE)",
        seen.name.c_str(), threads);
    return seen.time_s() * (1 - 1.0 / threads);
}

double look_for_blocking_transfers(const Seen& seen, std::string* text) {
    const bool transfers = seen.is(Kind::kPut) || seen.is(Kind::kGet);
    if (!transfers || seen.size() < 65536 || seen.says("nbi") || seen.says("nbe") || !seen.is_over_network())
        return 0;
    *text = print(
        "%s: transfers of %.0f KiB that the PE waits for, %.1f %% of its time. Right would be the nbi form or a "
        "request, and to compute until the data is needed",
        seen.name.c_str(), seen.size() / 1024, seen.share_of_time());
    return seen.time_s() * 0.8;
}

double look_for_lack_of_overlap(const Seen& seen, std::string* text) {
    if (!seen.is(Kind::kQuiet) || !seen.says("quiet") || seen.share(seen.site.counts.singles) >= 0.8)
        return 0;
    const double window = static_cast<double>(seen.site.counts.window) * 1e-9 / seen.pes();
    if (seen.share_of_time() < 5 || window > 0.25 * seen.time_s())
        return 0;
    *text = print(
        "%s: the quiet comes at once behind its operations, and waits %.1f %% of the PE's time. Right would be "
        "work that does not need them between both",
        seen.name.c_str(), seen.share_of_time());
    return seen.time_s() * 0.8;
}

double look_for_locks(const Seen& seen, std::string* text) {
    if (!seen.is(Kind::kLock))
        return 0;
    *text = print(
        "%s: PEs wait %.1f %% of their time for a lock. Right would be an atomic in place of what the lock "
        "protects, or a lock for each part of the data",
        seen.name.c_str(), seen.share_of_time());
    return seen.time_s() * 0.8;
}

bool is_small_reduction(const Seen& seen) {
    return seen.is(Kind::kCollective) && (seen.says("reduce") || seen.says("_to_all") || seen.says("broadcast")) &&
           seen.calls() >= 100 && seen.size() <= 256;
}

// Another site with as many calls of that kind, which took longer.
double look_for_small_collectives(const Seen& seen, std::string* text) {
    if (!is_small_reduction(seen))
        return 0;
    const auto n = static_cast<double>(seen.site.counts.calls);
    for (size_t i = 0; i < seen.number; ++i) {
        const Seen other = {seen.job, seen.names, i};
        const auto m = static_cast<double>(other.site.counts.calls);
        if (!is_small_reduction(other) || m > 1.05 * n || n > 1.05 * m || other.site.function != seen.site.function)
            continue;
        *text = print(
            "%s, and %s: as many short collectives of one kind (%.0f of a PE each). Right would be one call for "
            "the data of both",
            seen.name.c_str(), other.name.c_str(), seen.calls());
        return seen.time_s() * 0.9;
    }
    return 0;
}

double look_for_barriers_of_neighbors(const Seen& seen, std::string* text) {
    if (!seen.is(Kind::kCollective) || !(seen.says("barrier") || seen.says("sync")) || seen.calls() < 100 ||
        seen.job.pes < 4 || seen.share_of_time() < 5)
        return 0;
    const auto groups = static_cast<size_t>(groups_of(seen.job.pes));
    size_t partners = 0;
    for (size_t from = 0; from < groups; ++from)
        for (size_t to = 0; to < groups; ++to) partners += from != to && seen.job.pairs[from][to].operations != 0;
    if (partners == 0 || partners > groups * 2 || partners * 2 > groups * (groups - 1))
        return 0;
    *text = print(
        "%s: all PEs wait for each other %.0f times, while a PE has %.1f partners. Right would be put with signal "
        "to them, and a wait for their signals",
        seen.name.c_str(), seen.calls(), static_cast<double>(partners) / static_cast<double>(groups));
    return seen.time_s() * 0.5;
}

double look_for_hot_target(const Seen& seen, std::string* text) {
    if (!seen.is(Kind::kAtomic) || seen.job.pes < 4 || seen.site.pes < 3 ||
        std::popcount(seen.site.counts.partners) != 1 || seen.calls() < 1000)
        return 0;
    *text = print(
        "%s: %.0f atomics of each of %llu PEs on one PE. Right would be a part on each PE, combined at the end or "
        "taken from others when the own one is used up",
        seen.name.c_str(), seen.calls(), static_cast<unsigned long long>(seen.site.pes));
    return seen.time_s() * 0.8;
}

constexpr Rule kRules[] = {
    {"single-quiets", look_for_single_quiets},
    {"late-pe", look_for_late_pe},
    {"small-gets", look_for_small_gets},
    {"small-puts", look_for_small_puts},
    {"fetches", look_for_fetches},
    {"shared-context", look_for_shared_context},
    {"blocking-transfers", look_for_blocking_transfers},
    {"no-overlap", look_for_lack_of_overlap},
    {"locks", look_for_locks},
    {"small-collectives", look_for_small_collectives},
    {"barriers-of-neighbors", look_for_barriers_of_neighbors},
    {"hot-target", look_for_hot_target},
};

}  // namespace

std::vector<Advice> find_advice(const JobProfile& job, const std::vector<std::string>& names) {
    std::vector<Advice> found;
    for (size_t i = 0; i < job.n_sites; ++i) {
        const Seen seen = {job, names, i};
        for (const Rule& rule : kRules) {
            std::string text;
            const double gain = rule.look(seen, &text);
            if (gain > kWorthTelling * seen.job.wall_s())
                found.push_back({rule.name, i, text, gain});
        }
    }
    std::stable_sort(found.begin(), found.end(), [](const Advice& a, const Advice& b) { return a.gain_s > b.gain_s; });
    return found;
}

}  // namespace heddle::profiling
