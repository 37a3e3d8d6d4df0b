// What PEs find out about one another outside of what is measured.
#pragma once

#include "job.hpp"

namespace shmem_mt {

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
