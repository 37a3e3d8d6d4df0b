#include "os/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace heddle::os {

bool die_with(int lifeline) {
    // The owner of a descriptor's signal belongs to the open file, which all PEs inherit alike: each opens its own.
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", lifeline);
    const int own = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (own < 0)
        return false;
    if (fcntl(own, F_SETOWN, getpid()) != 0 || fcntl(own, F_SETSIG, SIGKILL) != 0 ||
        fcntl(own, F_SETFL, O_ASYNC | O_NONBLOCK) != 0) {
        close(own);
        return false;
    }
    // A hang-up before O_ASYNC was set sends no signal.
    pollfd state = {own, POLLIN, 0};
    return poll(&state, 1, 0) == 0;
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
    const char* const name_end = bytes > 0 ? strrchr(text, ')') : nullptr;  // the name itself may hold anything
    return name_end && (strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0);
}

bool has_hung_up(int lifeline) {
    pollfd state = {lifeline, POLLIN, 0};
    return poll(&state, 1, 0) > 0 && (state.revents & POLLHUP) != 0;
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
