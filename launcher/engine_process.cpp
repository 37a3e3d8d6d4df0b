#include "engine_process.h"

#include <sys/wait.h>

#include <csignal>
#include <cstdio>

#include "chaos.h"
#include "os/child_process.h"
#include "os/clock.h"

namespace heddle::launcher {

namespace {

constexpr int kStatusNoEngine = 1;
constexpr double kTellS = 2;  // for the PEs to tell where they are, and the launcher to pass it on

uint64_t after(double seconds) {
    return os::now_ns() + static_cast<uint64_t>(seconds * 1e9);
}

}  // namespace

int run_engine(const EngineCommand& engine, const Options& options) {
    os::ChildProcess child({SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2});
    if (!child.start({"oshrun", engine.path, engine.arguments, engine.environment}))
        return kStatusNoEngine;
    enum class Phase { kRunning, kTelling, kInterrupted, kTerminated } phase = Phase::kRunning;
    int status = 0, ended_by = 0;
    bool is_late = false;
    uint64_t end_ns = options.timeout_s > 0 ? after(options.timeout_s) : UINT64_MAX;  // of the phase
    while (!child.has_ended(&status)) {
        bool from_terminal;
        const int signal = child.next_signal(end_ns, &from_terminal);
        if (signal != 0 && signal != SIGCHLD && !from_terminal)
            child.send(signal);
        const bool is_end = signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
        if (is_end)
            ended_by = signal;
        const Phase begun = signal == SIGTERM ? Phase::kTerminated : is_end ? Phase::kInterrupted : Phase::kRunning;
        const bool is_due = os::now_ns() >= end_ns;
        if (begun > phase) {
            phase = begun;
            end_ns = after(engine.end_s);
        } else if (phase == Phase::kRunning && is_due) {
            fprintf(stderr, "oshrun: the job has not ended within %.9g s (--timeout); ending it%s. Its PEs:\n",
                    options.timeout_s, seed_note(options).c_str());
            is_late = true;
            phase = Phase::kTelling;
            end_ns = after(kTellS);
        } else if (is_due) {  // the PEs may ignore what comes first: srun and hydra pass SIGINT on
            child.send(phase == Phase::kTerminated ? SIGKILL : SIGTERM);
            phase = Phase::kTerminated;
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
