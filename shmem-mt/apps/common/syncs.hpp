// What ends the messages of an exchange of a mini-app, as --syncs says: names of the catalogue. Without it put_signal
// alone is measured, as is where none of the names is one of the mini-app's.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "programs/common/requests.hpp"

namespace shmem_mt {

// kSignal: a signal follows the data of each message, whose reader waits for it. kBarrier: quiet by each thread, then a
// barrier of all threads of all PEs. kRequest: kSignal, each thread's messages under a request in place of its
// context's quiet. kNeighbors: one shmemx_neighbor_alltoallv_nbe, which one thread posts and waits for. kPlan: the same,
// recorded once.
enum class Sync { kSignal, kBarrier, kRequest, kNeighbors, kPlan };

struct NamedSync {
    Sync sync;
    const char* name;
};

constexpr NamedSync kSyncs[] = {{Sync::kSignal, "put_signal"},
                                {Sync::kBarrier, "quiet_barrier"},
                                {Sync::kRequest, "request_merged"},
                                {Sync::kNeighbors, "neighbor_alltoallv"},
                                {Sync::kPlan, "plan"}};

inline std::string name_of(Sync sync) {
    return std::find_if(std::begin(kSyncs), std::end(kSyncs), [&](const NamedSync& s) { return s.sync == sync; })->name;
}

// As one collective, of one thread.
inline bool is_collective(Sync sync) {
    return sync == Sync::kNeighbors || sync == Sync::kPlan;
}

// Empty, or what the library lacks.
inline std::string why_no_sync(Sync sync) {
    if (is_collective(sync))
        return SHMEM_MT_HAVE_PLANS ? "" : kNoPlans;
    const bool can = sync != Sync::kRequest || (SHMEM_MT_HAVE_SHMEMX && SHMEM_MT_HAVE_PUT_SIGNAL);
    return can ? "" : kNoRequests;
}

// Of those that a mini-app has, what is asked for and possible; the others are skipped by name.
inline std::vector<Sync> wanted_syncs(const Job& job, const char* benchmark, const std::vector<Sync>& own) {
    const std::vector<std::string>& asked = job.options().syncs;
    std::vector<Sync> wanted;
    bool any = false;
    for (const Sync sync : own) {
        const std::string name = name_of(sync);
        if (std::find(asked.begin(), asked.end(), name) == asked.end())
            continue;
        any = true;
        const std::string reason = why_no_sync(sync);
        if (reason.empty())
            wanted.push_back(sync);
        else
            job.skip(benchmark, name, reason);
    }
    return any ? wanted : std::vector<Sync>{Sync::kSignal};
}

// A field where it is not put_signal.
inline void describe_sync(Sync sync, Json& params) {
    if (sync != Sync::kSignal)
        params.text("sync", name_of(sync));
}

}  // namespace shmem_mt
