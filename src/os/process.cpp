#include "os/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace heddle::os {

Lifeline die_with(const char* path, int launcher) {
    // The owner of a descriptor's signal belongs to the open file, which all PEs would inherit: each opens its own.
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
    // No signal is sent for a hang-up before O_ASYNC was set.
    pollfd state = {own, POLLIN, 0};
    return poll(&state, 1, 0) == 0 ? Lifeline::kHeld : Lifeline::kGone;
}

bool has_ended(int pid) {
    if (kill(pid, 0) != 0)
        return errno == ESRCH;
    char path[32], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    const char* const name_end = bytes > 0 ? strrchr(text, ')') : nullptr;  // the name itself may hold any character
    return name_end && (strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0);
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
