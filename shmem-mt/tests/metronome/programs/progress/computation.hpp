// Stands before the suite's file of this name: its computation, with the same results, takes virtual time.
#pragma once

#define compute compute_in_real_time
#include_next "programs/progress/computation.hpp"
#undef compute

extern "C" void metronome_compute(long units);

namespace shmem_mt {

inline uint64_t compute(uint64_t x, long units) {
    metronome_compute(units);
    return computed(x, units);
}

}  // namespace shmem_mt
