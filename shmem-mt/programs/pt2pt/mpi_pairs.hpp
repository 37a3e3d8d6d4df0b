// What the threads of an MPI program have, each of its own: a communicator of the PE and its partner, a window over
// it, and private memory. Of a pair alone, so that a fence and an epoch of post and start synchronize the two and
// nobody else.
#pragma once

#include "programs/common/mpi_job.hpp"

#include <algorithm>
#include <vector>

namespace shmem_mt {

// How messages are completed. kWaitall is of two-sided messages.
enum class MpiSync { kFlush, kLock, kFence, kPscw, kWaitall };

constexpr const char* kMpiSyncNames[] = {"flush", "lock", "fence", "pscw", "waitall"};

class MpiPairs {
  public:
    struct Endpoint {
        MPI_Comm comm;
        int partner;      // in comm
        MPI_Group group;  // of the partner
        MPI_Win win;
        char* window;
        char* local;
    };

    // `bytes`: of a thread's window, and of its private memory. Collective.
    MpiPairs(const MpiJob& job, long bytes) : memory_(static_cast<size_t>(bytes * job.threads())) {
        const int first = std::min(job.me(), job.partner());
        MPI_Comm pair;
        MPI_Comm_split(MPI_COMM_WORLD, first, job.me(), &pair);
        // Open MPI 4.1 names a window's memory by the number of its communicator, which two pairs of a host would
        // share.
        spares_.resize(static_cast<size_t>(first * job.threads()));
        for (MPI_Comm& spare : spares_) MPI_Comm_dup(pair, &spare);
        for (int t = 0; t < job.threads(); ++t) {
            Endpoint made{};
            MPI_Comm_dup(pair, &made.comm);
            int me = 0;
            MPI_Comm_rank(made.comm, &me);
            made.partner = 1 - me;
            MPI_Group both;
            MPI_Comm_group(made.comm, &both);
            MPI_Group_incl(both, 1, &made.partner, &made.group);
            MPI_Group_free(&both);
            MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, made.comm, &made.window, &made.win);
            made.local = memory_.data() + t * bytes;
            endpoints_.push_back(made);
        }
        MPI_Comm_free(&pair);
    }

    ~MpiPairs() {
        for (Endpoint& endpoint : endpoints_) {
            MPI_Win_free(&endpoint.win);
            MPI_Group_free(&endpoint.group);
            MPI_Comm_free(&endpoint.comm);
        }
        for (MPI_Comm& spare : spares_) MPI_Comm_free(&spare);
    }

    MpiPairs(const MpiPairs&) = delete;
    MpiPairs& operator=(const MpiPairs&) = delete;

    const Endpoint& of(int thread) const { return endpoints_[static_cast<size_t>(thread)]; }

  private:
    std::vector<char> memory_;
    std::vector<MPI_Comm> spares_;
    std::vector<Endpoint> endpoints_;
};

// The sender's side of an epoch of messages, and the target's. A row of epochs stands between `open` and `close`,
// which both call. Lock and flush are passive: the target has no part.
class MpiEpochs {
  public:
    MpiEpochs(const MpiPairs::Endpoint& endpoint, MpiSync sync) : at_(endpoint), sync_(sync) {}

    void open() const {
        if (sync_ == MpiSync::kFlush)
            MPI_Win_lock_all(0, at_.win);
        if (sync_ == MpiSync::kFence)
            MPI_Win_fence(MPI_MODE_NOPRECEDE, at_.win);
    }

    void close() const {
        if (sync_ == MpiSync::kFlush)
            MPI_Win_unlock_all(at_.win);
        if (sync_ == MpiSync::kFence)
            MPI_Win_fence(MPI_MODE_NOSUCCEED, at_.win);
    }

    void begin() const {
        if (sync_ == MpiSync::kLock)
            MPI_Win_lock(MPI_LOCK_SHARED, at_.partner, 0, at_.win);
        if (sync_ == MpiSync::kPscw)
            MPI_Win_start(at_.group, 0, at_.win);
    }

    // What the epoch had is at the target, and what it has read is here.
    void end() const {
        if (sync_ == MpiSync::kFlush)
            MPI_Win_flush(at_.partner, at_.win);
        if (sync_ == MpiSync::kLock)
            MPI_Win_unlock(at_.partner, at_.win);
        if (sync_ == MpiSync::kFence)
            MPI_Win_fence(0, at_.win);
        if (sync_ == MpiSync::kPscw)
            MPI_Win_complete(at_.win);
    }

    // The target's side of a whole epoch.
    void expose() const {
        if (sync_ == MpiSync::kFence)
            MPI_Win_fence(0, at_.win);
        if (sync_ == MpiSync::kPscw) {
            MPI_Win_post(at_.group, 0, at_.win);
            MPI_Win_wait(at_.win);
        }
    }

  private:
    const MpiPairs::Endpoint& at_;
    const MpiSync sync_;
};

// Calls f() where plain loads and stores may touch the window: in an epoch of the PE's own.
template <class F>
void touching_own(const MpiPairs::Endpoint& at, F&& f) {
    const int me = 1 - at.partner;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, at.win);
    f();
    MPI_Win_unlock(me, at.win);
}

}  // namespace shmem_mt
