#include "bootstrap/bootstrap.h"

#include "base/settings.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/topology.h"
#include "progress/wait_policy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::bootstrap {

HEDDLE_PE_LOCAL Job job;

namespace {

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
    auto* page = static_cast<JobPage*>(os::map_shared(fd, 0, os::kPageBytes));
    if (!page || page->magic != kJobPageMagic) {
        snprintf(error, error_bytes, "the launcher's memory is of another version of Heddle: use its own oshrun");
        return false;
    }
    const int n_pes = static_cast<int>(page->n_pes);
    os::unmap(page, os::kPageBytes);
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
    fcntl(fd, F_SETFD, FD_CLOEXEC);  // programs that a PE starts are no PEs
    unsetenv(kEnvJobFd);
    job.pe = pe;
    job.n_pes = n_pes;
    job.memory_fd = fd;
    job.page = page;
    job.token = page->token;
    job.has_launcher = true;
    return true;
}

bool join_alone(char* error, size_t error_bytes) {
    const int fd = os::create_memory("heddle", job_page_bytes(1));
    auto* page = fd >= 0 ? static_cast<JobPage*>(os::map_shared(fd, 0, job_page_bytes(1))) : nullptr;
    if (!page) {
        snprintf(error, error_bytes, "cannot create shared memory: %s", strerror(fd < 0 ? -fd : errno));
        return false;
    }
    page->magic = kJobPageMagic;
    page->n_pes = 1;
    page->cores = static_cast<uint32_t>(os::usable_cores());
    os::usable_cpus(page->cpus, kCpuWords);
    page->token = os::random_word();
    job.token = page->token;
    job.n_pes = 1;
    job.memory_fd = fd;
    job.page = page;
    return true;
}

// So many PEs in a row are a node of their own, though they share memory.
void pretend_nodes(int pes) {
    auto* nodes = new int[static_cast<size_t>(job.n_pes)];  // lives as long as the process
    for (int pe = 0; pe < job.n_pes; ++pe) nodes[pe] = pe / pes;
    job.n_nodes = nodes[job.n_pes - 1] + 1;
    job.node = nodes[job.pe];
    job.nodes = nodes;
}

}  // namespace

bool join(char* error, size_t error_bytes) {
    if (job.n_pes == 0) {
        const int fd = env_number(kEnvJobFd);
        const bool joined = fd >= 0 ? join_launcher(fd, error, error_bytes) : join_alone(error, error_bytes);
        if (!joined)
            return false;
        if (base::settings.node_pes != 0)
            pretend_nodes(static_cast<int>(std::min<uint64_t>(base::settings.node_pes, kMaxPes)));
    }
    return true;
}

void barrier(const char* function) {
    sync::Meeting& meeting = job.page->meeting;
    const uint32_t count = ++job.barriers;
    meeting.arrive(static_cast<uint32_t>(job.n_pes), count);
    progress::wait_for_gate(function, meeting.released, count);
}

void exchange(const char* function, const Post& mine) {
    barrier(function);  // nobody still reads the last exchange
    for (size_t i = 0; i < mine.size(); ++i)
        job.record(job.pe).post[i].store(mine[i], std::memory_order_relaxed);  // ordered by the barrier
    barrier(function);
}

Post posted(int pe) {
    Post post;
    for (size_t i = 0; i < post.size(); ++i)
        post[i] = job.record(pe).post[i].load(std::memory_order_relaxed);  // ordered by the barrier in exchange
    return post;
}

bool publish_card(const void* card, size_t bytes) {
    PeCard& mine = job.page->cards()[job.pe];
    if (bytes > PeCard::kBytes)
        return false;
    memcpy(mine.data, card, bytes);
    mine.bytes = bytes;
    return true;
}

size_t card_of(int pe, char* card, char* error, size_t error_bytes) {
    const PeCard& theirs = job.page->cards()[pe];
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

void show_wait(const char* function, const void* address) {
    if (!job.page)
        return;
    PeRecord& record = job.record(job.pe);
    uint64_t words[PeRecord::kNameWords] = {};
    if (function)
        memcpy(words, function, strnlen(function, sizeof words - 1));
    // Relaxed: the launcher reads this only to tell a person, and mixed letters do no harm.
    for (size_t i = 0; i < PeRecord::kNameWords; ++i) record.wait_name[i].store(words[i], std::memory_order_relaxed);
    record.wait_address.store(reinterpret_cast<uint64_t>(address), std::memory_order_relaxed);
    record.wait_since_ns.store(function ? os::now_ns() : 0, std::memory_order_relaxed);
}

}  // namespace heddle::bootstrap
