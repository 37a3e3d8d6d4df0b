// The exchange of ghosts as one collective: shmemx_neighbor_alltoallv_nbe, or a plan of it for each of the two inboxes.
// One thread of each PE posts it and waits for it.
#pragma once

#include <vector>

#include "apps/common/syncs.hpp"
#include "apps/krylov/system.hpp"

#if SHMEM_MT_HAVE_PLANS
namespace shmem_mt {

class NeighbourExchange {
  public:
    // The inbox of round k begins `inbox` elements behind that of round k - 1, or as far before it; `outbox` has the
    // lists for the neighbours one after the other. Both are symmetric. missing(elements) of a list are not sent, 0
    // without a planted fault.
    template <class Missing>
    NeighbourExchange(const KrylovSystem& system, double* inboxes, long inbox, const double* outbox, Missing&& missing)
        : inboxes_(inboxes), inbox_(inbox), outbox_(outbox) {
        size_t packed = 0;
        for (const Neighbour& neighbour : system.neighbours()) {
            const long received = neighbour.ghosts.length(), sent = static_cast<long>(neighbour.sends.size());
            pes_.push_back(neighbour.pe);
            to_counts_.push_back(static_cast<size_t>(received - missing(received)));
            to_offsets_.push_back(static_cast<size_t>(neighbour.ghosts.begin));
            from_counts_.push_back(static_cast<size_t>(sent - missing(sent)));
            from_offsets_.push_back(packed);
            packed += static_cast<size_t>(sent);
        }
    }
    ~NeighbourExchange() {
        for (shmemx_plan_t& plan : plans_) shmemx_plan_free(&plan);
    }
    NeighbourExchange(const NeighbourExchange&) = delete;
    NeighbourExchange& operator=(const NeighbourExchange&) = delete;

    // Records the plans. Collective.
    void record() {
        for (long round = 0; round < 2; ++round) {
            shmemx_request_t unused = SHMEMX_REQUEST_NULL;
            shmemx_plan_begin(&plans_[round]);
            post(round, &unused);
            shmemx_plan_end(&plans_[round]);
        }
    }

    void begin(Sync sync, long round) {
        if (sync == Sync::kPlan)
            shmemx_request_start(plans_[round % 2], &request_);
        else
            post(round, &request_);
    }
    void end() { shmemx_request_wait(&request_); }

  private:
    void post(long round, shmemx_request_t* request) {
        shmemx_neighbor_alltoallv_nbe(SHMEM_TEAM_WORLD, pes_.data(), pes_.size(), inboxes_ + round % 2 * inbox_,
                                      to_counts_.data(), to_offsets_.data(), outbox_, from_counts_.data(),
                                      from_offsets_.data(), sizeof(double), request);
    }

    double* const inboxes_;
    const long inbox_;
    const double* const outbox_;
    std::vector<int> pes_;
    std::vector<size_t> to_counts_, to_offsets_, from_counts_, from_offsets_;  // by neighbour
    shmemx_plan_t plans_[2] = {SHMEMX_PLAN_NULL, SHMEMX_PLAN_NULL};
    shmemx_request_t request_ = SHMEMX_REQUEST_NULL;
};

}  // namespace shmem_mt
#endif
