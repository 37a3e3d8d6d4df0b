#include "check.h"

#include <fcntl.h>
#include <spawn.h>
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

constexpr double kStepsInLimit = 4;      // a step may take this part of the limit, and a wait for others three of it
constexpr useconds_t kPauseUs = 10'000;  // between two looks at the job
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

// Waits for the process until then. False: it still runs.
bool ends_until(pid_t pid, uint64_t end_ns, int* status) {
    while (true) {
        const pid_t ended = waitpid(pid, status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR))
            return true;
        if (os::now_ns() >= end_ns)
            return false;
        usleep(kPauseUs);
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
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    pid_t pid = -1;
    const int error = posix_spawn(&pid, arguments[0], &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error != 0) {
        fprintf(stderr, "heddle-info: cannot run %s: %s\n", arguments[0], strerror(error));
        return 1;
    }
    int status = 0;
    const uint64_t end_ns = os::now_ns() + static_cast<uint64_t>(limit_s * 1e9);
    if (!ends_until(pid, end_ns, &status)) {
        fprintf(stderr, "heddle-info: FAILED: the job has not ended within %.9g s (--limit)\n", limit_s);
        kill(pid, SIGTERM);
        if (!ends_until(pid, os::now_ns() + kGraceNs, &status)) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
        }
        status = -1;
    }
    const bool is_well = status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (is_well)
        printf("heddle-info: the check has found nothing wrong\n");
    else
        fprintf(stderr, "heddle-info: the check has failed: the lines above say why\n");
    return is_well ? 0 : 1;
}

}  // namespace heddle::tools
