#include "running_jobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/job_page.h"
#include "bootstrap/status_report.h"
#include "children.h"
#include "os/clock.h"
#include "os/process_table.h"

namespace heddle::launcher {

namespace {

constexpr int kStatusNoJob = 1;
constexpr std::string_view kMemoryName = "/memfd:heddle";  // of os::create_memory, as /proc shows it

// The memory of a job on this host, and a process that has it open.
struct RunningJob {
    int pid = 0;
    bool has_oshrun = false;  // pid is its oshrun
    dev_t device = 0;
    ino_t inode = 0;
    std::string path;  // of a descriptor, in /proc

    bool is_same(const RunningJob& other) const { return device == other.device && inode == other.inode; }
};

std::vector<std::string> entries_of(const std::string& folder) {
    std::vector<std::string> names;
    DIR* const open = opendir(folder.c_str());
    while (const dirent* entry = open ? readdir(open) : nullptr)
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
            names.emplace_back(entry->d_name);
    if (open)
        closedir(open);
    return names;
}

// Adds the memory behind one descriptor of a process, if it is a job's and not known yet. An oshrun that asks another
// program has a child for a moment, which is an oshrun by its name and has the memory open, too: the job is its
// parent's.
void add_memory(const std::string& path, int pid, const os::ProcessEntry& process, std::vector<RunningJob>* jobs) {
    const bool is_oshrun = strcmp(process.name, "oshrun") == 0;
    char target[64];
    struct stat file;
    const ssize_t length = readlink(path.c_str(), target, sizeof target);
    if (length <= 0 || !std::string_view(target, static_cast<size_t>(length)).starts_with(kMemoryName) ||
        stat(path.c_str(), &file) != 0)
        return;
    const RunningJob found = {pid, is_oshrun, file.st_dev, file.st_ino, path};
    const auto known =
        std::find_if(jobs->begin(), jobs->end(), [&](const RunningJob& job) { return job.is_same(found); });
    if (known == jobs->end())
        jobs->push_back(found);
    else if (is_oshrun && process.parent != known->pid)
        *known = found;
}

// The jobs whose memory a process of this user has open; only: this process, or any (0).
std::vector<RunningJob> find_jobs(int only) {
    std::vector<RunningJob> jobs;
    for (const std::string& name : entries_of("/proc")) {
        struct stat process;
        os::ProcessEntry entry;
        const int pid = atoi(name.c_str());
        const std::string folder = "/proc/" + name;
        if ((only != 0 && pid != only) || stat(folder.c_str(), &process) != 0 || process.st_uid != geteuid() ||
            !os::read_process(pid, &entry))
            continue;
        const std::string descriptors = folder + "/fd/";
        for (const std::string& fd : entries_of(descriptors)) {
            std::string path = descriptors;
            add_memory(path.append(fd), pid, entry, &jobs);
        }
    }
    return jobs;
}

// A job's page, mapped for reading; null when the memory is none.
const bootstrap::JobPage* map_page(int fd) {
    struct stat file;
    if (fstat(fd, &file) != 0 || static_cast<size_t>(file.st_size) < sizeof(bootstrap::JobPage))
        return nullptr;
    const auto size = static_cast<size_t>(file.st_size);
    const auto map = [&](size_t bytes) { return mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0); };
    void* const head = map(sizeof(bootstrap::JobPage));
    if (head == MAP_FAILED)
        return nullptr;
    const auto* const page = static_cast<const bootstrap::JobPage*>(head);
    const uint64_t magic = page->magic;
    const uint32_t n_pes = page->n_pes;
    munmap(head, sizeof(bootstrap::JobPage));
    if (magic != bootstrap::kJobPageMagic || n_pes < 1 || n_pes > bootstrap::kMaxPes ||
        bootstrap::job_page_bytes(static_cast<int>(n_pes)) > size)
        return nullptr;
    void* const all = map(bootstrap::job_page_bytes(static_cast<int>(n_pes)));
    return all == MAP_FAILED ? nullptr : static_cast<const bootstrap::JobPage*>(all);
}

// The process of a PE: below oshrun also where it has another number in a namespace of its own.
bootstrap::StatusSource::Process process_of(const AttachedJob& job, const bootstrap::PeRecord& record) {
    const int number = record.pid.load(std::memory_order_relaxed);
    if (number == 0)
        return {};
    os::ProcessEntry entry;
    const int pid = job.has_oshrun ? find_descendant(number, job.pid) : number;
    const bool is_there = pid > 0 && os::read_process(pid, &entry) && entry.state != 'Z' && entry.state != 'X';
    return {is_there ? pid : 0, !is_there};
}

bool open_job(const char* option, const RunningJob& found, AttachedJob* job) {
    const int fd = open(found.path.c_str(), O_RDONLY | O_CLOEXEC);
    job->source.page = fd >= 0 ? map_page(fd) : nullptr;
    if (!job->source.page) {
        fprintf(stderr, "oshrun: %s: the memory of the job of process %d cannot be read, or is another version's\n",
                option, found.pid);
        return false;
    }
    os::ProcessEntry entry;
    const uint32_t n_pes = job->source.page->n_pes;
    job->source.memory_fd = fd;
    job->pid = found.pid;
    job->has_oshrun = found.has_oshrun;
    job->start_ticks = os::read_process(found.pid, &entry) ? entry.start_ticks : 0;
    job->name = (found.has_oshrun ? "oshrun " : "process ") + std::to_string(found.pid) + ": " + std::to_string(n_pes) +
                (n_pes == 1 ? " PE" : " PEs") + " on this host";
    job->refresh();
    return true;
}

}  // namespace

bool AttachedJob::refresh() {
    os::ProcessEntry entry;
    bool runs = os::read_process(pid, &entry) && entry.start_ticks == start_ticks && entry.state != 'Z';
    source.now_ns = os::now_ns();
    source.processes.clear();
    for (uint32_t slot = 0; slot < source.page->n_pes; ++slot) {
        source.processes.push_back(process_of(*this, source.page->records()[slot]));
        runs = runs || source.processes.back().pid != 0;
    }
    return runs;
}

bool attach(const char* option, int pid, AttachedJob* job) {
    std::vector<RunningJob> jobs = find_jobs(0);
    if (pid != 0) {
        const std::vector<RunningJob> of_pid = find_jobs(pid);
        std::erase_if(jobs, [&](const RunningJob& one) {
            return std::none_of(of_pid.begin(), of_pid.end(),
                                [&](const RunningJob& other) { return other.is_same(one); });
        });
    }
    if (jobs.size() == 1)
        return open_job(option, jobs[0], job);
    if (pid != 0 && jobs.empty())
        fprintf(stderr, "oshrun: %s %d: this process is no oshrun and no PE of yours with a job on this host\n", option,
                pid);
    else if (jobs.empty())
        fprintf(stderr, "oshrun: %s: no job of yours runs on this host\n", option);
    else
        fprintf(stderr, "oshrun: %s: several jobs run on this host; right would be one of:\n", option);
    for (const RunningJob& one : jobs) fprintf(stderr, "oshrun %s %d\n", option, one.pid);
    return false;
}

int tell_status(int pid) {
    AttachedJob job;
    if (!attach("--status", pid, &job))
        return kStatusNoJob;
    printf("%s\n", job.name.c_str());
    for (const std::string& line : bootstrap::describe_pes(job.source)) printf("%s\n", line.c_str());
    return 0;
}

}  // namespace heddle::launcher
