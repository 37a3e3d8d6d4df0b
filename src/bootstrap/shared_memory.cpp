#include "bootstrap/shared_memory.h"

#include "base/settings.h"
#include "bootstrap/bootstrap.h"
#include "os/descriptor_passing.h"
#include "os/process.h"
#include "os/topology.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

namespace heddle::bootstrap {

namespace {

// Rounds in which the PEs of a host find memory that they can share. Each but the last leaves a group of PEs together.
constexpr int kRounds = 16;

// The memory that a PE offers to the others of its host.
struct Offer {
    uint64_t token;  // of its page
    os::DescriptorOffer passing;
    int32_t passing_error;  // negative errno: it cannot be fetched, but opened
    int32_t pid;
    int32_t fd;
    int32_t unused;
};

void describe_refusal(const Refusal& refusal, char* text, size_t text_bytes) {
    if (refusal.pe == Place::kNobody) {
        snprintf(text, text_bytes,
                 "the launcher has started them as on two hosts; right would be one daemon of the launcher on a host");
        return;
    }
    char passing[96], opening[64] = "is another file";
    if (!refusal.cannot_pass && refusal.passing_error == ECONNREFUSED)
        snprintf(passing, sizeof passing, "they do not share a network namespace");
    else
        snprintf(passing, sizeof passing, "PE %d cannot %s a socket (%s)", refusal.pe,
                 refusal.cannot_pass ? "open" : "be reached by", strerror(abs(refusal.passing_error)));
    if (refusal.opening_error != ESTALE)
        snprintf(opening, sizeof opening, "cannot be opened (%s)", strerror(refusal.opening_error));
    snprintf(text, text_bytes,
             "%s, and /proc/%d/fd/%d %s; right would be one network namespace for the PEs of a host (docker run "
             "--network=host, bwrap without --unshare-net), or all of them in one container",
             passing, refusal.pid, refusal.fd, opening);
}

bool is_memory(int fd) {
    struct stat file;
    return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && static_cast<size_t>(file.st_size) >= sizeof(JobPage);
}

// Maps the page if fd is the offered memory; otherwise closes fd.
bool take(int fd, const Offer& offer) {
    auto* const page = static_cast<JobPage*>(is_memory(fd) ? os::map_shared(fd, 0, os::page_bytes()) : nullptr);
    if (page) {
        const bool is_offered = page->magic == kJobPageMagic && page->token == offer.token;
        const int n_pes = static_cast<int>(page->n_pes);
        os::unmap(page, os::page_bytes());
        if (is_offered)
            job.page = static_cast<JobPage*>(os::map_shared(fd, 0, job_page_bytes(n_pes)));
    }
    if (job.page)
        job.memory_fd = fd;
    else
        close(fd);
    return job.page;
}

// Opens the descriptor of another process on this host; a negative errno when it cannot be opened.
int open_by_path(const Offer& offer) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", offer.pid, offer.fd);
    // Examined before it is opened: in another process namespace it may be any file, also a device.
    struct stat file;
    if (stat(path, &file) != 0)
        return -errno;
    const int fd = S_ISREG(file.st_mode) ? open(path, O_RDWR | O_CLOEXEC) : -ESTALE;
    return fd == -1 ? -errno : fd;
}

// Gets the memory of another process on this host, or the reasons why it cannot be had.
bool accept(const Offer& offer, Refusal* refusal) {
    const uint64_t timeout_ns = base::settings.launch_timeout_s * 1000000000;
    const int passed = offer.passing_error == 0 ? os::fetch_descriptor(offer.passing, timeout_ns) : offer.passing_error;
    if (passed >= 0 && take(passed, offer))
        return true;
    const int opened = open_by_path(offer);
    if (opened >= 0 && take(opened, offer))
        return true;
    refusal->pid = offer.pid;
    refusal->fd = offer.fd;
    refusal->cannot_pass = offer.passing_error != 0;
    refusal->passing_error = passed < 0 ? -passed : ESTALE;
    refusal->opening_error = opened < 0 ? -opened : ESTALE;
    return false;
}

// The exchange by which the PEs of each host find memory that they share, and all PEs learn who shares with whom. In
// each round the first PE of a host that has no memory yet makes some, and the others without any try to get it.
class Exchange {
  public:
    Exchange(const LauncherJob& started, std::vector<Place>* places, char* error, size_t error_bytes)
        : started_(started), launcher_(*job.launcher), places_(*places), error_(error), error_bytes_(error_bytes) {
        Place without = {};
        without.leader = Place::kNobody;
        places_.assign(static_cast<size_t>(started.n_pes), without);
        own().heap_bytes = base::settings.symmetric_size;
        own().trace_bytes = base::settings.trace_size;
        own().boot = os::hash_of_boot();
        own().refusal.pe = Place::kNobody;
    }
    bool hold() {
        for (int round = 0; is_unfinished(); ++round) {
            if (!pass(round))
                return false;
        }
        return true;
    }

  private:
    Place& own() { return places_[static_cast<size_t>(started_.pe)]; }
    bool has_memory(int pe) const { return places_[static_cast<size_t>(pe)].leader != Place::kNobody; }
    bool is_unfinished() const {
        return std::any_of(places_.begin(), places_.end(),
                           [](const Place& place) { return place.leader == Place::kNobody; });
    }
    template <class... Values>
    bool fail(const char* format, Values... values) {
        snprintf(error_, error_bytes_, format, values...);
        return false;
    }

    bool pass(int round);
    bool make(int n_pes);
    bool offer(const char* key, int n_pes, os::DescriptorServer* server);
    bool try_to_share(const char* key, int first);
    bool read_place(const char* key, int pe, bool is_last);

    const LauncherJob& started_;
    const LauncherApi& launcher_;
    std::vector<Place>& places_;  // by PE
    char* const error_;
    const size_t error_bytes_;
};

bool Exchange::make(int n_pes) {
    job.page = create_job_page(n_pes, &job.memory_fd);
    if (!job.page)
        return fail("cannot create shared memory: %s", os::describe_memory_error(errno));
    own().leader = started_.pe;
    own().token = job.page->token;
    return true;
}

bool Exchange::offer(const char* key, int n_pes, os::DescriptorServer* server) {
    if (!make(n_pes))
        return false;
    Offer mine = {job.page->token, {}, 0, getpid(), job.memory_fd, 0};
    mine.passing_error = server->start(job.memory_fd, &mine.passing);
    return launcher_.publish(key, &mine, sizeof mine, Reach::kHost, error_, error_bytes_);
}

bool Exchange::try_to_share(const char* key, int first) {
    Offer theirs;
    Refusal refusal = {first, 0, 0, 0, 0, 0};
    if (launcher_.get(first, key, &theirs, sizeof theirs, error_, error_bytes_) != sizeof theirs)
        return false;
    if (accept(theirs, &refusal)) {
        own().leader = first;
        own().token = theirs.token;
        uint64_t cpus[kCpuWords];
        os::usable_cpus(cpus, kCpuWords);
        // Relaxed: read after the fence of this round. The launcher may have bound each PE to cores of its own.
        for (size_t i = 0; i < kCpuWords; ++i) __atomic_fetch_or(&job.page->cpus[i], cpus[i], __ATOMIC_RELAXED);
    } else if (own().refusal.pe == Place::kNobody) {
        own().refusal = refusal;
    }
    return true;
}

bool Exchange::read_place(const char* key, int pe, bool is_last) {
    Place place;
    if (launcher_.get(pe, key, &place, sizeof place, error_, error_bytes_) != sizeof place)
        return false;
    if (place.heap_bytes != own().heap_bytes)
        return fail("SHMEM_SYMMETRIC_SIZE is %zu bytes here, but %zu on PE %d: right would be one value for all",
                    static_cast<size_t>(own().heap_bytes), static_cast<size_t>(place.heap_bytes), pe);
    if (place.trace_bytes != own().trace_bytes)
        return fail("HEDDLE_TRACE_SIZE is %zu bytes here, but %zu on PE %d: right would be one value for all",
                    static_cast<size_t>(own().trace_bytes), static_cast<size_t>(place.trace_bytes), pe);
    if (place.leader < (is_last ? 0 : Place::kNobody) || place.leader >= started_.n_pes)
        return fail("PE %d says that PE %d leads its node: right would be 0 to %d", pe, place.leader,
                    started_.n_pes - 1);
    places_[static_cast<size_t>(pe)] = place;
    return true;
}

// A round. All PEs of the job take part in its fences, and read the places of the PEs that had no memory before.
bool Exchange::pass(int round) {
    char offer_key[32], place_key[32];
    snprintf(offer_key, sizeof offer_key, "heddle.offer.%d", round);
    snprintf(place_key, sizeof place_key, "heddle.place.%d", round);
    const bool is_last = round == kRounds - 1;
    const std::vector<Place> before = places_;
    std::vector<int> without;
    std::copy_if(started_.peers, started_.peers + started_.n_peers, std::back_inserter(without),
                 [this](int pe) { return !has_memory(pe); });
    const bool takes_part = !has_memory(started_.pe), is_alone = takes_part && (is_last || without.size() == 1);
    const bool offers = takes_part && !is_alone && without[0] == started_.pe;
    os::DescriptorServer server;  // stops when all places are read, so that no PE still asks for the memory
    if ((is_alone && !make(1)) || (offers && !offer(offer_key, static_cast<int>(without.size()), &server)))
        return false;
    if (!started_.get_waits && !launcher_.fence(true, error_, error_bytes_))
        return false;
    if (takes_part && !is_alone && !offers && !try_to_share(offer_key, without[0]))
        return false;
    if (takes_part && !launcher_.publish(place_key, &own(), sizeof own(), Reach::kJob, error_, error_bytes_))
        return false;
    if (!launcher_.fence(true, error_, error_bytes_))
        return false;
    for (int pe = 0; pe < started_.n_pes; ++pe) {
        if (before[static_cast<size_t>(pe)].leader == Place::kNobody && !read_place(place_key, pe, is_last))
            return false;
    }
    return true;
}

}  // namespace

bool share_memory(const LauncherJob& started, std::vector<Place>* places, char* error, size_t error_bytes) {
    return Exchange(started, places, error, error_bytes).hold();
}

bool describe_split_hosts(const std::vector<Place>& places, char* text, size_t text_bytes) {
    std::vector<std::pair<uint64_t, int>> by_boot;
    for (size_t pe = 0; pe < places.size(); ++pe) {
        if (places[pe].boot != 0)
            by_boot.emplace_back(places[pe].boot, static_cast<int>(pe));
    }
    std::sort(by_boot.begin(), by_boot.end());
    const auto place_of = [&](int pe) -> const Place& { return places[static_cast<size_t>(pe)]; };
    int apart = -1, n_apart = 0, of = -1;
    for (size_t i = 0, begin = 0; i < by_boot.size(); ++i) {
        if (by_boot[i].first != by_boot[begin].first)
            begin = i;
        const auto [first, pe] = std::pair(by_boot[begin].second, by_boot[i].second);
        if (place_of(pe).leader == place_of(first).leader)
            continue;
        ++n_apart;
        if (apart < 0 || pe < apart) {
            apart = pe;
            of = first;
        }
    }
    if (apart < 0)
        return false;
    const Refusal& refusal = place_of(apart).refusal;
    if (refusal.pe != Place::kNobody)
        of = refusal.pe;
    char reason[512], others[64] = "";
    describe_refusal(refusal, reason, sizeof reason);
    if (n_apart > 1)
        snprintf(others, sizeof others, " (%d PEs are apart from others of their host)", n_apart);
    snprintf(text, text_bytes,
             "PE %d and PE %d are on one host, but do not share its memory%s, and talk over the network: %s", of, apart,
             others, reason);
    return true;
}

}  // namespace heddle::bootstrap
