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
constexpr double kTellS = 2;  // for the PEs to tell where they are, and the launcher to pass it on

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

// Blocks the signals that oshrun passes on, and SIGCHLD. *inherited: the mask before.
sigset_t take_signals(sigset_t* inherited) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : kSignals) {
        struct sigaction action;
        sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN || signal == SIGCHLD)  // an ignored one stays so (nohup)
            sigaddset(&signals, signal);
    }
    signal(SIGCHLD, SIG_DFL);  // an ignored one would lose the status
    sigprocmask(SIG_BLOCK, &signals, inherited);
    return signals;
}

// -1: the launcher cannot be run, which was said.
pid_t start(const EngineCommand& engine, const sigset_t& mask) {
    const pid_t oshrun = getpid();
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        sigprocmask(SIG_SETMASK, &mask, nullptr);
        if (getppid() == oshrun)
            execve(engine.path, engine.arguments, engine.environment);
    }
    if (child <= 0)
        fprintf(stderr, "oshrun: cannot run %s: %s\n", engine.path, strerror(errno));
    if (child == 0)
        _exit(kStatusNoEngine);
    return child;
}

}  // namespace

int run_engine(const EngineCommand& engine, const Options& options) {
    sigset_t inherited;
    const sigset_t signals = take_signals(&inherited);
    const pid_t child = start(engine, inherited);
    if (child < 0)
        return kStatusNoEngine;
    enum class Phase { kRunning, kTelling, kEnding } phase = Phase::kRunning;
    int status = 0, ended_by = 0;
    bool is_late = false;
    uint64_t end_ns = options.timeout_s > 0 ? after(options.timeout_s) : UINT64_MAX;  // of the phase
    while (waitpid(child, &status, WNOHANG) == 0) {
        bool from_terminal;
        const int signal = next_signal(signals, end_ns, &from_terminal);
        if (signal != 0 && signal != SIGCHLD && !from_terminal)  // the terminal has sent it to the launcher, too
            kill(child, signal);
        const bool is_end = signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
        if (is_end)
            ended_by = signal;
        const bool is_due = os::now_ns() >= end_ns;
        if (phase == Phase::kRunning && is_due && !is_end) {
            fprintf(stderr, "oshrun: the job has not ended within %.9g s (--timeout); ending it. Its PEs:\n",
                    options.timeout_s);
            is_late = true;
            phase = Phase::kTelling;
            end_ns = after(kTellS);
        } else if (phase != Phase::kEnding && (is_due || is_end)) {
            if (!is_end)
                kill(child, SIGTERM);
            phase = Phase::kEnding;
            end_ns = after(engine.end_s);
        } else if (is_due) {
            kill(child, SIGKILL);
            end_ns = after(engine.end_s);
        }
    }
    if (is_late)
        return kStatusTimeout;
    if (ended_by != 0)
        return kStatusSignal + ended_by;
    return WIFSIGNALED(status) ? kStatusSignal + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace heddle::launcher
