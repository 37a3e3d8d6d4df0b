// One sample by all threads of a PE, in every program with threads.
#pragma once

#include <algorithm>
#include <vector>

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
        starts[static_cast<size_t>(thread)] = session.now() + late_s;
        work(thread);
        team.barrier();
        if (thread == 0) {
            report.ok = finish();
            report.end = session.now() + late_s;
        }
    });
    report.first_start = *std::min_element(starts.begin(), starts.end());
    report.last_start = *std::max_element(starts.begin(), starts.end());
    report.seconds = report.end - report.first_start;
    return report;
}

// False when a thread has counted messages that were wrong.
inline bool none_wrong(const std::vector<long>& by_thread) {
    return std::count(by_thread.begin(), by_thread.end(), 0) == static_cast<long>(by_thread.size());
}

// Of a stream that the target reads: the sender's time counts, and what both have seen.
inline Report stream_report(const Session& session, const Report& report, const std::vector<long>& wrong) {
    Report mine = session.is_sender() ? report : Report{};
    mine.ok = none_wrong(wrong);
    return mine;
}

}  // namespace shmem_mt
