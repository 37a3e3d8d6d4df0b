// The window scheme: all PEs begin an operation at a time agreed on ahead, and it lasts from then to the return of the
// last of them. Back to back, operations overlap: the root of a broadcast runs ahead. Windows are what Hunold and
// Carpen-Amarie (IEEE TPDS 2016) recommend; the clock is Session::now, also of several hosts.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "programs/common/session.hpp"

namespace shmem_mt {

struct Windows {
    long count = 0;       // at most kMostWindows
    double length_s = 0;  // from one start to the next
    double latest_s = 0;  // a PE that begins later than that behind the start spoils the window
};

constexpr long kMostWindows = static_cast<long>(Session::kMostGathered / sizeof(double));

// Calls operation(thread, is_last) on the first `callers` threads in each window. Returns, at PE 0, for each window the
// seconds until the last PE was done; infinity where one began late. Collective.
template <class Operation>
std::vector<double> run_windows(Session& session, int callers, const Windows& windows, Operation&& operation) {
    constexpr double kLead = 200e-6;  // until all know the start; where that is too short, the first windows are late
    const size_t count = static_cast<size_t>(windows.count);
    session.synchronize();
    Report lead;
    lead.seconds = session.me() == 0 ? session.now() + kLead + windows.length_s : 0;
    const double first = session.agree(lead).max_seconds;
    std::vector<std::vector<double>> took(static_cast<size_t>(callers), std::vector<double>(count));
    session.team().run([&](int thread) {
        for (size_t i = 0; i < count && thread < callers; ++i) {
            const double start = first + static_cast<double>(i) * windows.length_s;
            double came = session.now();
            while (came < start) came = session.now();
            operation(thread, i + 1 == count);
            const bool late = came - start > windows.latest_s;
            took[static_cast<size_t>(thread)][i] =
                late ? std::numeric_limits<double>::infinity() : session.now() - start;
        }
    });
    std::vector<double> mine = took[0];
    std::vector<double> all(session.me() == 0 ? count * static_cast<size_t>(session.n_pes()) : 0);
    for (const auto& one : took)
        std::transform(one.begin(), one.end(), mine.begin(), mine.begin(),
                       [](double a, double b) { return std::max(a, b); });
    session.gather(mine.data(), count * sizeof(double), all.data());
    std::vector<double> slowest(all.empty() ? 0 : count);
    for (size_t i = 0; i < all.size(); ++i) slowest[i % count] = std::max(slowest[i % count], all[i]);
    return slowest;
}

}  // namespace shmem_mt
