#include "bootstrap/launched.h"

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/launch_environment.h"
#include "bootstrap/pmi/pmi.h"
#include "bootstrap/rendezvous/client.h"
#include "os/plugin.h"
#include "os/process.h"
#include "os/topology.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::bootstrap {

namespace {

constexpr const char* kPlugin = "libheddle_pmix.so";
constexpr const char* kOfferKey = "heddle.offer";
constexpr const char* kPlaceKey = "heddle.place";

// The place of the memory that the first PE of a host offers to the others.
struct Offer {
    uint64_t token;  // of its page
    int32_t pid;
    int32_t fd;
};

// The values that each PE publishes for all others.
struct Place {
    uint64_t token;  // of its page; PE 0's becomes the job's
    uint64_t heap_bytes;
    int32_t leader;
    int32_t unused;
};

void launcher_lost() {
    base::report("launcher", "the launcher has died");
    _exit(1);
}

bool is_pmix_offered() {
    return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
}

// An open socket is from the launcher that has started this process, PMIx's variables may be from one around it.
bool is_pmi_wanted() {
    const base::Launch launch = base::settings.launch;
    return launch == base::Launch::kAuto ? pmi::is_offered() : launch != base::Launch::kPmix;
}

const LauncherApi* load_plugin(char* error, size_t error_bytes) {
    void* const library = os::load_plugin(kPlugin);
    const void* const api = library ? dlsym(library, "heddle_launcher_2") : nullptr;
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
    return is_pmi_wanted() ? &pmi::launcher : load_plugin(error, error_bytes);
}

bool make_page(int n_pes, char* error, size_t error_bytes) {
    job.page = create_job_page(n_pes, &job.memory_fd);
    if (!job.page)
        snprintf(error, error_bytes, "cannot create shared memory: %s", os::describe_memory_error(errno));
    return job.page;
}

bool offer_page(int n_pes, char* error, size_t error_bytes) {
    if (!make_page(n_pes, error, error_bytes))
        return false;
    const Offer offer = {job.page->token, getpid(), job.memory_fd};
    return job.launcher->publish(kOfferKey, &offer, sizeof offer, Reach::kHost, error, error_bytes);
}

// Opens the memory of another process on this host; false when it cannot be opened, for whatever reason.
bool accept(const Offer& offer) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", offer.pid, offer.fd);
    const auto is_memory = [](const struct stat& file) {
        return S_ISREG(file.st_mode) && static_cast<size_t>(file.st_size) >= sizeof(JobPage);
    };
    // Examined before it is opened: in another process namespace it may be any file, also a device.
    struct stat file;
    const int fd = stat(path, &file) == 0 && is_memory(file) ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    if (fstat(fd, &file) == 0 && is_memory(file)) {
        auto* page = static_cast<JobPage*>(os::map_shared(fd, 0, os::page_bytes()));
        if (page && page->magic == kJobPageMagic && page->token == offer.token) {
            const int n_pes = static_cast<int>(page->n_pes);
            os::unmap(page, os::page_bytes());
            job.page = static_cast<JobPage*>(os::map_shared(fd, 0, job_page_bytes(n_pes)));
            job.memory_fd = fd;
            if (job.page)
                return true;
        } else if (page) {
            os::unmap(page, os::page_bytes());
        }
    }
    close(fd);
    return false;
}

// Makes or opens this PE's page; *leader is the PE that made it.
bool find_page(const LauncherJob& started, int* leader, char* error, size_t error_bytes) {
    *leader = started.peers[0];
    const bool is_first = *leader == started.pe;
    if (is_first && !offer_page(started.n_peers, error, error_bytes))
        return false;
    if (!job.launcher->get_waits && !job.launcher->fence(true, error, error_bytes))
        return false;
    if (is_first)
        return true;
    Offer offer;
    if (job.launcher->get(*leader, kOfferKey, &offer, sizeof offer, error, error_bytes) != sizeof offer)
        return false;
    if (accept(offer)) {
        uint64_t cpus[kCpuWords];
        os::usable_cpus(cpus, kCpuWords);
        // Relaxed: read after the fence in exchange_places. The launcher may have bound each PE to cores of its own.
        for (size_t i = 0; i < kCpuWords; ++i) __atomic_fetch_or(&job.page->cpus[i], cpus[i], __ATOMIC_RELAXED);
        return true;
    }
    HEDDLE_DEBUG("launcher", "PE %d is on this host, but its memory is not within reach: a node of its own", *leader);
    *leader = started.pe;
    return make_page(1, error, error_bytes);
}

// Exchanges the PEs' places, and fills the job's tables.
bool exchange_places(const LauncherJob& started, int leader, char* error, size_t error_bytes) {
    const LauncherApi& launcher = *job.launcher;
    const Place mine = {job.page->token, base::settings.symmetric_size, leader, 0};
    if (!launcher.publish(kPlaceKey, &mine, sizeof mine, Reach::kJob, error, error_bytes) ||
        !launcher.fence(true, error, error_bytes))
        return false;
    auto* leaders = new int[static_cast<size_t>(started.n_pes)];  // both stay valid as long as the process
    auto* slots = new int[static_cast<size_t>(started.n_pes)];
    job.n_slots = 0;
    for (int pe = 0; pe < started.n_pes; ++pe) {
        Place place;
        if (launcher.get(pe, kPlaceKey, &place, sizeof place, error, error_bytes) != sizeof place)
            return false;
        if (place.heap_bytes != mine.heap_bytes) {
            snprintf(error, error_bytes,
                     "SHMEM_SYMMETRIC_SIZE is %zu bytes here, but %zu on PE %d: right would be one value for all",
                     static_cast<size_t>(mine.heap_bytes), static_cast<size_t>(place.heap_bytes), pe);
            return false;
        }
        if (place.leader < 0 || place.leader >= started.n_pes) {
            snprintf(error, error_bytes, "PE %d says that PE %d leads its node: right would be 0 to %d", pe,
                     place.leader, started.n_pes - 1);
            return false;
        }
        if (pe == 0)
            job.token = place.token;
        leaders[pe] = place.leader;
        slots[pe] = place.leader == leader ? job.n_slots++ : -1;
    }
    job.slot = slots[started.pe];
    if (job.n_slots < started.n_pes) {
        job.leaders = leaders;
        job.slots = slots;
    }
    return true;
}

// Gives back what a failed join has taken. Init may be called again.
void give_up(const char* why) {
    if (job.launcher == &rendezvous::launcher)
        rendezvous::abandon(why);
    if (job.page)
        os::unmap(job.page, job_page_bytes(static_cast<int>(job.page->n_pes)));
    if (job.memory_fd >= 0)
        close(job.memory_fd);
    job.page = nullptr;
    job.memory_fd = -1;
    job.launcher = nullptr;
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

bool join_launched(char* error, size_t error_bytes) {
    job.launcher = choose_launcher(error, error_bytes);
    const uint32_t threads = os::count_threads() - rendezvous::server_threads();
    LauncherJob started;
    int leader = 0;
    if (!job.launcher || !job.launcher->init(&started, launcher_lost, error, error_bytes)) {
        job.launcher = nullptr;
        return false;
    }
    job.launcher_threads = os::count_threads() - threads;
    if (!find_page(started, &leader, error, error_bytes) || !exchange_places(started, leader, error, error_bytes)) {
        give_up(error);
        return false;
    }
    job.own_record().pid.store(getpid(), std::memory_order_relaxed);
    job.pe = started.pe;
    job.n_pes = started.n_pes;
    job.cores = cores_of_page();
    job.has_launcher = true;
    if (job.launcher == &rendezvous::launcher)
        rendezvous::watch(&job.own_record());
    return true;
}

}  // namespace heddle::bootstrap
