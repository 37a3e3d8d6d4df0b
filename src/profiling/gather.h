// How the PEs of a job add up what each has counted. Threads: one of each PE, in finalize.
#pragma once

#include "bootstrap/bootstrap.h"
#include "operations/rma.h"

#include <memory>

namespace heddle::profiling {

// In rounds: of 16 neighbors the first takes those of the others, so that *mine of PE 0 has all of them. mine: at the
// same place of each PE's heap, filled in. All PEs call it, with no other operation under way.
template <class Counted>
void gather(const char* function, Counted* mine) {
    constexpr int kFanIn = 16;
    bootstrap::barrier_of_world(function);
    const auto taken = std::make_unique<Counted>();
    for (int step = 1; step < bootstrap::job.n_pes; step *= kFanIn) {
        for (int i = 1; i < kFanIn && bootstrap::job.pe % (step * kFanIn) == 0; ++i) {
            const int other = bootstrap::job.pe + i * step;
            if (other >= bootstrap::job.n_pes)
                break;
            operations::slow_get(function, SHMEM_CTX_DEFAULT, taken.get(), mine, 1, sizeof *taken, other);
            mine->add(*taken);
        }
        bootstrap::barrier_of_world(function);
    }
}

}  // namespace heddle::profiling
