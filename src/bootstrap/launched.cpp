#include "bootstrap/launched.h"

#include "base/error.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/deadline.h"
#include "bootstrap/launch_environment.h"
#include "bootstrap/launcher_api.h"
#include "bootstrap/pmi/pmi.h"
#include "bootstrap/rendezvous/client.h"
#include "bootstrap/shared_memory.h"
#include "os/plugin.h"
#include "os/process.h"
#include "os/topology.h"

#include <dlfcn.h>
#include <unistd.h>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace heddle::bootstrap {

namespace {

constexpr const char* kPlugin = "libheddle_pmix.so";

bool has_failed_by_pmi = false;  // the newest join

void launcher_lost(const char* how) {
    base::report("launcher", "%s", how);
    _exit(1);
}

bool is_pmix_offered() {
    return getenv("PMIX_NAMESPACE") || getenv("PMIX_RANK");
}

// An open socket is from the launcher that has started this process, PMIx's variables may be from one around it.
bool is_pmi_wanted() {
    const base::Launch launch = base::settings.launch;
    return launch == base::Launch::kAuto ? pmi::is_offered() : launch != base::Launch::kPmix;
}

const LauncherApi* load_plugin(char* error, size_t error_bytes) {
    void* const library = os::load_plugin(kPlugin);
    const void* const api = library ? dlsym(library, "heddle_launcher_5") : nullptr;
    if (!api)
        snprintf(error, error_bytes,
                 "this PE was started by a launcher that speaks PMIx (PMIX_RANK=%s), which cannot be asked: %s; right "
                 "would be oshrun, or a Heddle that was built where PMIx is",
                 getenv("PMIX_RANK") ? getenv("PMIX_RANK") : "",
                 library ? "the plugin is of another version" : dlerror());
    return static_cast<const LauncherApi*>(api);
}

const LauncherApi* choose_launcher(char* error, size_t error_bytes) {
    if (rendezvous::is_asked_to_join() || base::settings.launch == base::Launch::kEnv)
        return &rendezvous::launcher;
    if (is_pmi_wanted())
        return &pmi::launcher;
    for (const char* const name : {"PMIX_NAMESPACE", "PMIX_RANK"}) {
        if (getenv(name))
            continue;
        snprintf(error, error_bytes, "%s is not set: right would be mpirun, prterun or srun --mpi=pmix, which set it",
                 name);
        return nullptr;
    }
    return load_plugin(error, error_bytes);
}

// Fills the job's tables.
void take_places(const LauncherJob& started, const std::vector<Place>& places) {
    const int leader = places[static_cast<size_t>(started.pe)].leader;
    auto leaders = std::make_unique<int[]>(places.size()), slots = std::make_unique<int[]>(places.size());
    job.n_slots = 0;
    for (size_t pe = 0; pe < places.size(); ++pe) {
        leaders[pe] = places[pe].leader;
        slots[pe] = places[pe].leader == leader ? job.n_slots++ : -1;
    }
    job.token = places[0].token;
    job.pe = started.pe;
    job.n_pes = started.n_pes;
    job.slot = slots[started.pe];
    if (job.n_slots < started.n_pes) {
        job.leaders = leaders.release();  // both stay valid as long as the process
        job.slots = slots.release();
    }
}

// Gives back what a failed join has taken. Init may be called again.
void give_up(const char* why) {
    has_failed_by_pmi = job.launcher == &pmi::launcher;
    if (job.launcher->abandon)
        job.launcher->abandon(why);
    if (job.page)
        os::unmap(job.page, job_page_bytes(static_cast<int>(job.page->n_pes)));
    if (job.memory_fd >= 0)
        close(job.memory_fd);
    job.page = nullptr;
    job.memory_fd = -1;
    job.launcher = nullptr;
    delete[] job.leaders;
    delete[] job.slots;
    job.leaders = job.slots = nullptr;
    job.n_pes = job.n_slots = 0;
}

uint32_t cores_of_page() {
    int cores = 0;
    for (const uint64_t& word : job.page->cpus) cores += std::popcount(__atomic_load_n(&word, __ATOMIC_RELAXED));
    return cores > 0 ? static_cast<uint32_t>(cores) : job.page->cores;
}

}  // namespace

bool is_launched() {
    if (rendezvous::is_asked_to_join())
        return true;
    if (is_started_by_pe())
        return false;
    switch (base::settings.launch) {
        case base::Launch::kAuto:
            return pmi::is_offered() || is_pmix_offered();
        case base::Launch::kAlone:
            return false;
        case base::Launch::kEnv:
            return !rendezvous::is_alone_by_environment();
        default:
            return true;  // the launcher itself then says what it lacks
    }
}

bool has_process_manager() {
    return job.launcher && job.launcher != &rendezvous::launcher;
}

bool join_launched(char* error, size_t error_bytes) {
    job.launcher = choose_launcher(error, error_bytes);
    const uint32_t threads = os::count_threads() - rendezvous::server_threads();
    LauncherJob started;
    if (!job.launcher ||
        !job.launcher->init(&started, base::settings.launch_timeout_s, launcher_lost, error, error_bytes)) {
        has_failed_by_pmi = job.launcher == &pmi::launcher;
        job.launcher = nullptr;
        return false;
    }
    watch_deadline(started.pe);
    job.launcher_threads = os::count_threads() - threads;
    job.get_waits = started.get_waits;
    std::vector<Place> places;
    if (!share_memory(started, &places, error, error_bytes)) {
        give_up(error);
        return false;
    }
    take_places(started, places);
    char apart[768];
    if (job.pe == 0 && describe_split_hosts(places, apart, sizeof apart))
        base::report("launcher", "%s", apart);
    job.own_record().pid.store(getpid(), std::memory_order_relaxed);
    job.cores = cores_of_page();
    if (job.launcher->watch && !job.launcher->watch(&job.own_record(), error, error_bytes)) {
        give_up(error);
        return false;
    }
    job.has_launcher = true;
    tell_place();
    return true;
}

void end_unjoined_job() {
    if (has_failed_by_pmi)
        pmi::launcher.abort(1, "");
}

}  // namespace heddle::bootstrap
