// A job's profile as a document: JSON, and what both it and the page say of a place. Threads: one.
#pragma once

#include "profiling/advice.h"
#include "profiling/counts.h"

#include <string>
#include <vector>

namespace heddle::profiling {

struct Document {
    const JobProfile& job;
    std::vector<std::string> places;  // of the sites: "solve.c:214", or "prog+0x1234", or empty
    std::vector<Advice> advice;       // what gains most first
};

// Finds the lines of the sites that took longest. Sorts the sites by time.
Document make_document(JobProfile& job);

std::string to_json(const Document& document);

// "solve.c:214" if the line is asked for and known, else "prog+0x1234"; empty: unknown. A line takes a process.
std::string place_of(const SiteName& site, bool with_line);
constexpr size_t kMostLines = 40;  // that a document looks for

// "shmem_quiet at solve.c:214", with its context if that is not the default one.
std::string name_of(const SiteName& site, const std::string& place);

}  // namespace heddle::profiling
