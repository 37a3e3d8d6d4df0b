// Barriers of all PEs, one behind the other: how they are timed, and that they are barriers. A timed pass looks, too: ahead
// of its last barrier each PE puts a number to its right neighbour and finds its left neighbour's behind that barrier.
#pragma once

#include <shmem.h>

#include "programs/common/clock.hpp"
#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"

namespace shmem_mt {

inline long barrier_number;  // symmetric; from the left neighbour

// `count` barriers, a mark behind each; none where a planted fault has them return at once.
inline void pass_barriers(const Job& job, bool sync_only, long count, Marks& marks) {
    if (job.options().fault == Fault::kEarlyBarrier)
        return;
    for (long i = 0; i < count; ++i) {
        sync_only ? shmem_sync_all() : shmem_barrier_all();
        marks.mark();
    }
}

// Puts the number to the right neighbour. A sync promises nothing about puts, so there quiet comes first.
inline void tell_right(bool sync_only, long token) {
    shmem_long_p(&barrier_number, token, (shmem_my_pe() + 1) % shmem_n_pes());
    if (sync_only)
        shmem_quiet();
}

inline bool is_told(long token) {
    return __atomic_load_n(&barrier_number, __ATOMIC_ACQUIRE) == token;
}

// One barrier. True when the left neighbour's number, put before its barrier, is there behind this PE's.
inline bool pass_checked(const Job& job, bool sync_only, long token) {
    Marks none(nullptr, 0);
    tell_right(sync_only, token);
    pass_barriers(job, sync_only, 1, none);
    return is_told(token);
}

// `count` times shmem_barrier_all, or shmem_sync_all; stamped where there are histograms. Of the check only its put, and
// with sync_only a quiet, are within the time, once for all `count`. Collective.
inline Report time_barriers(Job& job, bool sync_only, long count, std::vector<Histogram>* histograms) {
    const long token = job.next_token();
    Report report;
    shmem_barrier_all();
    report.first_start = report.last_start = job.now();
    if (job.options().fault != Fault::kIdleTimedPass) {
        Marks marks(histograms, 0);
        pass_barriers(job, sync_only, count - 1, marks);
        tell_right(sync_only, token);
        pass_barriers(job, sync_only, 1, marks);
    }
    report.seconds = job.now() - report.first_start;
    report.ok = is_told(token);
    return report;
}

inline Body barriers(Job& job, bool sync_only) {
    return [&job, sync_only](long count) { return time_barriers(job, sync_only, count, nullptr); };
}

inline Agreed validate_barrier(Job& job, bool sync_only) {
    Checker checker(job.options().fault);
    for (int i = 0; i < 8; ++i) {
        checker.compare_word(pass_checked(job, sync_only, job.next_token()), 1);
        shmem_barrier_all();
    }
    return agree_verdict(job, checker);
}

}  // namespace shmem_mt
