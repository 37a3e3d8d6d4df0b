#include "os/child_process.h"

#include "os/clock.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace heddle::os {

namespace {

bool close_input() {
    const int nothing = open("/dev/null", O_RDONLY);
    return nothing >= 0 && dup2(nothing, STDIN_FILENO) == STDIN_FILENO;
}

// Gives the child its standard streams.
bool redirect(const int (&streams)[3]) {
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (streams[number] >= 0 && dup2(streams[number], number) != number)
            return false;
    return true;
}

}  // namespace

ChildProcess::ChildProcess(std::initializer_list<int> signals) {
    sigemptyset(&signals_);
    for (const int each : signals) {
        struct sigaction action;
        sigaction(each, nullptr, &action);
        if (action.sa_handler != SIG_IGN)
            sigaddset(&signals_, each);
    }
    sigaddset(&signals_, SIGCHLD);
    signal(SIGCHLD, SIG_DFL);  // an ignored one would lose the status
    sigprocmask(SIG_BLOCK, &signals_, &inherited_);
}

bool ChildProcess::start(const ChildCommand& command) {
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        sigprocmask(SIG_SETMASK, &inherited_, nullptr);
        if ((command.reads_input || close_input()) && redirect(command.streams) && getppid() == parent)
            execve(command.path, command.arguments, command.environment);
    }
    if (pid_ <= 0)
        fprintf(stderr, "%s: cannot run %s: %s\n", command.program, command.path, strerror(errno));
    if (pid_ == 0)
        _exit(1);
    return pid_ > 0;
}

bool ChildProcess::has_ended(int* status) {
    return waitpid(pid_, status, WNOHANG) != 0;
}

int ChildProcess::next_signal(uint64_t end_ns, bool* from_terminal) {
    constexpr uint64_t kLongestNs = 3'600'000 * kMillisecondNs;
    const uint64_t at_ns = now_ns();
    const timespec left = to_timespec(end_ns > at_ns ? std::min(end_ns - at_ns, kLongestNs) : 0);
    siginfo_t info;
    const int signal = sigtimedwait(&signals_, &info, &left);
    *from_terminal = signal > 0 && info.si_code == SI_KERNEL;
    return std::max(signal, 0);
}

void ChildProcess::send(int signal) const {
    kill(pid_, signal);
}

}  // namespace heddle::os
