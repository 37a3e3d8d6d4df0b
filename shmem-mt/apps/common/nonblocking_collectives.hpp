// The non-blocking collectives of the mini-apps (shmemx.h), of doubles over all PEs. Thread 0 of a PE calls them.
#pragma once

#include <shmem.h>

#include <algorithm>
#include <initializer_list>

#include "apps/common/forms.hpp"
#include "programs/common/job.hpp"

#if SHMEM_MT_HAVE_PROGRESS
namespace shmem_mt {

// A team of all PEs. Of one team a library may carry out few collectives side by side (Heddle: two), of several more.
class TeamOfAll {
  public:
    // Collective.
    TeamOfAll() {
        if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), nullptr, 0, &team_) != 0)
            fail("shmem_team_split_strided failed for all PEs");
    }

    ~TeamOfAll() { shmem_team_destroy(team_); }

    TeamOfAll(const TeamOfAll&) = delete;
    TeamOfAll& operator=(const TeamOfAll&) = delete;

    shmem_team_t get() const { return team_; }

  private:
    shmem_team_t team_ = SHMEM_TEAM_INVALID;
};

// Sums over all PEs, one at a time.
class NonblockingSum {
  public:
    static constexpr size_t kMost = 2;  // values of one sum

    // Collective.
    NonblockingSum() : memory_(static_cast<double*>(symmetric_alloc(2 * kTurns * kMost * sizeof(double)))) {}

    void post(std::initializer_list<double> values) {
        turn_ = (turn_ + 1) % kTurns;  // the caller may still read the sum before
        std::copy(values.begin(), values.end(), dest() + kMost);
        if (shmemx_double_sum_reduce_nbe(team_.get(), dest(), dest() + kMost, values.size(), &request_) != 0)
            fail("shmemx_double_sum_reduce_nbe failed");
    }

    // As many as were posted; good until the next but one post.
    const double* wait() {
        shmemx_request_wait(&request_);
        return dest();
    }

  private:
    static constexpr size_t kTurns = 2;
    double* dest() const { return memory_ + 2 * kMost * turn_; }

    TeamOfAll team_;
    double* const memory_;
    size_t turn_ = 0;
    shmemx_request_t request_ = SHMEMX_REQUEST_NULL;
};

}  // namespace shmem_mt
#endif
