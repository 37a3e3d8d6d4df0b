// The teams that collectives are measured with: world, and strided, every second PE.
#pragma once

#include <shmem.h>

#include <string>

#include "programs/common/job.hpp"

namespace shmem_mt {

class Teams {
  public:
    // Collective.
    explicit Teams(const Job& job) {
        const int failed =
            shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (job.n_pes() + 1) / 2, nullptr, 0, &strided_);
        if (job.me() % 2 == 0 && (failed || strided_ == SHMEM_TEAM_INVALID))
            fail("shmem_team_split_strided failed for every second PE");
    }

    ~Teams() {
        if (strided_ != SHMEM_TEAM_INVALID)
            shmem_team_destroy(strided_);
    }

    Teams(const Teams&) = delete;
    Teams& operator=(const Teams&) = delete;

    shmem_team_t named(const std::string& name) const { return name == "world" ? SHMEM_TEAM_WORLD : strided_; }

  private:
    shmem_team_t strided_ = SHMEM_TEAM_INVALID;
};

}  // namespace shmem_mt
