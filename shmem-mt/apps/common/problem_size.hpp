// How large a problem is, as --size says: by name, from a fraction of a second (tiny, for tests) over about a second
// (small) and ten (medium) to minutes (large), or as a number of what the mini-app counts: an edge, keys, particles.
#pragma once

#include <cmath>
#include <cstdlib>
#include <string>

#include "programs/common/job.hpp"

namespace shmem_mt {

// What the names stand for in one mini-app.
struct Sizes {
    long tiny, small, medium, large;
};

inline long size_of(const Options& options, const Sizes& sizes) {
    const long named[] = {sizes.tiny, sizes.small, sizes.medium, sizes.large};
    for (size_t i = 0; i < std::size(named); ++i) {
        if (options.size == kSizeNames[i])
            return named[i];
    }
    return static_cast<long>(std::strtod(options.size.c_str(), nullptr));  // parse_options has seen to it
}

// --scale strong: --size says how large the whole problem is. weak: how large the part of a worker is, of each thread of
// each PE.
inline bool is_weak(const Options& options) {
    return options.scale == "weak";
}

inline long workers_of(const Job& job) {
    return static_cast<long>(job.n_pes()) * job.threads();
}

// The length of the whole problem along each of so many dimensions, when `length` is that of --size: as many times the
// volume as there are workers, as nearly as whole lengths allow. Ends the program where that is more than `most`.
inline long whole_length(const Job& job, long length, int dimensions, long most) {
    if (!is_weak(job.options()))
        return length;
    const double whole = static_cast<double>(length) * std::pow(workers_of(job), 1.0 / dimensions);
    if (whole > static_cast<double>(most))
        fail("--scale weak: --size " + job.options().size + " for each of " + std::to_string(workers_of(job)) +
             " threads is an edge of " + std::to_string(std::lround(whole)) + ", and the largest is " +
             std::to_string(most) + ": choose less");
    return std::lround(whole);
}

}  // namespace shmem_mt
