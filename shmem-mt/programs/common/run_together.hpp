// One sample by all threads of a PE, in every program with threads.
#pragma once

#include <algorithm>
#include <vector>

#include "programs/common/clock.hpp"
#include "programs/common/session.hpp"

namespace shmem_mt {

// Calls work(thread) on every thread, all threads of all PEs at the same time, and, when all threads of this PE have
// returned, finish() on thread 0, whose result becomes `ok`. The clock runs from the first thread's start until
// finish() has returned. Collective.
template <class Work, class Finish>
Report run_together(Session& session, Work&& work, Finish&& finish) {
    ThreadTeam& team = session.team();
    const double late_s = session.options().fault == Fault::kLateSender && session.me() == 1 ? 100 : 0;
    std::vector<double> starts(static_cast<size_t>(team.size()));
    Report report;
    team.run([&](int thread) {
        session.meet(thread);
        starts[static_cast<size_t>(thread)] = now_seconds() + late_s;
        work(thread);
        team.barrier();
        if (thread == 0) {
            report.ok = finish();
            report.end = now_seconds() + late_s;
        }
    });
    report.first_start = *std::min_element(starts.begin(), starts.end());
    report.last_start = *std::max_element(starts.begin(), starts.end());
    report.seconds = report.end - report.first_start;
    return report;
}

}  // namespace shmem_mt
