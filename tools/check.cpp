#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bootstrap/launch_environment.h"
#include "os/child_process.h"
#include "os/clock.h"
#include "os/plugin.h"

namespace heddle::tools {

namespace {

constexpr int kStatusSignal = 128;   // and the signal's number
constexpr double kStepsInLimit = 4;  // a step may take this part of the limit, and a wait for others three of it
constexpr uint64_t kGraceNs = 5'000 * os::kMillisecondNs;  // for oshrun, or the launcher behind it, to end the job

bool begins_with_one_of(const char* word, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (strncmp(word, name, strlen(name)) == 0)
            return true;
    return false;
}

// oshrun's words: its options, a number of PEs if these do not tell it, and the program.
std::vector<std::string> words_for(char** options, const char* oshrun, const char* check_pe, double step_s) {
    std::vector<std::string> words = {oshrun};
    bool has_number = false, has_hosts = false;
    for (char** word = options; *word; ++word) {
        has_number = has_number || begins_with_one_of(*word, {"-n", "-N", "--np", "--ppn"});
        has_hosts = has_hosts || begins_with_one_of(*word, {"-H", "--host"});
    }
    if (!has_number && has_hosts)
        words.insert(words.end(), {"--ppn", "1"});
    else if (!has_number && !bootstrap::slurm_hosts() && !bootstrap::has_flux())  // oshrun uses all of an allocation
        words.insert(words.end(), {"-n", "2"});
    for (char** word = options; *word; ++word) words.emplace_back(*word);
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.9g", step_s);
    words.insert(words.end(), {check_pe, seconds});
    return words;
}

// Waits for the process until then. False: it still runs. *ended_by: a signal that ends this program, and has gone on
// to the process; it returns at once then.
bool ends_until(os::ChildProcess& process, uint64_t end_ns, int* status, int* ended_by) {
    while (!process.has_ended(status)) {
        bool from_terminal;
        const int signal = process.next_signal(end_ns, &from_terminal);
        if (signal == 0 && os::now_ns() >= end_ns)
            return false;
        if (signal == 0 || signal == SIGCHLD)
            continue;
        *ended_by = signal;
        if (!from_terminal)
            process.send(signal);
        return false;
    }
    return true;
}

}  // namespace

int check(char** options, double limit_s) {
    char oshrun_path[PATH_MAX], check_pe[PATH_MAX];
    if (!os::find_tool("oshrun", oshrun_path, sizeof oshrun_path) ||
        !os::find_in_library_folder("heddle/check_pe", check_pe, sizeof check_pe)) {
        fprintf(stderr, "heddle-info: this program cannot be found without /proc\n");
        return 1;
    }
    std::vector<std::string> words = words_for(options, oshrun_path, check_pe, limit_s / kStepsInLimit);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    os::ChildProcess oshrun({SIGHUP, SIGINT, SIGQUIT, SIGTERM});
    if (!oshrun.start({"heddle-info", arguments[0], arguments.data(), environ, false}))
        return 1;
    int status = 0, ended_by = 0;
    const uint64_t end_ns = os::now_ns() + static_cast<uint64_t>(limit_s * 1e9);
    if (!ends_until(oshrun, end_ns, &status, &ended_by)) {
        if (ended_by == 0) {
            fprintf(stderr, "heddle-info: FAILED: the job has not ended within %.9g s (--limit)\n", limit_s);
            oshrun.send(SIGTERM);
        }
        if (!ends_until(oshrun, os::now_ns() + kGraceNs, &status, &ended_by)) {
            oshrun.send(SIGKILL);
            while (!ends_until(oshrun, UINT64_MAX, &status, &ended_by)) {
            }
        }
        status = -1;
    }
    if (ended_by != 0)
        return kStatusSignal + ended_by;
    const bool is_well = status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (is_well)
        printf("heddle-info: the check has found nothing wrong\n");
    else
        fprintf(stderr, "heddle-info: the check has failed: the lines above say why\n");
    return is_well ? 0 : 1;
}

}  // namespace heddle::tools
