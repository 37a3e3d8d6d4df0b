#include "engine_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "os/clock.h"

namespace heddle::launcher {

namespace {

constexpr int kStatusNoEngine = 1;
constexpr int kSignals[] = {SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
constexpr double kEndS = 10;  // from SIGTERM to SIGKILL: for the launcher to end its hosts, and to collect their output

// Waits for one of the signals until then. Its number; 0: none has come.
int next_signal(const sigset_t& signals, uint64_t end_ns, bool* from_terminal) {
    const uint64_t now_ns = os::now_ns();
    constexpr uint64_t kLongestNs = 3'600'000 * os::kMillisecondNs;
    const uint64_t left_ns = end_ns > now_ns ? std::min(end_ns - now_ns, kLongestNs) : 0;
    const timespec left = {static_cast<time_t>(left_ns / 1'000'000'000), static_cast<long>(left_ns % 1'000'000'000)};
    siginfo_t info;
    const int signal = sigtimedwait(&signals, &info, &left);
    *from_terminal = signal > 0 && info.si_code == SI_KERNEL;
    return std::max(signal, 0);
}

uint64_t after(double seconds) {
    return os::now_ns() + static_cast<uint64_t>(seconds * 1e9);
}

}  // namespace

int run_engine(const char* path, char* const* arguments, char* const* environment, const Options& options) {
    sigset_t signals, inherited;
    sigemptyset(&signals);
    for (const int signal : kSignals) {
        struct sigaction action;
        sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN || signal == SIGCHLD)  // an ignored one stays so (nohup)
            sigaddset(&signals, signal);
    }
    signal(SIGCHLD, SIG_DFL);  // an ignored one would lose the status
    sigprocmask(SIG_BLOCK, &signals, &inherited);
    const pid_t oshrun = getpid();
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        sigprocmask(SIG_SETMASK, &inherited, nullptr);
        if (getppid() == oshrun)
            execve(path, arguments, environment);
        fprintf(stderr, "oshrun: cannot run %s: %s\n", path, strerror(errno));
        _exit(kStatusNoEngine);
    }
    if (child < 0) {
        fprintf(stderr, "oshrun: cannot run %s: %s\n", path, strerror(errno));
        return kStatusNoEngine;
    }
    int status = 0, ended_by = 0;
    bool is_late = false;
    uint64_t end_ns = options.timeout_s > 0 ? after(options.timeout_s) : UINT64_MAX;
    while (waitpid(child, &status, WNOHANG) == 0) {
        bool from_terminal;
        const int signal = next_signal(signals, end_ns, &from_terminal);
        if (signal != 0 && signal != SIGCHLD && !from_terminal)  // the terminal has sent it to the launcher, too
            kill(child, signal);
        if (signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM)
            ended_by = signal;
        if (os::now_ns() < end_ns)
            continue;
        if (!is_late)
            fprintf(stderr, "oshrun: the job has not ended within %.9g s (--timeout); ending it\n", options.timeout_s);
        kill(child, is_late ? SIGKILL : SIGTERM);
        is_late = true;
        end_ns = after(kEndS);
    }
    if (is_late)
        return kStatusTimeout;
    if (ended_by != 0)
        return kStatusSignal + ended_by;
    return WIFSIGNALED(status) ? kStatusSignal + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace heddle::launcher
