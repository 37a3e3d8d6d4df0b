// The largest of several numbers on a PE, and over all PEs; not for timed regions. A value that is no number counts as
// infinitely large.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "programs/common/job.hpp"

namespace shmem_mt {

// What is no number is as bad as can be.
inline void keep_worse(double* worst, double value) {
    *worst = std::isnan(value) ? std::numeric_limits<double>::infinity() : std::max(*worst, value);
}

// The largest of what PEs give, 0 or more. Collective.
inline double largest_of(Job& job, double value) {
    Report mine;
    mine.seconds = value;
    return job.agree(mine).max_seconds;
}

inline long most_of(Job& job, long value) {
    return static_cast<long>(largest_of(job, static_cast<double>(value)));
}

}  // namespace shmem_mt
