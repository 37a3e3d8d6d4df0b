#include "bootstrap/bootstrap.h"

#include "base/error.h"
#include "base/invariant.h"
#include "base/settings.h"
#include "bootstrap/launch_environment.h"
#include "bootstrap/launched.h"
#include "bootstrap/node_numbers.h"
#include "bootstrap/rendezvous/client.h"
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
constexpr const char* kAddressBlobKey = "heddle.address";
constexpr const char* kEnvWasPe = "HEDDLE_WAS_PE";  // PID:PE:PES of the last PE among this process and its ancestors

// As env_number, for numbers of PEs and descriptors.
int env_int(const char* name) {
    const long number = env_number(name);
    return number < (1 << 30) ? static_cast<int>(number) : -1;
}

// The launcher's process and its page's token; both 0 when the environment has none.
struct Launcher {
    int pid = 0;
    uint64_t token = 0;
};
Launcher launcher_of_environment() {
    Launcher launcher;
    const char* const text = getenv(kEnvJob);
    unsigned long long token = 0;
    if (!text || sscanf(text, "%d:%llu", &launcher.pid, &token) != 2)
        return {};
    launcher.token = token;
    return launcher;
}

constexpr size_t kPathBytes = 64;
void path_of(int pid, int fd, char (&path)[kPathBytes]) {
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
}

// The result of examining a descriptor; page: mapped if it is the launcher's.
struct Candidate {
    bool is_memory = false;  // the file has the size of a job page
    bool is_ours = false;
    JobPage* page = nullptr;
};
Candidate look_at(int fd, const Launcher& launcher) {
    Candidate it;
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || static_cast<size_t>(status.st_size) < sizeof(JobPage))
        return it;
    it.is_memory = true;
    uint64_t magic = 0;  // read, not mapped: the file may be any of the program's
    if (pread(fd, &magic, sizeof magic, offsetof(JobPage, magic)) != sizeof magic || magic != kJobPageMagic)
        return it;
    auto* const head = static_cast<JobPage*>(os::map_shared(fd, 0, os::page_bytes()));
    if (!head)
        return it;
    it.is_ours = launcher.pid == 0 || head->token == launcher.token;
    const int n_pes = static_cast<int>(head->n_pes);
    os::unmap(head, os::page_bytes());
    if (it.is_ours)
        it.page = static_cast<JobPage*>(os::map_shared(fd, 0, job_page_bytes(n_pes)));
    return it;
}

// Opens the job page through the inherited descriptor. If that was closed on the way here, and may name another file
// now, through the launcher's own descriptor. *fd: the memory's. Null with the reason in error.
JobPage* open_page(const Launcher& launcher, int* fd, char* error, size_t error_bytes) {
    const int inherited = *fd;
    const Candidate own = look_at(inherited, launcher);
    if (own.page) {
        fcntl(inherited, F_SETFD, FD_CLOEXEC);  // programs that a PE starts are no PEs
        return own.page;
    }
    if (launcher.pid != 0) {
        char path[kPathBytes];
        path_of(launcher.pid, inherited, path);
        *fd = open(path, O_RDWR | O_CLOEXEC);
        if (const Candidate theirs = look_at(*fd, launcher); theirs.page)
            return theirs.page;
        snprintf(error, error_bytes,
                 "%s=%d is not the launcher's memory (closed on the way here?), nor is it to be had as %s: right would "
                 "be the oshrun of this Heddle, and a way from it to this PE that leaves descriptors open, or /proc",
                 kEnvJobFd, inherited, path);
        if (*fd >= 0)
            close(*fd);
    } else if (own.is_memory && !own.is_ours) {
        snprintf(error, error_bytes, "the launcher's memory is of another version of Heddle: use its own oshrun");
    } else {
        snprintf(error, error_bytes, "%s=%d is not the launcher's memory: start the program with oshrun, or unset it",
                 kEnvJobFd, inherited);
    }
    return nullptr;
}

// Dies with the launcher by the inherited lifeline, or else by the launcher's own, if that is visible.
os::Lifeline die_with_launcher(int fd, int launcher, bool visible) {
    char path[kPathBytes], theirs[kPathBytes] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);  // right also where /proc is that of another process namespace
    if (visible)
        path_of(launcher, fd, theirs);
    struct stat own, other;
    if (stat(path, &own) != 0 || !S_ISFIFO(own.st_mode) || (stat(theirs, &other) == 0 && other.st_ino != own.st_ino))
        return os::die_with(theirs, launcher);
    return os::die_with(path, launcher);
}

// True when the process under that number is the launcher, not another one in another process namespace: it has the
// node's memory under the number in the environment.
bool is_visible(const Launcher& launcher, int fd, int memory_fd) {
    char path[kPathBytes];
    path_of(launcher.pid, fd, path);
    struct stat theirs, own;
    return stat(path, &theirs) == 0 && fstat(memory_fd, &own) == 0 && theirs.st_ino == own.st_ino &&
           theirs.st_dev == own.st_dev;
}

// Makes this PE die with the launcher: by a thread where the kernel's signal has no effect (on the first process of a
// process namespace) or cannot be asked for (without /proc).
os::Lifeline hold_lifeline(const Launcher& launcher, bool visible) {
    job.lifeline = env_int(kEnvLifelineFd);
    job.launcher_pid = launcher.pid;
    job.is_launcher_visible = visible;
    const os::Lifeline lifeline = die_with_launcher(job.lifeline, launcher.pid, visible);
    const bool is_first_of_namespace = getpid() == 1;
    if (lifeline == os::Lifeline::kGone || (lifeline == os::Lifeline::kHeld && !is_first_of_namespace))
        return lifeline;
    const int error = errno;
    const os::Lifeline by_thread = os::die_with_by_thread(job.lifeline);
    job.launcher_threads += by_thread == os::Lifeline::kHeld;
    errno = error;
    return by_thread;
}

bool join_launcher(int fd, char* error, size_t error_bytes) {
    const int pe = env_int(kEnvPe);
    const Launcher launcher = launcher_of_environment();
    const int inherited = fd;
    JobPage* const page = open_page(launcher, &fd, error, error_bytes);
    if (!page)
        return false;
    const int n_pes = static_cast<int>(page->n_pes);
    if (pe < 0 || pe >= n_pes) {
        snprintf(error, error_bytes, "%s=%d is wrong: the job has PEs 0 to %d", kEnvPe, pe, n_pes - 1);
        return false;
    }
    int32_t nobody = 0;
    // Relaxed: only the swap matters, which keeps two processes from being the same PE.
    if (!page->records()[pe].pid.compare_exchange_strong(nobody, getpid(), std::memory_order_relaxed)) {
        snprintf(error, error_bytes, "process %d is PE %d already: one process per PE may call shmem_init", nobody, pe);
        return false;
    }
    const os::Lifeline lifeline = hold_lifeline(launcher, is_visible(launcher, inherited, fd));
    if (lifeline != os::Lifeline::kHeld) {
        snprintf(
            error, error_bytes,
            lifeline == os::Lifeline::kGone
                ? "oshrun is gone"
                : "this PE would outlive oshrun, whose pipe is not open here, nor to be had by way of /proc: %s; right "
                  "would be a way from oshrun to this PE that leaves descriptors open, or /proc",
            strerror(errno));
        return false;
    }
    job.lifeline_file = os::identify(job.lifeline);
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

// True when exec has replaced the program of a PE: the new program is no PE, and must not become a job of one. A child
// of a PE may.
bool was_pe(char* error, size_t error_bytes) {
    const char* const text = getenv(kEnvWasPe);
    int pid = 0, pe = 0, n_pes = 0;
    if (!text || sscanf(text, "%d:%d:%d", &pid, &pe, &n_pes) != 3 || pid != getpid())
        return false;
    snprintf(error, error_bytes,
             "this process was PE %d of %d before it called exec: a second program cannot be a PE of that job; right "
             "would be a job for each program, or, for a job of one PE, a child process or no %s",
             pe, n_pes, kEnvWasPe);
    return true;
}

// PEs of the job whose memory, made by oshrun, is open here although oshrun's variables are lost; 0: none. PEs close
// that memory for the programs that they start.
int pes_of_lost_environment() {
    constexpr int kMostDescriptors = 64;  // oshrun's is among the first
    for (int fd = STDERR_FILENO + 1; fd < kMostDescriptors; ++fd) {
        const Candidate it = look_at(fd, {});
        if (!it.page)
            continue;
        const int n_pes = static_cast<int>(it.page->n_pes);
        os::unmap(it.page, job_page_bytes(n_pes));
        return n_pes;
    }
    return 0;
}

// True when this process is one of several, as a launcher says or has left behind. error: a line for the user.
bool is_one_of_several(char* error, size_t error_bytes) {
    if (is_started_by_pe())
        return false;
    const int n_pes = pes_of_lost_environment();
    if (n_pes > 1)
        snprintf(
            error, error_bytes,
            "oshrun has started this process as one of %d, and the variables by which it tells which one were lost "
            "on the way here (env -i?): right would be a way that keeps them, or HEDDLE_LAUNCH=alone for a job of "
            "one PE for each process",
            n_pes);
    return n_pes == 0 ? claims_several_pes(error, error_bytes) : n_pes > 1;
}

bool join_alone(char* error, size_t error_bytes) {
    if (was_pe(error, error_bytes))
        return false;
    if (const char* launcher = getenv(kEnvHandedOver); launcher && base::settings.launch != base::Launch::kAlone) {
        snprintf(error, error_bytes,
                 "%s did not tell this PE who it is (PMIX_RANK is unset): oshrun --hosts needs one that speaks PMIx",
                 launcher);
        return false;
    }
    if (base::settings.launch == base::Launch::kAuto && is_one_of_several(error, error_bytes))
        return false;
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

// Fills the job's nodes: of PEs that share a page and, if nodes are pretended, a group of pes_per_node.
void find_nodes(int pes_per_node) {
    if (pes_per_node == 0 && !job.leaders)
        return;
    auto* nodes = new int[static_cast<size_t>(job.n_pes)];  // stays valid as long as the process
    const std::vector<int> firsts =
        number_nodes(job.n_pes, [](int pe) { return job.leaders ? job.leaders[pe] : 0; }, pes_per_node, nodes);
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
    constexpr uint64_t kTimeNs = 3000000000;  // mpirun (Open MPI 4.1) takes more than one second (measured)
    if (env_int(kEnvJobFd) >= 0
            ? env_int(kEnvPe) > 0
            : is_launched() && std::max({env_int("PMIX_RANK"), env_int("PMI_RANK"), env_int("RANK")}) > 0)
        os::sleep_ns(kTimeNs);
}

bool join(char* error, size_t error_bytes) {
    if (job.n_pes == 0) {
        os::hold_standard_descriptors();
        const int fd = rendezvous::is_asked_to_join() ? -1 : env_int(kEnvJobFd);
        const bool joined = fd >= 0         ? join_launcher(fd, error, error_bytes)
                            : is_launched() ? join_launched(error, error_bytes)
                                            : join_alone(error, error_bytes);
        if (!joined)
            return false;
        job.memory_file = os::identify(job.memory_fd);
        job.own_record().pe.store(static_cast<uint32_t>(job.pe) + 1, std::memory_order_relaxed);
        unsetenv(kEnvHandedOver);  // programs that a PE starts are no PEs
        if (job.has_launcher) {
            job.own_record().process_namespace.store(os::process_namespace(), std::memory_order_relaxed);
            char text[kPathBytes];
            snprintf(text, sizeof text, "%d:%d:%d", getpid(), job.pe, job.n_pes);
            setenv(kEnvWasPe, text, 1);
            mark_environment();
        }
        find_nodes(static_cast<int>(std::min<uint64_t>(base::settings.test_pes_per_node, kMaxPes)));
        return true;
    }
    return !job.launcher || !job.launcher->watch || job.launcher->watch(&job.own_record(), error, error_bytes);
}

void begin_child() {
    if (!job.page || job.as_thread)
        return;
    const bool has_file = os::identify(job.memory_fd) == job.memory_file;
    os::make_private(job.page, job_page_bytes(static_cast<int>(job.page->n_pes)), has_file ? job.memory_fd : -1, 0);
    if (job.lifeline >= 0 && os::identify(job.lifeline) == job.lifeline_file &&
        die_with_launcher(job.lifeline, job.launcher_pid, job.is_launcher_visible) == os::Lifeline::kGone)
        kill(getpid(), SIGKILL);
}

void barrier(const char* function) {
    sync::CentralBarrier& central_barrier = job.page->central_barrier;
    const uint32_t count = ++job.barriers;
    central_barrier.arrive(static_cast<uint32_t>(job.n_slots), count);
    progress::wait_for_event_count_of_job(function, central_barrier.released, count);
}

void barrier_of_world(const char* function) {
    if (job.n_slots == job.n_pes)
        return barrier(function);
    char error[kErrorBytes];
    show_wait(function, nullptr);
    if (!job.launcher->fence(false, error, sizeof error))
        base::fatal(function, "the launcher does not bring the PEs together: %s", error);
    show_wait(nullptr, nullptr);
}

void exchange(const char* function, const Post& mine) {
    if (job.barriers > 0)
        barrier(function);  // all have read the last exchange
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

bool publish_address_blob(const void* address_blob, size_t bytes, char* error, size_t error_bytes) {
    const size_t most = job.launcher ? kMaxAddressBlobBytes : PeAddress::kBytes;
    if (bytes > most) {
        snprintf(error, error_bytes,
                 "the addresses of this PE take %zu bytes, more than %zu: right would be fewer channels or interfaces "
                 "(HEDDLE_NET_CHANNELS, HEDDLE_NET_DEVICES)",
                 bytes, most);
        return false;
    }
    if (job.launcher)  // the barrier that follows is not the launcher's where all PEs share a page
        return job.launcher->publish(kAddressBlobKey, address_blob, bytes, Reach::kJob, error, error_bytes) &&
               (job.get_waits || job.launcher->fence(true, error, error_bytes));
    HEDDLE_INVARIANT(bytes > 0 && job.slot < static_cast<int>(job.page->n_pes));
    PeAddress& mine = job.page->address_blobs()[job.slot];
    memcpy(mine.data, address_blob, bytes);
    mine.bytes = bytes;
    return true;
}

size_t address_blob_of(int pe, char* address_blob, char* error, size_t error_bytes) {
    if (job.launcher)
        return job.launcher->get(pe, kAddressBlobKey, address_blob, kMaxAddressBlobBytes, error, error_bytes);
    HEDDLE_INVARIANT(pe >= 0 && pe < static_cast<int>(job.page->n_pes));
    const PeAddress& theirs = job.page->address_blobs()[pe];  // the launcher's page has all PEs, by number
    if (theirs.bytes == 0 || theirs.bytes > PeAddress::kBytes) {
        snprintf(error, error_bytes, "it has no network");
        return 0;
    }
    memcpy(address_blob, theirs.data, theirs.bytes);
    return theirs.bytes;
}

void request_exit(ExitRequest request, int status) {
    if (!job.page)
        return;
    HEDDLE_INVARIANT(request != ExitRequest::kNone && Exit::unpack(Exit{request, job.pe, status}.pack()).pe == job.pe);
    uint64_t none = 0;
    // Release: pairs with Job::check_page, which then sees all that this PE published before.
    job.page->exit.compare_exchange_strong(none, Exit{request, job.pe, status}.pack(), std::memory_order_release,
                                           std::memory_order_relaxed);
}

bool is_ending() {
    return job.page->exit.load(std::memory_order_relaxed) != 0;  // relaxed: only decides whether to wait for other PEs
}

void part_from_launcher() {
    const LauncherApi* const launcher = job.launcher;
    if (!launcher ||
        static_cast<PeState>(job.own_record().state.load(std::memory_order_relaxed)) != PeState::kFinalized)
        return;
    job.launcher = nullptr;
    launcher->finalize();
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
    // Relaxed: the launcher only prints this, and mixed words do no harm.
    for (size_t i = 0; i < PeRecord::kNameWords; ++i) record.wait_name[i].store(words[i], std::memory_order_relaxed);
    record.wait_address.store(reinterpret_cast<uint64_t>(address), std::memory_order_relaxed);
    record.wait_step.store(0, std::memory_order_relaxed);
    record.wait_since_ns.store(function ? os::now_ns() : 0, std::memory_order_relaxed);
}

}  // namespace heddle::bootstrap
