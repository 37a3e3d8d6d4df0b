#include "os/command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "os/clock.h"

namespace heddle::os {

namespace {

constexpr size_t kMostBytes = 64 * 1024;
constexpr uint64_t kPatienceNs = 10'000 * kMillisecondNs;  // for a scheduler that does not answer

// Reads to the end of the pipe. False when that takes too long.
bool read_all(int pipe, std::string* output) {
    const uint64_t end_ns = now_ns() + kPatienceNs;
    while (true) {
        const uint64_t time_ns = now_ns();
        pollfd ready = {pipe, POLLIN, 0};
        if (time_ns >= end_ns || poll(&ready, 1, static_cast<int>((end_ns - time_ns) / kMillisecondNs) + 1) == 0)
            return false;
        char piece[4096];
        const ssize_t bytes = read(pipe, piece, sizeof piece);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes <= 0)
            return bytes == 0;
        if (output->size() < kMostBytes)
            output->append(piece, static_cast<size_t>(bytes));
    }
}

}  // namespace

int run_command(const std::vector<std::string>& words, std::string* output) {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    int ends[2];
    output->clear();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
    pid_t pid = -1;
    const int error = posix_spawn(&pid, arguments[0], &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    int status = -1;
    if (error == 0) {
        if (!read_all(ends[0], output))
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    close(ends[0]);
    return error == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace heddle::os
