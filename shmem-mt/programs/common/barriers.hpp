// Barriers of all PEs, one behind the other: how they are timed, and that they are barriers.
#pragma once

#include <shmem.h>

#include "programs/common/clock.hpp"
#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"

namespace shmem_mt {

// `count` times shmem_barrier_all, or shmem_sync_all. Collective.
inline Body barriers(bool sync_only) {
    return [sync_only](long count) {
        Report report;
        shmem_barrier_all();
        report.first_start = report.last_start = now_seconds();
        if (sync_only) {
            for (long i = 0; i < count; ++i) shmem_sync_all();
        } else {
            for (long i = 0; i < count; ++i) shmem_barrier_all();
        }
        report.seconds = now_seconds() - report.first_start;
        return report;
    };
}

// Every PE puts a number to its right neighbour before each barrier and must find its left neighbour's after
// it. sync_all promises nothing about puts, so there quiet comes first.
inline Agreed validate_barrier(Job& job, bool sync_only) {
    static long from_left;  // symmetric
    Checker checker(job.options().fault);
    const int right = (job.me() + 1) % job.n_pes();
    for (int i = 0; i < 8; ++i) {
        const long token = job.next_token();
        shmem_long_p(&from_left, token, right);
        if (sync_only) {
            shmem_quiet();
            shmem_sync_all();
        } else {
            shmem_barrier_all();
        }
        checker.compare_word(__atomic_load_n(&from_left, __ATOMIC_ACQUIRE), token);
        shmem_barrier_all();
    }
    return agree_verdict(job, checker);
}

}  // namespace shmem_mt
