#include "profiling/counts.h"

#include <algorithm>

namespace heddle::profiling {

void Counts::add(const Counts& other) {
    calls += other.calls;
    bytes += other.bytes;
    exact_calls += other.exact_calls;
    exact_time += other.exact_time;
    timed_calls += other.timed_calls;
    time += other.time;
    longest = std::max(longest, other.longest);
    for (size_t i = 0; i < kSizes; ++i) sizes[i] += other.sizes[i];
    for (size_t i = 0; i < kPaths; ++i) paths[i] += other.paths[i];
    partners |= other.partners;
    threads |= other.threads;
    following += other.following;
    operations += other.operations;
    singles += other.singles;
    window += other.window;
}

void Extremes::add(uint64_t value, int pe) {
    add({value, value, value, pe, pe});
}

void Extremes::add(const Extremes& other) {
    if (other.least_pe < 0)
        return;
    sum += other.sum;
    if (least_pe < 0 || other.least < least) {
        least = other.least;
        least_pe = other.least_pe;
    }
    if (most_pe < 0 || other.most > most) {
        most = other.most;
        most_pe = other.most_pe;
    }
}

bool SiteName::is_at_place_of(const SiteName& other) const {
    return linked == other.linked && module == other.module && is_alike(other);
}

bool SiteName::is_alike(const SiteName& other) const {
    return context == other.context && kind == other.kind && function == other.function;
}

void Site::add(const Site& other) {
    pes += other.pes;
    threads = std::max(threads, other.threads);
    counts.add(other.counts);
    time.add(other.time);
    calls.add(other.calls);
}

void Site::add_copy(const Site& other) {
    pes = std::max(pes, other.pes);
    threads = std::max(threads, other.threads);
    counts.add(other.counts);
    const auto add_to = [](Extremes& own, const Extremes& more) {
        own.sum += more.sum;
        own.least += more.least;
        own.most += more.most;
    };
    add_to(time, other.time);
    add_to(calls, other.calls);
}

void JobProfile::add(const Site& site) {
    const auto end = sites.begin() + static_cast<ptrdiff_t>(n_sites);
    const auto found = std::find_if(sites.begin(), end, [&](const Site& one) { return one.is_at_place_of(site); });
    if (found != end)
        found->add(site);
    else if (n_sites < kMostSites)
        sites[n_sites++] = site;
    else
        lost_calls += site.counts.calls;
}

void JobProfile::add(const JobProfile& other) {
    lost_calls += other.lost_calls;
    pes += other.pes;
    wall.add(other.wall);
    library.add(other.library);
    memory.add(other.memory);
    threads.add(other.threads);
    for (size_t i = 0; i < std::min<uint64_t>(other.n_sites, kMostSites); ++i) add(other.sites[i]);
    for (size_t from = 0; from < kGroups; ++from)
        for (size_t to = 0; to < kGroups; ++to) {
            pairs[from][to].operations += other.pairs[from][to].operations;
            pairs[from][to].bytes += other.pairs[from][to].bytes;
        }
}

}  // namespace heddle::profiling
