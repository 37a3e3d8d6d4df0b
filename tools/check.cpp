#include "check.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "os/clock.h"
#include "os/plugin.h"

namespace heddle::tools {

namespace {

constexpr int kStatusSignal = 128;   // and the signal's number
constexpr double kStepsInLimit = 4;  // a step may take this part of the limit, and a wait for others three of it
constexpr uint64_t kGraceNs = 5'000 * os::kMillisecondNs;  // for oshrun, or the launcher behind it, to end the job

bool begins_with_one_of(const char* word, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (strncmp(word, name, strlen(name)) == 0)
            return true;
    return false;
}

// A job scheduler's, whose hosts oshrun uses without being told (launcher/allocation.h).
bool is_in_allocation() {
    return getenv("SLURM_JOB_ID") || getenv("FLUX_URI");
}

// oshrun's words: its options, a number of PEs if these do not tell it, and the program.
std::vector<std::string> words_for(char** options, const std::string& folder, double step_s) {
    std::vector<std::string> words = {folder + "/../bin/oshrun"};
    bool has_number = false, has_hosts = false;
    for (char** word = options; *word; ++word) {
        has_number = has_number || begins_with_one_of(*word, {"-n", "-N", "--np", "--ppn"});
        has_hosts = has_hosts || begins_with_one_of(*word, {"-H", "--host"});
    }
    if (!has_number && has_hosts)
        words.insert(words.end(), {"--ppn", "1"});
    else if (!has_number && !is_in_allocation())
        words.insert(words.end(), {"-n", "2"});
    for (char** word = options; *word; ++word) words.emplace_back(*word);
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.9g", step_s);
    words.insert(words.end(), {folder + "/heddle/check_pe", seconds});
    return words;
}

constexpr int kEnding[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

// Blocks SIGCHLD and the signals that end this program, but those that are ignored (nohup). *inherited: the mask before.
sigset_t take_signals(sigset_t* inherited) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (const int signal : kEnding) {
        struct sigaction action;
        sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN)
            sigaddset(&signals, signal);
    }
    signal(SIGCHLD, SIG_DFL);  // an ignored one would lose the status
    sigprocmask(SIG_BLOCK, &signals, inherited);
    return signals;
}

// Runs oshrun as a child that gets SIGTERM when this program is killed. -1 after a line on stderr.
pid_t start(char* const* arguments, const sigset_t& mask) {
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        sigprocmask(SIG_SETMASK, &mask, nullptr);
        const int nothing = open("/dev/null", O_RDONLY);
        if (nothing >= 0 && dup2(nothing, STDIN_FILENO) == STDIN_FILENO && getppid() == parent)
            execv(arguments[0], arguments);
    }
    if (child <= 0)
        fprintf(stderr, "heddle-info: cannot run %s: %s\n", arguments[0], strerror(errno));
    if (child == 0)
        _exit(1);
    return child;
}

// Waits for the process until then. False: it still runs. *ended_by: a signal that ends this program, and has gone on
// to the process; it returns at once then.
bool ends_until(pid_t pid, const sigset_t& signals, uint64_t end_ns, int* status, int* ended_by) {
    while (true) {
        const pid_t ended = waitpid(pid, status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR))
            return true;
        const uint64_t now_ns = os::now_ns();
        if (now_ns >= end_ns)
            return false;
        const timespec left = os::to_timespec(end_ns - now_ns);
        siginfo_t info;
        const int signal = sigtimedwait(&signals, &info, &left);
        if (signal <= 0 || signal == SIGCHLD)
            continue;
        *ended_by = signal;
        if (info.si_code != SI_KERNEL)  // the terminal has sent it to the process, too
            kill(pid, signal);
        return false;
    }
}

}  // namespace

int check(char** options, double limit_s) {
    char folder[PATH_MAX];
    if (!os::find_in_library_folder("", folder, sizeof folder)) {
        fprintf(stderr, "heddle-info: this program cannot be found without /proc\n");
        return 1;
    }
    std::vector<std::string> words = words_for(options, folder, limit_s / kStepsInLimit);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    sigset_t inherited;
    const sigset_t signals = take_signals(&inherited);
    const pid_t pid = start(arguments.data(), inherited);
    if (pid < 0)
        return 1;
    int status = 0, ended_by = 0;
    const uint64_t end_ns = os::now_ns() + static_cast<uint64_t>(limit_s * 1e9);
    if (!ends_until(pid, signals, end_ns, &status, &ended_by)) {
        if (ended_by == 0) {
            fprintf(stderr, "heddle-info: FAILED: the job has not ended within %.9g s (--limit)\n", limit_s);
            kill(pid, SIGTERM);
        }
        if (!ends_until(pid, signals, os::now_ns() + kGraceNs, &status, &ended_by)) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
        }
        status = -1;
    }
    if (ended_by != 0)
        return kStatusSignal + ended_by;
    const bool is_well = status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (is_well)
        printf("heddle-info: the check has found nothing wrong\n");
    else
        fprintf(stderr, "heddle-info: the check has failed: the lines above say why\n");
    return is_well ? 0 : 1;
}

}  // namespace heddle::tools
