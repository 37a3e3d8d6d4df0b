#include "profiling/profiling.h"

#include "base/error.h"
#include "base/pe_local.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "memory/node_memory.h"
#include "memory/symmetric.h"
#include "os/locked.h"
#include "profiling/gather.h"
#include "profiling/page.h"
#include "profiling/profile.h"
#include "progress/engine.h"

#include <pthread.h>
#include <memory>
#include <vector>

namespace heddle::profiling {

namespace {

HEDDLE_PE_LOCAL base::PePointer<Profile> profile;

JobProfile& own_area() {
    return *reinterpret_cast<JobProfile*>(memory::symmetric->heap.base);
}

}  // namespace

void start() {
    if (!base::settings.is_profiled())
        return;
    if (operations::observer)
        base::fatal("HEDDLE_PROFILE", "HEDDLE_CHAOS or HEDDLE_RACES is set, too: right would be one of them in a run");
    profile = new Profile;
    progress::engine->set_observed(true);
    operations::observer = profile;
}

// A thread that still runs, against the rules, may be inside: its counts stay.
void stop() {
    if (!profile)
        return;
    operations::observer = nullptr;
    profile->end();
    progress::engine->set_observed(false);
}

void forget() {
    profile = nullptr;
}

void report(const char* function) {
    if (!profile)
        return;
    JobProfile& mine = own_area();
    memory::hand_out_heap(bootstrap::job.slot, kHeapBytes);
    profile->write(&mine);
    gather(function, &mine);
    if (bootstrap::job.pe == 0)
        print_and_write(mine);
    // Threads may still know it.
    static std::vector<std::unique_ptr<Profile>> ended;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of PEs as threads
    const os::Locked locked(lock);
    ended.emplace_back(profile);
    profile = nullptr;
}

}  // namespace heddle::profiling
