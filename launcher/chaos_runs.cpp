#include "chaos_runs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "chaos.h"
#include "os/child_process.h"
#include "os/clock.h"
#include "os/memfd.h"

namespace heddle::launcher {

namespace {

constexpr int kStatusFailed = 1;
constexpr uint64_t kWithoutChaos = 0;
constexpr uint64_t kAnswerNs = 1000 * os::kMillisecondNs;  // from SIGQUIT to what a job has answered

void say(const std::string& text) {
    fprintf(stderr, "oshrun: %s\n", text.c_str());
}

// The lines of a text, sorted: lines of several PEs come in any order.
std::vector<std::string_view> sorted_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const size_t length = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, length));
        text.remove_prefix(std::min(length + 1, text.size()));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
}

// "2 lines are missing, as 'x = 3'": those of `from` that are not in `in`; nothing when all are.
std::string lines_without(const std::vector<std::string_view>& from, const std::vector<std::string_view>& in,
                          const char* what) {
    constexpr size_t kShown = 120;
    std::vector<std::string_view> rest;
    std::set_difference(from.begin(), from.end(), in.begin(), in.end(), std::back_inserter(rest));
    if (rest.empty())
        return "";
    const std::string shown(rest[0].substr(0, kShown));
    return std::to_string(rest.size()) + (rest.size() == 1 ? " line is " : " lines are ") + what + ", as '" + shown +
           (rest[0].size() > kShown ? "...'" : "'");
}

// How the output of a job differs; nothing when it does not.
std::string difference(const std::string& expected, const std::string& found) {
    const auto before = sorted_lines(expected), now = sorted_lines(found);
    const std::string missing = lines_without(before, now, "missing"), added = lines_without(now, before, "new");
    return missing + (missing.empty() || added.empty() ? "" : "; ") + added;
}

// Memory for a stream of a job.
class Held {
  public:
    // 0, or an errno.
    int open() {
        fd_ = os::create_memory("oshrun-output", 0);
        return fd_ >= 0 ? 0 : -fd_;
    }
    ~Held() {
        if (fd_ >= 0)
            close(fd_);
    }
    int fd() const { return fd_; }

    std::string text(size_t from = 0) const {
        std::string all;
        char part[64 * 1024];
        ssize_t bytes;
        for (auto at = static_cast<off_t>(from); (bytes = pread(fd_, part, sizeof part, at)) > 0; at += bytes)
            all.append(part, static_cast<size_t>(bytes));
        return all;
    }

  private:
    int fd_ = -1;
};

// Shows what is held behind the first *shown bytes, and adds to them.
void show(const Held& held, FILE* stream, size_t* shown) {
    const std::string text = held.text(*shown);
    *shown += text.size();
    fwrite(text.data(), 1, text.size(), stream);
    if (!text.empty() && text.back() != '\n')
        fputc('\n', stream);
    fflush(stream);
}

// Standard input for one job: the rest of a file, from where oshrun got it on; -1: nothing.
int open_input() {
    struct stat info;
    if (fstat(STDIN_FILENO, &info) != 0 || !S_ISREG(info.st_mode))
        return -1;
    const int fd = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        lseek(fd, lseek(STDIN_FILENO, 0, SEEK_CUR), SEEK_SET);
    return fd;
}

class Runs {
  public:
    explicit Runs(const Options& options) : options_(options) {}

    int run();

  private:
    enum class Verdict { kPassed, kFailed, kInterrupted };

    Verdict run_job(uint64_t seed);
    bool wait_for_job(uint64_t seed, const Held& output, const Held& errors);
    std::string failure_of(const Held& output) const;
    std::string count() const;

    const Options& options_;
    os::ChildProcess child_{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    int ran_ = 0;           // jobs with chaos that have ended
    int status_ = 0;        // of the last job; at last that of oshrun
    int ended_by_ = 0;      // a signal to oshrun
    size_t shown_ = 0;      // bytes of the last job's stderr that have been shown
    std::string expected_;  // the output of the job without chaos
    bool has_expected_ = false;
};

int Runs::run() {
    unsetenv(kChaosSetting);  // the jobs get --chaos
    Verdict verdict = options_.compare_output ? run_job(kWithoutChaos) : Verdict::kPassed;
    for (uint64_t seed = options_.chaos_seed; verdict == Verdict::kPassed && ran_ < options_.chaos_runs; ++seed)
        verdict = run_job(seed);
    if (verdict == Verdict::kInterrupted)
        say("chaos: signal " + std::to_string(ended_by_) + " (" + strsignal(ended_by_) + ") ends it; " + count());
    else if (verdict == Verdict::kPassed)
        say("chaos: " + count() + ", and none has failed");
    return status_;
}

// Runs one job, judges it, and tells when it has not passed.
Runs::Verdict Runs::run_job(uint64_t seed) {
    Held output, errors;
    if (const int error = std::max(output.open(), errors.open()); error != 0) {
        say("cannot make memory for the output of a job: " + std::string(os::describe_memory_error(error)));
        status_ = kStatusFailed;
        return Verdict::kFailed;
    }
    if (!wait_for_job(seed, output, errors)) {
        status_ = kStatusFailed;
        return Verdict::kFailed;
    }
    if (ended_by_ != 0) {
        show(errors, stderr, &shown_);
        status_ = kStatusSignal + ended_by_;
        return Verdict::kInterrupted;
    }
    const bool has_chaos = seed != kWithoutChaos;
    ran_ += has_chaos;
    const std::string failure = failure_of(output);
    if (options_.verbose)
        say((has_chaos ? "chaos seed " + std::to_string(seed) : "the job without chaos") + ": " +
            (failure.empty() ? "passed" : failure));
    if (failure.empty()) {
        if (!has_chaos) {
            expected_ = output.text();
            has_expected_ = true;
        }
        return Verdict::kPassed;
    }
    size_t shown = 0;
    show(output, stdout, &shown);
    show(errors, stderr, &shown_);
    if (has_chaos) {
        say("chaos seed " + std::to_string(seed) + ": the job has failed: " + failure + "; " + count());
        say("again: " + command_of(options_, seed));
    } else {
        say("without chaos the job fails as well: " + failure + "; there is no output to compare with");
    }
    status_ = status_ == 0 ? kStatusFailed : status_;
    return Verdict::kFailed;
}

// Starts oshrun for one job and waits for its end. False, after a line on stderr, when it cannot be started.
bool Runs::wait_for_job(uint64_t seed, const Held& output, const Held& errors) {
    std::vector<std::string> words = options_.words;
    if (seed != kWithoutChaos)
        words.insert(words.begin() + 1, "--chaos=" + std::to_string(seed));
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int input = open_input();
    os::ChildCommand command = {"oshrun", "/proc/self/exe", arguments.data(), environ, input >= 0};
    command.streams[STDIN_FILENO] = input;
    command.streams[STDOUT_FILENO] = output.fd();
    command.streams[STDERR_FILENO] = errors.fd();
    const bool started = child_.start(command);
    if (input >= 0)
        close(input);
    int status = 0;
    uint64_t look_ns = UINT64_MAX;
    shown_ = 0;
    while (started && !child_.has_ended(&status)) {
        bool from_terminal;
        const int signal = child_.next_signal(look_ns, &from_terminal);
        if (os::now_ns() >= look_ns) {
            show(errors, stderr, &shown_);
            look_ns = UINT64_MAX;
        }
        if (signal == 0 || signal == SIGCHLD)
            continue;
        if (!from_terminal)
            child_.send(signal);
        if (signal == SIGQUIT)  // asks a job of this machine where its PEs are
            look_ns = os::now_ns() + kAnswerNs;
        else if (signal != SIGUSR1 && signal != SIGUSR2)
            ended_by_ = signal;
    }
    status_ = WIFSIGNALED(status) ? kStatusSignal + WTERMSIG(status) : WEXITSTATUS(status);
    if (look_ns != UINT64_MAX && status_ == kStatusSignal + SIGQUIT)  // which ends a job of other launchers
        ended_by_ = SIGQUIT;
    return started;
}

// Why the last job has failed; nothing when it has passed.
std::string Runs::failure_of(const Held& output) const {
    if (status_ == kStatusTimeout && options_.timeout_s > 0)
        return "it has not ended in time (--timeout)";
    if (status_ != 0)
        return "it ended with status " + std::to_string(status_);
    if (!has_expected_)
        return "";
    const std::string text = difference(expected_, output.text());
    return text.empty() ? "" : "its output differs from that without chaos: " + text;
}

// "12 of 100 seeds ran, from 17 on"
std::string Runs::count() const {
    return std::to_string(ran_) + " of " + std::to_string(options_.chaos_runs) + " seeds ran, from " +
           std::to_string(options_.chaos_seed) + " on";
}

}  // namespace

int run_seeds(const Options& options) {
    return Runs(options).run();
}

}  // namespace heddle::launcher
