#include "top.h"

#include <dirent.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/job_page.h"
#include "bootstrap/status_report.h"
#include "options.h"
#include "os/clock.h"
#include "os/process_table.h"
#include "running_jobs.h"

namespace heddle::launcher {

namespace {

constexpr int kStatusNoView = 1;
constexpr uint64_t kViewNs = 1000 * os::kMillisecondNs;  // between two views
constexpr uint64_t kLookNs = 50 * os::kMillisecondNs;    // between two looks whether PEs wait
constexpr int kEndsView[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

// The terminal, whole, while this object lives. What was on it comes back at the end.
class Screen {
  public:
    // False with errno when the terminal does not let itself be set.
    bool open() {
        if (tcgetattr(STDIN_FILENO, &before_) != 0)
            return false;
        termios keys = before_;
        keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        keys.c_cc[VMIN] = 1;
        keys.c_cc[VTIME] = 0;
        keys.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stopped view would leave the terminal as it is
        is_open_ = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
        if (is_open_)
            write("\x1b[?1049h\x1b[?25l");  // the other screen, without a cursor
        return is_open_;
    }
    ~Screen() {
        if (!is_open_)
            return;
        write("\x1b[?25h\x1b[?1049l");
        tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
    Screen() = default;
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    static winsize size() {
        winsize found = {};
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_row == 0 || found.ws_col == 0)
            found = {24, 80, 0, 0};
        return found;
    }

    // Lines beyond the size, and their ends, are left out.
    void show(const std::vector<std::string>& lines) {
        const winsize now = size();
        std::string text = "\x1b[H";
        for (size_t i = 0; i < lines.size() && i < now.ws_row; ++i)
            text.append(i == 0 ? "" : "\r\n").append(lines[i], 0, now.ws_col).append("\x1b[K");
        write(text + "\x1b[J");
    }

  private:
    // A terminal that is gone takes nothing: SIGHUP comes.
    static void write(const std::string& text) {
        for (size_t from = 0; from < text.size();) {
            const ssize_t taken = ::write(STDOUT_FILENO, text.data() + from, text.size() - from);
            if (taken <= 0 && errno != EINTR)
                return;
            from += taken > 0 ? static_cast<size_t>(taken) : 0;
        }
    }

    termios before_ = {};
    bool is_open_ = false;
};

// What the threads of a process have used, and where.
struct Use {
    uint64_t ticks = 0;   // of processor time
    std::set<int> cores;  // that its threads ran on last
};

Use use_of(int pid) {
    Use use;
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    DIR* const tasks = pid > 0 ? opendir(folder.c_str()) : nullptr;
    while (const dirent* task = tasks ? readdir(tasks) : nullptr) {
        os::ProcessEntry thread;
        if (const int number = atoi(task->d_name); number > 0 && os::read_thread(pid, number, &thread)) {
            use.ticks += thread.cpu_ticks;
            use.cores.insert(thread.core);
        }
    }
    if (tasks)
        closedir(tasks);
    return use;
}

// "0-2,5"
std::string list_of(const std::set<int>& cores) {
    std::string text;
    for (auto at = cores.begin(); at != cores.end();) {
        const int first = *at;
        int last = first;
        for (++at; at != cores.end() && *at == last + 1; ++at) ++last;
        text += (text.empty() ? "" : ",") + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
    }
    return text.empty() ? "-" : text;
}

// "812", "12.3k", "4.0M"
std::string short_number(double value) {
    const char* unit = "";
    for (const char* const larger : {"k", "M", "G", "T"}) {
        if (value < 1000)
            break;
        value /= 1000;
        unit = larger;
    }
    char text[32];
    snprintf(text, sizeof text, *unit ? "%.1f%s" : "%.0f%s", value, unit);
    return text;
}

class View {
  public:
    explicit View(AttachedJob* job) : job_(*job), pes_(job->source.processes.size()) { measure(); }

    // One look whether the PEs wait. Relaxed: what a PE publishes of its waits may be older than its last store.
    void look() {
        ++looks_;
        for (size_t slot = 0; slot < pes_.size(); ++slot) pes_[slot].waiting += waits_since(slot) != 0;
    }

    // False when the job has ended.
    bool refresh() { return job_.refresh(); }

    // The view of the time since the last one.
    std::vector<std::string> lines(size_t rows) {
        const std::vector<Pe> before = pes_;
        const uint64_t from_ns = measured_ns_;
        const double looks = std::max(looks_, 1);
        measure();
        const double seconds = std::max(static_cast<double>(measured_ns_ - from_ns) * 1e-9, 1e-3);
        std::vector<std::string> text = {
            job_.name + "; q ends this view, the job goes on",
            "   PE     msg/s     bytes/s  waits   CPU  cores     state",
        };
        const std::vector<size_t> order = shown(rows > text.size() ? rows - text.size() : 1);
        for (const size_t slot : order) {
            const Pe &was = before[slot], &is = pes_[slot];
            const auto rate = [&](uint64_t now, uint64_t then) {
                return short_number(now > then ? static_cast<double>(now - then) / seconds : 0);
            };
            const double cpu = is.use.ticks > was.use.ticks ? static_cast<double>(is.use.ticks - was.use.ticks) : 0;
            char line[128];
            snprintf(line, sizeof line, "%5d  %8s  %10s  %4.0f%%  %3.0f%%  %-8s  ", number_of(slot),
                     rate(is.messages, was.messages).c_str(), rate(is.bytes, was.bytes).c_str(),
                     100 * was.waiting / looks, 100 * cpu / static_cast<double>(sysconf(_SC_CLK_TCK)) / seconds,
                     list_of(is.use.cores).c_str());
            text.push_back(line + state_of(slot));
        }
        if (order.size() < pes_.size())
            text.push_back("  ... and " + std::to_string(pes_.size() - order.size()) + " more that wait less long");
        return text;
    }

  private:
    struct Pe {
        uint64_t messages = 0, bytes = 0;
        Use use;
        int waiting = 0;  // looks that found it waiting
    };

    const bootstrap::PeRecord& record(size_t slot) const { return job_.source.page->records()[slot]; }

    int number_of(size_t slot) const {
        const uint32_t number = record(slot).pe.load(std::memory_order_relaxed);
        return static_cast<int>(number == 0 ? slot : number - 1);
    }

    // Since when it waits; 0: it does not.
    uint64_t waits_since(size_t slot) const {
        if (job_.source.processes[slot].ended)
            return 0;
        uint64_t since = record(slot).wait_since_ns.load(std::memory_order_relaxed);
        for (uint32_t entry = 0; entry < bootstrap::PeStatus::kThreads; ++entry) {
            bootstrap::WaitState wait;
            if (job_.source.page->statuses()[slot].read(entry, &wait))
                since = since == 0 ? wait.since_ns : std::min(since, wait.since_ns);
        }
        return since;
    }

    void measure() {
        for (size_t slot = 0; slot < pes_.size(); ++slot) {
            const base::Counters& counters = record(slot).counters;
            const auto& [pid, ended] = job_.source.processes[slot];
            pes_[slot] = {counters.messages_sent.read() + counters.messages_received.read(),
                          counters.bytes_sent.read() + counters.bytes_received.read(), use_of(ended ? 0 : pid), 0};
        }
        looks_ = 0;
        measured_ns_ = os::now_ns();
    }

    // The PEs for which there is room: all, by number, or those that have waited for longest.
    std::vector<size_t> shown(size_t room) const {
        std::vector<size_t> order(pes_.size());
        for (size_t slot = 0; slot < order.size(); ++slot) order[slot] = slot;
        if (order.size() <= room)
            return order;
        std::vector<uint64_t> since(order.size());
        for (size_t slot = 0; slot < order.size(); ++slot) since[slot] = waits_since(slot) - 1;  // none: the last
        std::stable_sort(order.begin(), order.end(),
                         [&](size_t one, size_t other) { return since[one] < since[other]; });
        order.resize(room - 1);
        return order;
    }

    std::string state_of(size_t slot) const {
        std::string text;
        for (const std::string& line : bootstrap::describe_pe(job_.source, static_cast<int>(slot)))
            text.append(text.empty() ? "" : "; ").append(line);
        return text;
    }

    AttachedJob& job_;
    std::vector<Pe> pes_;  // by slot, when measured
    int looks_ = 0;        // since then
    uint64_t measured_ns_ = 0;
};

// Signals as bytes of a descriptor: one that ends this view, and changes of the terminal's size.
int open_signals() {
    sigset_t taken;
    sigemptyset(&taken);
    for (const int signal : kEndsView) sigaddset(&taken, signal);
    sigaddset(&taken, SIGWINCH);
    sigprocmask(SIG_BLOCK, &taken, nullptr);
    return signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Until there is a reason to end: 0 for q and the end of the input, a signal's number, or -1 for the end of the job.
int run(View* view, Screen* screen, int signals) {
    uint64_t next_ns = 0;
    while (true) {
        pollfd events[2] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
        poll(events, 2, static_cast<int>(kLookNs / os::kMillisecondNs));
        signalfd_siginfo info;
        while (read(signals, &info, sizeof info) == sizeof info) {
            if (info.ssi_signo != SIGWINCH)
                return static_cast<int>(info.ssi_signo);
            next_ns = 0;
        }
        char key = 0;
        if (events[0].revents != 0 && (read(STDIN_FILENO, &key, 1) < 1 || key == 'q'))
            return 0;
        view->look();
        if (const uint64_t now_ns = os::now_ns(); now_ns >= next_ns) {
            next_ns = now_ns + kViewNs;
            if (!view->refresh())
                return -1;
            screen->show(view->lines(Screen::size().ws_row));
        }
    }
}

}  // namespace

int watch_job(int pid) {
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        fprintf(stderr, "oshrun: --top: input and output are no terminal; right would be a terminal, or --status\n");
        return kStatusNoView;
    }
    AttachedJob job;
    if (!attach("--top", pid, &job))
        return kStatusNoView;
    job.source.lines_ns = 0;
    int reason = 0;
    {
        const int signals = open_signals();
        Screen screen;
        if (signals < 0 || !screen.open()) {
            fprintf(stderr, "oshrun: --top: the terminal cannot be set: %s\n", strerror(errno));
            return kStatusNoView;
        }
        View view(&job);
        reason = run(&view, &screen, signals);
    }
    if (reason < 0)
        printf("%s: the job has ended\n", job.name.c_str());
    return reason > 0 ? kStatusSignal + reason : 0;
}

}  // namespace heddle::launcher
