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

int find_program(const std::string& name, const char* places, std::string* path) {
    if (name.find('/') != std::string::npos) {
        *path = name;
        return 0;  // exec reports errors
    }
    const std::string folders = places ? places : "/bin:/usr/bin";
    int error = ENOENT;
    for (size_t begin = 0; begin <= folders.size();) {
        const size_t end = std::min(folders.find(':', begin), folders.size());
        const std::string folder = folders.substr(begin, end - begin);
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

// The CPUs are not empty.
bool bind_to(const CpuList& cpus) {
    const size_t most = static_cast<size_t>(cpus.back()) + 1;
    cpu_set_t* set = CPU_ALLOC(most);
    const size_t bytes = CPU_ALLOC_SIZE(most);
    CPU_ZERO_S(bytes, set);
    for (const int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes, set);
    const bool bound = sched_setaffinity(0, bytes, set) == 0;
    CPU_FREE(set);
    return bound;
}

void close_all(std::initializer_list<int> descriptors) {
    for (const int fd : descriptors) {
        if (fd >= 0)
            close(fd);
    }
}

}  // namespace

// The files that a PE is started with: each pipe's read end first.
struct Starter::Ends {
    int output[2] = {-1, -1};
    int errors[2] = {-1, -1};
    int input[2] = {-1, -1};
};

StartFailure Starter::prepare(const Options& options, const std::vector<CpuList>& bindings, const Inherited& inherited,
                              int job_fd, uint64_t token) {
    options_ = &options;
    inherited_ = inherited;
    job_fd_ = job_fd;
    launcher_ = getpid();
    bindings_ = &bindings;
    null_fd_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null_fd_ < 0)
        return {kStatusCannotStart, std::string("cannot open /dev/null: ") + strerror(errno)};
    const int terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
    has_terminal_ = terminal >= 0;
    close_all({terminal});
    if (pipe2(lifeline_, O_CLOEXEC) != 0)
        return explain(Stage::kPipe, errno, 0);
    if (!options.output_dir.empty() && mkdir(options.output_dir.c_str(), 0777) != 0 && errno != EEXIST)
        return {kStatusCannotStart, "--output-dir " + options.output_dir + ": " + strerror(errno)};
    for (const Program& program : options.programs) {
        Part part = {program, {}, Environment(program)};
        if (const int error = find_program(program.words[0], part.environment.get("PATH"), &part.path); error != 0)
            return explain_start(part, error);
        if (!program.folder.empty() && part.path[0] != '/')
            part.path = program.folder + "/" + part.path;
        part.environment.set(bootstrap::kEnvJobFd, std::to_string(job_fd_));
        part.environment.set(bootstrap::kEnvLifelineFd, std::to_string(lifeline_[0]));
        part.environment.set(bootstrap::kEnvJob, std::to_string(launcher_) + ":" + std::to_string(token));
        parts_.push_back(part);
    }
    return {};
}

// Opens the pipes, or the files, of a PE. False with errno and its stage.
bool Starter::open_ends(int pe, Ends* ends, Stage* stage) const {
    *stage = Stage::kPipe;
    if (options_->reader == Options::kAllRead && pipe2(ends->input, O_CLOEXEC) != 0)
        return false;
    if (options_->output_dir.empty())
        return pipe2(ends->output, O_CLOEXEC) == 0 && pipe2(ends->errors, O_CLOEXEC) == 0;
    *stage = Stage::kFile;
    const std::string name = options_->output_dir + "/pe." + std::to_string(pe);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
    ends->output[1] = open((name + ".out").c_str(), kFlags, 0666);
    ends->errors[1] = open((name + ".err").c_str(), kFlags, 0666);
    return ends->output[1] >= 0 && ends->errors[1] >= 0;
}

Starter::Part& Starter::part_of(int pe) {
    return parts_[static_cast<size_t>(&options_->program_of(pe) - options_->programs.data())];
}

StartFailure Starter::start(int pe, Started* started) {
    Ends ends;
    Failure failure = {Stage::kPipe, 0};
    Part& part = part_of(pe);
    pid_t pid = -1;
    if (!open_ends(pe, &ends, &failure.stage)) {
        failure.error = errno;
    } else {
        part.environment.set(bootstrap::kEnvPe, std::to_string(pe));
        char** const environment = part.environment.words();
        failure.stage = Stage::kFork;
        // The child borrows this process's memory, and this process waits until exec: nothing is copied, and what the
        // child writes into `failure` stays.
        pid = vfork();  // NOLINT: posix_spawn cannot do what become_pe does
        if (pid == 0)
            become_pe(pe, part, environment, ends, &failure);
        if (pid < 0)
            failure.error = errno;
    }
    close_all({ends.output[1], ends.errors[1], ends.input[0]});
    if (failure.error != 0) {
        close_all({ends.output[0], ends.errors[0], ends.input[1]});
        return failure.stage == Stage::kExec ? explain_start(part, failure.error)
                                             : explain(failure.stage, failure.error, pe);
    }
    *started = {pid, ends.output[0], ends.errors[0], ends.input[1]};
    return {};
}

StartFailure Starter::explain_start(const Part& part, int error) const {
    return {error == ENOENT || error == ENOTDIR ? kStatusNoProgram : kStatusCannotRun,
            explain_exec(part.program.words[0], part.path, error)};
}

StartFailure Starter::explain(Stage stage, int error, int pe) const {
    std::string text = "cannot start PE " + std::to_string(pe) + " of " + std::to_string(options_->pes) + ": ";
    if (stage == Stage::kBind)
        text += "binding it to cores " + to_text((*bindings_)[static_cast<size_t>(pe)]) + ": ";
    if (stage == Stage::kFile)
        text += "its files in --output-dir " + options_->output_dir + ": ";
    if (stage == Stage::kFolder)
        text += "--wdir " + options_->program_of(pe).folder + ": ";
    text += strerror(error);
    if (stage == Stage::kFork && error == EAGAIN)
        text += " (too many processes: see ulimit -u and the cgroup's pids.max)";
    if (stage == Stage::kPipe && (error == EMFILE || error == ENFILE))
        text += " (see ulimit -Hn)";
    return {kStatusCannotStart, text};
}

void Starter::become_pe(int pe, const Part& part, char** environment, const Ends& ends, Failure* failure) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher_)  // the launcher died before the call above
        _exit(1);
    close(lifeline_[1]);
    if (options_->reader != pe)
        dup2(ends.input[0] >= 0 ? ends.input[0] : null_fd_, STDIN_FILENO);
    dup2(ends.output[1], STDOUT_FILENO);
    dup2(ends.errors[1], STDERR_FILENO);
    fcntl(job_fd_, F_SETFD, 0);
    fcntl(lifeline_[0], F_SETFD, 0);
    setrlimit(RLIMIT_NOFILE, &inherited_.files);
    sigaction(SIGPIPE, &inherited_.on_sigpipe, nullptr);
    if (has_terminal_)
        signal(SIGQUIT, SIG_IGN);  // which the terminal sends to PEs, too, where oshrun is asked for a report
    sigprocmask(SIG_SETMASK, &inherited_.signal_mask, nullptr);
    if (!bindings_->empty() && !bind_to((*bindings_)[static_cast<size_t>(pe)])) {
        *failure = {Stage::kBind, errno};
    } else if (!part.program.folder.empty() && chdir(part.program.folder.c_str()) != 0) {
        *failure = {Stage::kFolder, errno};
    } else {
        execve(part.path.c_str(), part.program.words, environment);
        *failure = {Stage::kExec, errno};
    }
    _exit(kStatusCannotRun);
}

}  // namespace heddle::launcher
