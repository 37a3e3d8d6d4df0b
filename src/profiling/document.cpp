#include "profiling/document.h"

#include "base/place.h"
#include "base/source_line.h"
#include "profiling/text.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace heddle::profiling {

namespace {

struct Writer {
    std::string text;

    void quoted(const std::string& value) { text += profiling::quoted(value); }
    void extremes(const char* name, const Extremes& of, double unit) {
        text += print("\"%s\": {\"sum\": %.9g, \"least\": %.9g, \"least_pe\": %lld, \"most\": %.9g, \"most_pe\": %lld}",
                      name, static_cast<double>(of.sum) * unit,
                      of.least_pe < 0 ? 0.0 : static_cast<double>(of.least) * unit, static_cast<long long>(of.least_pe),
                      static_cast<double>(of.most) * unit, static_cast<long long>(of.most_pe));
    }
    template <class Values>
    void list(const char* name, const Values& values) {
        text += print("\"%s\": [", name);
        for (size_t i = 0; i < values.size(); ++i)
            text += print("%s%llu", i ? ", " : "", static_cast<unsigned long long>(values[i]));
        text += ']';
    }
};

void add_site(Writer& to, const Site& site, const std::string& place) {
    const Counts& counts = site.counts;
    to.text += print("    {\"kind\": \"%s\", \"function\": ", kKinds[static_cast<size_t>(site.kind)]);
    to.quoted(site.function.data());
    to.text += ", \"place\": ";
    to.quoted(place);
    to.text += print(", \"context\": %u, \"pes\": %llu, ", site.context, static_cast<unsigned long long>(site.pes));
    to.extremes("calls", site.calls, 1);
    to.text += ", ";
    to.extremes("seconds", site.time, 1e-9);
    to.text += print(", \"longest_seconds\": %.9g, \"bytes\": %llu, ", static_cast<double>(counts.longest) * 1e-9,
                     static_cast<unsigned long long>(counts.bytes));
    to.list("sizes", counts.sizes);
    to.text += ", ";
    to.list("paths", counts.paths);
    to.text += print(
        ", \"partners\": %d, \"threads\": %d, \"following\": %llu, \"operations\": %llu, \"singles\": %llu, "
        "\"window_seconds\": %.9g}",
        std::popcount(counts.partners), static_cast<int>(site.threads),
        static_cast<unsigned long long>(counts.following), static_cast<unsigned long long>(counts.operations),
        static_cast<unsigned long long>(counts.singles), static_cast<double>(counts.window) * 1e-9);
}

void add_pairs(Writer& to, const JobProfile& job, const char* name, uint64_t Pair::* value) {
    const size_t groups = static_cast<size_t>(groups_of(job.pes));
    to.text += print("\"%s\": [", name);
    for (size_t from = 0; from < groups; ++from) {
        to.text += print("%s[", from ? ", " : "");
        for (size_t target = 0; target < groups; ++target)
            to.text +=
                print("%s%llu", target ? ", " : "", static_cast<unsigned long long>(job.pairs[from][target].*value));
        to.text += ']';
    }
    to.text += ']';
}

}  // namespace

std::string place_of(const SiteName& site, bool with_line) {
    if (site.module[0] == '\0')
        return "";
    const char* const name = site.module.data();
    base::Module module;
    if (with_line && base::find_module_named(name, strlen(name), &module)) {
        const base::LineText line = base::source_line(module, site.linked);
        if (line[0] != '\0')
            return line.data();
    }
    return print("%s+%#llx", name, static_cast<unsigned long long>(site.linked));
}

std::string name_of(const SiteName& site, const std::string& place) {
    std::string name = site.function.data();
    if (site.kind == Kind::kQuiet && name.find("quiet") == std::string::npos)
        name += ", its quiet,";
    if (!place.empty())
        name += " at " + place;
    if (site.context != 0)
        name += ", context " + std::to_string(site.context);
    return name;
}

Document make_document(JobProfile& job) {
    std::stable_sort(job.sites.begin(), job.sites.begin() + static_cast<ptrdiff_t>(job.n_sites),
                     [](const Site& a, const Site& b) { return a.time.sum > b.time.sum; });
    Document document = {job, {}, {}};
    size_t n = 0;
    for (size_t i = 0; i < job.n_sites; ++i) {
        const Site& site = job.sites[i];
        const std::string place = place_of(site, i < kMostLines);
        // The compiler may have copied a call; loops are unrolled.
        size_t same = 0;
        while (same < n && !(document.places[same] == place && job.sites[same].is_alike(site))) ++same;
        if (same < n) {
            job.sites[same].add_copy(site);
            continue;
        }
        document.places.push_back(place);
        job.sites[n++] = site;
    }
    job.n_sites = n;
    std::vector<std::string> names;
    names.reserve(n);
    for (size_t i = 0; i < n; ++i) names.push_back(name_of(job.sites[i], document.places[i]));
    document.advice = find_advice(job, names);
    return document;
}

std::string to_json(const Document& document) {
    const JobProfile& job = document.job;
    Writer to;
    to.text += print("{\n  \"format\": 1,\n  \"program\": ");
    to.quoted(program_invocation_short_name);
    to.text += print(",\n  \"pes\": %llu,\n  \"lost_calls\": %llu,\n  ", static_cast<unsigned long long>(job.pes),
                     static_cast<unsigned long long>(job.lost_calls));
    to.extremes("wall_seconds", job.wall, 1e-9);
    to.text += ",\n  ";
    to.extremes("library_seconds", job.library, 1e-9);
    to.text += ",\n  ";
    to.extremes("heap_bytes", job.memory, 1);
    to.text += ",\n  ";
    to.extremes("threads", job.threads, 1);
    to.text += ",\n  \"limits_of_sizes\": [";
    for (size_t i = 0; i + 1 < kSizes; ++i)
        to.text += print("%s%llu", i ? ", " : "", static_cast<unsigned long long>(limit_of_size(i)));
    to.text += "],\n  \"names_of_paths\": [";
    for (size_t i = 0; i < kPaths; ++i) to.text += print("%s\"%s\"", i ? ", " : "", kPathNames[i]);
    to.text += "],\n  \"sites\": [\n";
    for (size_t i = 0; i < job.n_sites; ++i) {
        add_site(to, job.sites[i], document.places[i]);
        to.text += i + 1 < job.n_sites ? ",\n" : "\n";
    }
    to.text += print("  ],\n  \"pairs\": {\"pes_of_group\": %d, ", 1 << group_shift(static_cast<int>(job.pes)));
    add_pairs(to, job, "operations", &Pair::operations);
    to.text += ", ";
    add_pairs(to, job, "bytes", &Pair::bytes);
    to.text += "},\n  \"advice\": [\n";
    for (const Advice& advice : document.advice) {
        to.text += print("    {\"rule\": \"%s\", \"site\": %zu, \"gain_seconds\": %.9g, \"text\": ", advice.rule,
                         advice.site, advice.gain_s);
        to.quoted(advice.text);
        to.text += &advice == &document.advice.back() ? "}\n" : "},\n";
    }
    to.text += "  ]\n}\n";
    return to.text;
}

}  // namespace heddle::profiling
