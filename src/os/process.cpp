#include "os/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

namespace heddle::os {

Lifeline die_with(const char* path, int launcher) {
    // The owner of a descriptor's signal belongs to the open file, which all PEs inherit alike: each opens its own.
    const int own = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (own < 0) {
        const int error = errno;
        int signal = 0;
        prctl(PR_GET_PDEATHSIG, &signal);
        errno = error;
        return signal == SIGKILL && getppid() == launcher ? Lifeline::kHeld : Lifeline::kNone;
    }
    if (fcntl(own, F_SETOWN, getpid()) != 0 || fcntl(own, F_SETSIG, SIGKILL) != 0 ||
        fcntl(own, F_SETFL, O_ASYNC | O_NONBLOCK) != 0) {
        close(own);
        return Lifeline::kNone;
    }
    // A hang-up before O_ASYNC was set sends no signal.
    pollfd state = {own, POLLIN, 0};
    return poll(&state, 1, 0) == 0 ? Lifeline::kHeld : Lifeline::kGone;
}

uint32_t count_threads() {
    struct stat status;
    constexpr uint32_t kDotAndDotDot = 2;
    return stat("/proc/self/task", &status) == 0 && status.st_nlink > kDotAndDotDot
               ? static_cast<uint32_t>(status.st_nlink) - kDotAndDotDot
               : 0;
}

uint64_t random_word() {
    uint64_t word;
    while (getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word)) {
    }
    return word;
}

}  // namespace heddle::os
