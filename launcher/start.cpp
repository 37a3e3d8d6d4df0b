#include "start.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "bootstrap/job_page.h"

namespace heddle::launcher {

int find_program(const std::string& name, std::string* path) {
    if (name.find('/') != std::string::npos) {
        *path = name;
        return 0;  // exec reports errors
    }
    const char* variable = getenv("PATH");
    const std::string places = variable ? variable : "/bin:/usr/bin";
    int error = ENOENT;
    for (size_t begin = 0; begin <= places.size();) {
        const size_t end = std::min(places.find(':', begin), places.size());
        const std::string folder = places.substr(begin, end - begin);
        *path = (folder.empty() ? "." : folder) + "/" + name;
        begin = end + 1;
        struct stat info;
        if (stat(path->c_str(), &info) != 0 || !S_ISREG(info.st_mode))
            continue;
        if (access(path->c_str(), X_OK) == 0)
            return 0;
        error = EACCES;
    }
    return error;
}

namespace {

constexpr int kStatusCannotStart = 1;
constexpr int kStatusCannotRun = 126;  // as shells define them
constexpr int kStatusNoProgram = 127;

std::string explain_exec(const std::string& name, const std::string& path, int error) {
    std::string text = "cannot run '" + name + "': ";
    struct stat info;
    const bool exists = stat(path.c_str(), &info) == 0;
    const bool searched = name.find('/') == std::string::npos;
    if (error == ENOENT && searched)
        return text + "not found in PATH" + (access(name.c_str(), X_OK) == 0 ? "; did you mean ./" + name + "?" : "");
    if (error == ENOENT && exists)
        return text + "the interpreter that it names does not exist";
    if (error == EACCES && exists && S_ISDIR(info.st_mode))
        return text + "it is a directory";
    if (error == EACCES && exists && access(path.c_str(), X_OK) != 0)
        return text + "you have no permission to execute it (chmod +x?)";
    if (error == ENOEXEC)
        return text + "neither a program for this machine nor a script that begins with #!";
    return text + strerror(error);
}

std::vector<int> usable_core_numbers() {
    std::vector<int> numbers;
    // Machines with more than CPU_SETSIZE CPUs need a larger set: EINVAL until the set is large enough.
    for (int cpus = CPU_SETSIZE; cpus <= (1 << 20) && numbers.empty(); cpus *= 2) {
        cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
        const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
        if (set && sched_getaffinity(0, bytes, set) == 0) {
            for (int cpu = 0; cpu < cpus; ++cpu) {
                if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set))
                    numbers.push_back(cpu);
            }
        }
        CPU_FREE(set);
    }
    return numbers;
}

bool bind_to(int cpu) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpu) + 1);
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpu) + 1);
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(static_cast<size_t>(cpu), bytes, set);
    return sched_setaffinity(0, bytes, set) == 0;
}

void set_number(const char* name, int value) {
    setenv(name, std::to_string(value).c_str(), 1);
}

void close_all(std::initializer_list<int> descriptors) {
    for (const int fd : descriptors) {
        if (fd >= 0)
            close(fd);
    }
}

}  // namespace

struct Starter::Ends {
    int output[2] = {-1, -1};
    int errors[2] = {-1, -1};
    int failure[2] = {-1, -1};  // closed by exec

    bool open() {
        return pipe2(output, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0 && pipe2(failure, O_CLOEXEC) == 0;
    }
};

StartFailure Starter::prepare(const Options& options, const Inherited& inherited, int job_fd, uint64_t token) {
    options_ = &options;
    inherited_ = inherited;
    job_fd_ = job_fd;
    launcher_ = getpid();
    if (const int error = find_program(options.program[0], &path_); error != 0)
        return explain(Stage::kExec, error, 0);
    if (options.bind_to_cores)
        cores_ = usable_core_numbers();
    null_fd_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd_ < 0)
        return {kStatusCannotStart, std::string("cannot open /dev/null: ") + strerror(errno)};
    if (pipe2(lifeline_, O_CLOEXEC) != 0)
        return explain(Stage::kPipe, errno, 0);
    set_number(bootstrap::kEnvJobFd, job_fd_);
    set_number(bootstrap::kEnvLifelineFd, lifeline_[0]);
    setenv(bootstrap::kEnvJob, (std::to_string(launcher_) + ":" + std::to_string(token)).c_str(), 1);
    return {};
}

StartFailure Starter::start(int pe, Started* started) {
    Ends ends;
    Failure failure = {Stage::kPipe, 0};
    pid_t pid = -1;
    if (!ends.open()) {
        failure = {Stage::kPipe, errno};
    } else {
        pid = fork();
        if (pid == 0)
            become_pe(pe, ends);
        failure = {Stage::kFork, pid < 0 ? errno : 0};
    }
    close_all({ends.output[1], ends.errors[1], ends.failure[1]});
    if (pid > 0) {
        ssize_t bytes;
        do {
            bytes = read(ends.failure[0], &failure, sizeof failure);  // reads nothing if the program runs
        } while (bytes < 0 && errno == EINTR);
        if (bytes != sizeof failure)
            failure.error = 0;
    }
    close_all({ends.failure[0]});
    if (failure.error != 0) {
        close_all({ends.output[0], ends.errors[0]});
        return explain(failure.stage, failure.error, pe);
    }
    fcntl(ends.output[0], F_SETFL, O_NONBLOCK);
    fcntl(ends.errors[0], F_SETFL, O_NONBLOCK);
    *started = {pid, ends.output[0], ends.errors[0]};
    return {};
}

StartFailure Starter::explain(Stage stage, int error, int pe) const {
    if (stage == Stage::kExec)
        return {error == ENOENT || error == ENOTDIR ? kStatusNoProgram : kStatusCannotRun,
                explain_exec(options_->program[0], path_, error)};
    std::string text = "cannot start PE " + std::to_string(pe) + " of " + std::to_string(options_->pes) + ": ";
    if (stage == Stage::kBind)
        text += "binding it to core " + std::to_string(cores_[static_cast<size_t>(pe) % cores_.size()]) + ": ";
    text += strerror(error);
    if (stage == Stage::kFork && error == EAGAIN)
        text += " (too many processes: see ulimit -u and the cgroup's pids.max)";
    if (stage == Stage::kPipe && (error == EMFILE || error == ENFILE))
        text += " (see ulimit -Hn)";
    return {kStatusCannotStart, text};
}

void Starter::become_pe(int pe, const Ends& ends) const {
    Failure failure = {Stage::kExec, 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher_)  // the launcher died before the call above
        _exit(1);
    close(lifeline_[1]);
    if (pe != 0)
        dup2(null_fd_, STDIN_FILENO);
    dup2(ends.output[1], STDOUT_FILENO);
    dup2(ends.errors[1], STDERR_FILENO);
    fcntl(job_fd_, F_SETFD, 0);
    fcntl(lifeline_[0], F_SETFD, 0);
    set_number(bootstrap::kEnvPe, pe);
    setrlimit(RLIMIT_NOFILE, &inherited_.files);
    sigaction(SIGPIPE, &inherited_.on_sigpipe, nullptr);
    sigprocmask(SIG_SETMASK, &inherited_.signal_mask, nullptr);
    if (!cores_.empty() && !bind_to(cores_[static_cast<size_t>(pe) % cores_.size()])) {
        failure = {Stage::kBind, errno};
    } else {
        execv(path_.c_str(), options_->program);
        failure = {Stage::kExec, errno};
    }
    [[maybe_unused]] ssize_t written = write(ends.failure[1], &failure, sizeof failure);
    _exit(kStatusCannotRun);
}

}  // namespace heddle::launcher
