#include "bootstrap/bootstrap.h"

#include "base/error.h"
#include "base/settings.h"
#include "bootstrap/launched.h"
#include "os/clock.h"
#include "os/process.h"
#include "progress/wait_policy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace heddle::bootstrap {

HEDDLE_PE_LOCAL Job job;

namespace {

constexpr size_t kErrorBytes = 256;
constexpr const char* kCardKey = "heddle.card";

// The number in an environment variable, or -1.
int env_number(const char* name) {
    const char* text = getenv(name);
    if (!text || !*text)
        return -1;
    char* end = nullptr;
    const long number = strtol(text, &end, 10);
    return *end == '\0' && number >= 0 && number < (1 << 30) ? static_cast<int>(number) : -1;
}

bool join_launcher(int fd, char* error, size_t error_bytes) {
    struct stat status;
    const int pe = env_number(kEnvPe);
    if (fstat(fd, &status) != 0 || static_cast<size_t>(status.st_size) < sizeof(JobPage)) {
        snprintf(error, error_bytes, "%s=%d is not the launcher's memory: start the program with oshrun, or unset it",
                 kEnvJobFd, fd);
        return false;
    }
    auto* page = static_cast<JobPage*>(os::map_shared(fd, 0, os::page_bytes()));
    if (!page || page->magic != kJobPageMagic) {
        snprintf(error, error_bytes, "the launcher's memory is of another version of Heddle: use its own oshrun");
        return false;
    }
    const int n_pes = static_cast<int>(page->n_pes);
    os::unmap(page, os::page_bytes());
    page = static_cast<JobPage*>(os::map_shared(fd, 0, job_page_bytes(n_pes)));
    if (!page || pe < 0 || pe >= n_pes) {
        snprintf(error, error_bytes, "%s=%d is wrong: the job has PEs 0 to %d", kEnvPe, pe, n_pes - 1);
        return false;
    }
    int32_t nobody = 0;
    // Relaxed: only the swap itself matters, it keeps two processes from being the same PE.
    if (!page->records()[pe].pid.compare_exchange_strong(nobody, getpid(), std::memory_order_relaxed)) {
        snprintf(error, error_bytes, "process %d is PE %d already: one process per PE may call shmem_init", nobody, pe);
        return false;
    }
    const int lifeline = env_number(kEnvLifelineFd);
    if (lifeline >= 0 && !os::die_with(lifeline)) {
        snprintf(error, error_bytes, "oshrun is gone");
        return false;
    }
    job.lifeline = lifeline;
    job.lifeline_file = os::identify(lifeline);
    fcntl(fd, F_SETFD, FD_CLOEXEC);  // programs that a PE starts are no PEs
    unsetenv(kEnvJobFd);
    job.pe = job.slot = pe;
    job.n_pes = job.n_slots = n_pes;
    job.memory_fd = fd;
    job.page = page;
    job.cores = page->cores;
    job.token = page->token;
    job.has_launcher = true;
    return true;
}

bool join_alone(char* error, size_t error_bytes) {
    if (const char* launcher = getenv(kEnvHandedOver)) {
        snprintf(error, error_bytes,
                 "%s did not tell this PE who it is (PMIX_RANK is unset): oshrun --hosts needs one that speaks PMIx",
                 launcher);
        return false;
    }
    int fd = -1;
    JobPage* const page = create_job_page(1, &fd);
    if (!page) {
        snprintf(error, error_bytes, "cannot create shared memory: %s", os::describe_memory_error(errno));
        return false;
    }
    job.cores = page->cores;
    job.token = page->token;
    job.n_pes = job.n_slots = 1;
    job.memory_fd = fd;
    job.page = page;
    return true;
}

// PEs are on one node when they share a page and, where nodes are pretended, are in the same row of so many PEs. Nodes
// are numbered in the order of their first PEs.
void number_nodes(int pes_per_node) {
    const bool pretend = pes_per_node != 0;
    if (!pretend && !job.leaders)
        return;
    auto* nodes = new int[static_cast<size_t>(job.n_pes)];  // lives as long as the process
    std::vector<int> firsts;                                // the first PE of each node
    const auto same = [&](int a, int b) {
        return (!job.leaders || job.leaders[a] == job.leaders[b]) && (!pretend || a / pes_per_node == b / pes_per_node);
    };
    for (int pe = 0; pe < job.n_pes; ++pe) {
        size_t node = firsts.size();  // PEs of a node often follow each other: the last is looked at first
        while (node > 0 && !same(firsts[node - 1], pe)) --node;
        if (node == 0) {
            firsts.push_back(pe);
            node = firsts.size();
        }
        nodes[pe] = static_cast<int>(node) - 1;
    }
    job.node = nodes[job.pe];
    job.n_nodes = static_cast<int>(firsts.size());
    job.n_page_nodes = 0;
    for (int node = 0; node < job.n_nodes; ++node) {
        if (node == job.node)
            job.page_node = job.n_page_nodes;
        job.n_page_nodes += job.slot_of(firsts[static_cast<size_t>(node)]) >= 0;
    }
    job.nodes = job.n_nodes > 1 ? nodes : nullptr;
}

}  // namespace

void let_first_pe_tell() {
    constexpr uint64_t kTimeNs = 3000000000;  // mpirun (Open MPI 4.1) takes more than one second
    if (env_number(kEnvJobFd) >= 0 ? env_number(kEnvPe) > 0 : is_launched() && env_number("PMIX_RANK") > 0)
        os::sleep_ns(kTimeNs);
}

bool join(char* error, size_t error_bytes) {
    if (job.n_pes == 0) {
        const int fd = env_number(kEnvJobFd);
        const bool joined = fd >= 0         ? join_launcher(fd, error, error_bytes)
                            : is_launched() ? join_launched(error, error_bytes)
                                            : join_alone(error, error_bytes);
        if (!joined)
            return false;
        job.memory_file = os::identify(job.memory_fd);
        unsetenv(kEnvHandedOver);  // programs that a PE starts are no PEs
        number_nodes(static_cast<int>(std::min<uint64_t>(base::settings.node_pes, kMaxPes)));
    }
    return true;
}

void begin_child() {
    if (!job.page || job.as_thread)
        return;
    const bool has_file = os::identify(job.memory_fd) == job.memory_file;
    os::make_private(job.page, job_page_bytes(static_cast<int>(job.page->n_pes)), has_file ? job.memory_fd : -1, 0);
    if (job.lifeline >= 0 && os::identify(job.lifeline) == job.lifeline_file && !os::die_with(job.lifeline) &&
        os::has_hung_up(job.lifeline))
        kill(getpid(), SIGKILL);
}

void barrier(const char* function) {
    sync::Meeting& meeting = job.page->meeting;
    const uint32_t count = ++job.barriers;
    meeting.arrive(static_cast<uint32_t>(job.n_slots), count);
    progress::wait_for_gate_of_job(function, meeting.released, count);
}

void barrier_of_world(const char* function) {
    if (job.n_slots == job.n_pes)
        return barrier(function);
    char error[kErrorBytes];
    if (!job.launcher->fence(false, error, sizeof error))
        base::fatal(function, "the launcher does not bring the PEs together: %s", error);
}

void exchange(const char* function, const Post& mine) {
    barrier(function);  // nobody still reads the last exchange
    for (size_t i = 0; i < mine.size(); ++i)
        job.own_record().post[i].store(mine[i], std::memory_order_relaxed);  // ordered by the barrier
    barrier(function);
}

Post posted(int slot) {
    Post post;
    for (size_t i = 0; i < post.size(); ++i)
        post[i] = job.record(slot).post[i].load(std::memory_order_relaxed);  // ordered by the barrier in exchange
    return post;
}

bool publish_card(const void* card, size_t bytes, char* error, size_t error_bytes) {
    const size_t most = job.launcher ? kMostCardBytes : PeCard::kBytes;
    if (bytes > most) {
        snprintf(error, error_bytes,
                 "the addresses of this PE take %zu bytes, more than %zu: right would be fewer wires or interfaces "
                 "(HEDDLE_NET_WIRES, HEDDLE_NET_DEVICES)",
                 bytes, most);
        return false;
    }
    if (job.launcher)
        return job.launcher->publish(kCardKey, card, bytes, Reach::kJob, error, error_bytes);
    PeCard& mine = job.page->cards()[job.slot];
    memcpy(mine.data, card, bytes);
    mine.bytes = bytes;
    return true;
}

size_t card_of(int pe, char* card, char* error, size_t error_bytes) {
    if (job.launcher)
        return job.launcher->get(pe, kCardKey, card, kMostCardBytes, error, error_bytes);
    const PeCard& theirs = job.page->cards()[pe];  // the launcher's page has all PEs
    if (theirs.bytes == 0 || theirs.bytes > PeCard::kBytes) {
        snprintf(error, error_bytes, "it has no network");
        return 0;
    }
    memcpy(card, theirs.data, theirs.bytes);
    return theirs.bytes;
}

void request_exit(ExitRequest request, int status) {
    if (!job.page)
        return;
    uint64_t none = 0;
    // Release: the launcher, once it sees the request, sees all that this PE showed before.
    job.page->exit.compare_exchange_strong(none, Exit{request, job.pe, status}.pack(), std::memory_order_release,
                                           std::memory_order_relaxed);
}

void end_launched_job(int status) {
    if (job.launcher)
        job.launcher->abort(status, "");
}

void show_wait(const char* function, const void* address) {
    if (!job.page)
        return;
    PeRecord& record = job.own_record();
    uint64_t words[PeRecord::kNameWords] = {};
    if (function)
        memcpy(words, function, strnlen(function, sizeof words - 1));
    // Relaxed: the launcher reads this only to tell a person, and mixed letters do no harm.
    for (size_t i = 0; i < PeRecord::kNameWords; ++i) record.wait_name[i].store(words[i], std::memory_order_relaxed);
    record.wait_address.store(reinterpret_cast<uint64_t>(address), std::memory_order_relaxed);
    record.wait_since_ns.store(function ? os::now_ns() : 0, std::memory_order_relaxed);
}

WaitName own_wait() {
    WaitName name = {};
    const PeRecord& record = job.own_record();
    if (record.wait_since_ns.load(std::memory_order_relaxed) == 0)  // as in show_wait
        return name;
    for (size_t i = 0; i < PeRecord::kNameWords; ++i) {
        const uint64_t word = record.wait_name[i].load(std::memory_order_relaxed);
        memcpy(name.data() + i * sizeof word, &word, sizeof word);
    }
    return name;
}

}  // namespace heddle::bootstrap
