#include "os/process.h"

#include "os/clock.h"
#include "os/own_thread.h"
#include "os/process_table.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace heddle::os {

namespace {

struct Watch {
    int fd;
    sem_t ready;
};

// Waits until the pipe's last write end closes. The thread has a table of descriptors with that one alone (close_range,
// Linux 5.9), so a program may close all of its own.
void* end_with_pipe(void* argument) {
    constexpr unsigned kUnshare = 2;  // CLOSE_RANGE_UNSHARE
    constexpr long kCloseRange = 436;
    auto* const watched = static_cast<Watch*>(argument);
    const int fd = watched->fd;
    if (syscall(kCloseRange, fd + 1, ~0u, kUnshare) == 0 && fd > 0)
        syscall(kCloseRange, 0, fd - 1, 0);
    sem_post(&watched->ready);
    pollfd state = {fd, 0, 0};
    while (poll(&state, 1, -1) < 0) {
    }
    if (state.revents & POLLHUP)
        _exit(1);
    return nullptr;
}

}  // namespace

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

Lifeline die_with_by_thread(int fd) {
    struct stat file;
    pollfd state = {fd, 0, 0};
    if (fstat(fd, &file) != 0 || !S_ISFIFO(file.st_mode))
        return Lifeline::kNone;
    if (poll(&state, 1, 0) != 0)
        return Lifeline::kGone;
    Watch watched = {fd, {}};
    pthread_t thread;
    sem_init(&watched.ready, 0, 0);
    const bool is_started = start_own_thread(&thread, end_with_pipe, &watched) == 0;
    if (is_started) {
        while (sem_wait(&watched.ready) != 0) {
        }
        pthread_detach(thread);
    }
    sem_destroy(&watched.ready);
    return is_started ? Lifeline::kHeld : Lifeline::kNone;
}

uint32_t process_namespace() {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? static_cast<uint32_t>(status.st_ino) : 0;
}

bool has_ended(int pid, uint32_t of_namespace) {
    if (of_namespace == 0 || of_namespace != process_namespace())
        return false;
    if (kill(pid, 0) != 0)
        return errno == ESRCH;
    ProcessEntry entry;
    return read_process(pid, &entry) && (entry.state == 'Z' || entry.state == 'X');
}

uint64_t hash_of(std::string_view bytes, uint64_t before) {
    for (const char byte : bytes) before = (before ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    return before;
}

uint64_t hash_of_boot() {
    char text[40];
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd >= 0 ? read(fd, text, sizeof text) : 0;
    if (fd >= 0)
        close(fd);
    return bytes > 0 ? hash_of({text, static_cast<size_t>(bytes)}) : 0;
}

uint32_t count_threads() {
    struct stat status;
    constexpr uint32_t kDotAndDotDot = 2;
    return stat("/proc/self/task", &status) == 0 && status.st_nlink > kDotAndDotDot
               ? static_cast<uint32_t>(status.st_nlink) - kDotAndDotDot
               : 0;
}

uint64_t age_ns() {
    ProcessEntry entry;
    if (!read_process(kThisProcess, &entry))
        return 0;
    const uint64_t tick_ns = 1000000000 / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
    const uint64_t now = clock_ns(CLOCK_BOOTTIME);
    return now - std::min(now, entry.start_ticks * tick_ns);
}

uint64_t random_word() {
    uint64_t word;
    while (getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word)) {
    }
    return word;
}

void hold_standard_descriptors() {
    for (int fd = 0; fd <= 2; ++fd)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd)
            return;  // no such file, or no descriptor left
}

}  // namespace heddle::os
