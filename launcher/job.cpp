#include "job.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>

#include "chaos.h"
#include "children.h"
#include "machine_limits.h"
#include "os/clock.h"
#include "os/memfd.h"
#include "os/process.h"
#include "os/signal_names.h"
#include "os/topology.h"
#include "report.h"

namespace heddle::launcher {

using bootstrap::Exit;
using bootstrap::ExitRequest;
using bootstrap::PeState;

namespace {

constexpr int kStatusError = 1;

constexpr uint64_t kWatchNs = 100 * os::kMillisecondNs;  // between two reads of the job page
constexpr uint64_t kGiveUpNs =
    5'000 * os::kMillisecondNs;  // from SIGKILL to leaving a process that does not die (stuck in the kernel)
constexpr uint64_t kSweepNs =
    50 * os::kMillisecondNs;  // between searches for orphans, while they may end by themselves
constexpr uint64_t kFastSweepNs = 10 * os::kMillisecondNs;  // between searches while they are killed: a generation each
constexpr uint64_t kLastWordsNs = 1'000 * os::kMillisecondNs;  // for a blocked reader of the output, after a signal

constexpr uint64_t kHangLookNs = 1'000 * os::kMillisecondNs;  // between two looks whether all PEs wait
constexpr uint64_t kHungNs =
    1'000 * os::kMillisecondNs;  // a PE waits this long: a signal that ends the job tells where

constexpr int kEnding[] = {SIGHUP, SIGINT, SIGTERM};
constexpr int kAsking = SIGQUIT;  // for a report
constexpr int kForwarded[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

}  // namespace

int Job::run() {
    if (!prepare())
        return status_;
    start_all();
    while (phase_ != Phase::kGone) {
        wait_for_events();
        now_ns_ = os::now_ns();
        take_signals();  // first: Ctrl-C reaches the PEs, too, and their deaths by it are no failures
        output_.work(now_ns_);
        input_.work();
        reap();
        if (phase_ == Phase::kRunning) {
            check_page();
            check_absent();
            check_time();
            check_hang();
        }
        check_output();
        advance_end();
    }
    forward_rest();
    judge_races();
    if (options_.chaos) {
        complain(seed_line(options_));
        forward_rest();
    }
    return status_;
}

bool Job::fail(const std::string& text, int status) {
    fprintf(stderr, "oshrun: %s\n", text.c_str());
    status_ = status;
    return false;
}

bool Job::prepare() {
    now_ns_ = os::now_ns();
    inherited_.files = raise_file_limit();
    if (const std::string limit = limit_below(options_.pes, options_.reader == Options::kAllRead); !limit.empty())
        return fail(limit, kStatusBadInput);
    if (have_children())
        not_ours_ = list_children();
    adopt_orphans();
    set_signals();
    if (!make_page())
        return fail(std::string("cannot make the job's memory: ") + os::describe_memory_error(errno), kStatusError);
    if (signal_fd_ < 0 || !output_.open(options_.pes, options_.tag_output) ||
        (options_.reader == Options::kAllRead && !input_.open()))
        return fail(std::string("cannot prepare the job: ") + strerror(errno), kStatusError);
    const StartFailure failure = starter_.prepare(options_, bindings_, inherited_, job_fd_, page_->token);
    if (failure.status != 0)
        return fail(failure.message, failure.status);
    pes_.resize(static_cast<size_t>(options_.pes));
    next_hang_look_ns_ = options_.hang_s > 0 ? now_ns_ : UINT64_MAX;
    if (options_.timeout_s > 0)
        timeout_ns_ = now_ns_ + static_cast<uint64_t>(options_.timeout_s * 1e9);
    return true;
}

bool Job::make_page() {
    page_ = bootstrap::create_job_page(options_.pes, &job_fd_);
    if (!page_)
        return false;
    records_ = page_->records();
    return true;
}

// Reads SIGCHLD and ending signals from a descriptor. A signal that was ignored when oshrun started stays ignored
// (nohup).
void Job::set_signals() {
    sigset_t taken;
    sigemptyset(&taken);
    const auto take = [&](int signal) {
        struct sigaction action;
        sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN)
            sigaddset(&taken, signal);
    };
    for (const int signal : kEnding) take(signal);
    take(kAsking);
    for (const int signal : kForwarded) take(signal);
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, nullptr);  // if it were ignored, the status of ended PEs would be lost
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, &inherited_.on_sigpipe);
    sigaddset(&taken, SIGCHLD);
    sigprocmask(SIG_BLOCK, &taken, &inherited_.signal_mask);
    signal_fd_ = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool Job::start_all() {
    for (int pe = 0; pe < options_.pes; ++pe) {
        Started started;
        const StartFailure failure = starter_.start(pe, &started);
        if (failure.status != 0) {
            complain(failure.message);
            end(failure.status);
            return false;
        }
        pes_[static_cast<size_t>(pe)].pid = started.pid;
        ++alive_;
        if ((started.output >= 0 && !output_.add(pe, started.output, started.errors)) ||
            (started.input >= 0 && !input_.add(started.input))) {
            complain(std::string("cannot watch the output of PE ") + std::to_string(pe) + ": " + strerror(errno));
            end(kStatusError);
            return false;
        }
    }
    return true;
}

void Job::wait_for_events() {
    uint64_t due = now_ns_ + kWatchNs;
    if (phase_ == Phase::kRunning)
        due = std::min(due, timeout_ns_);
    else
        due = std::min(due, std::min(next_sweep_ns_, kill_ns_));
    due = std::min(due, output_.next_due_ns());
    pollfd events[4];
    events[0] = {signal_fd_, POLLIN, 0};
    output_.interests(events + 1);
    events[3] = input_.interest();
    const uint64_t now_ns = os::now_ns();
    const uint64_t wait_ns = due > now_ns ? due - now_ns : 0;
    poll(events, 4, static_cast<int>((wait_ns + os::kMillisecondNs - 1) / os::kMillisecondNs));
}

void Job::take_signals() {
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == sizeof info) {
        const int signal = static_cast<int>(info.ssi_signo);
        const bool from_terminal = info.ssi_code == SI_KERNEL;  // the terminal sends it to the PEs as well
        if (signal == SIGCHLD)
            continue;
        if (std::count(std::begin(kForwarded), std::end(kForwarded), signal)) {
            forward(signal, from_terminal);
            continue;
        }
        if (signal == kAsking) {
            if (phase_ == Phase::kRunning)
                tell_places("where the PEs are (SIGQUIT); the job goes on:");
            continue;
        }
        interrupted_ = true;
        if (phase_ == Phase::kRunning) {
            if (bootstrap::any_waits(status_source(), now_ns_ - std::min(now_ns_, kHungNs)))
                tell_places(std::string("ending the job by SIG") + os::name_of_signal(signal) + seed_note(options_) +
                            ". Its PEs:");
            end(kStatusSignal + signal, signal, from_terminal);
        } else
            kill_ns_ = now_ns_;  // a second signal: do not wait for the grace period
    }
}

// The process that called shmem_init, below scripts or in a process namespace of its own; or the one that was started.
pid_t Job::process_of(size_t pe) const {
    const pid_t child = pes_[pe].pid, caller = records_[pe].pid.load(std::memory_order_relaxed);
    const pid_t found = find_descendant(caller, child);
    return found != 0 ? found : child;
}

// Forwards a signal that does not end the job: to each PE, and to no other process of the job.
void Job::forward(int signal, bool already_sent) {
    for (size_t pe = 0; pe < pes_.size() && phase_ == Phase::kRunning && !already_sent; ++pe) {
        if (pes_[pe].pid == 0 || pes_[pe].ended)
            continue;
        // SIGSTOP instead of SIGTSTP, which would stop no PE in an orphaned process group, as in the background of a
        // shell that has ended.
        kill(process_of(pe), signal == SIGTSTP ? SIGSTOP : signal);
    }
    if (signal == SIGTSTP && phase_ == Phase::kRunning)
        raise(SIGSTOP);
}

void Job::reap() {
    int wait_status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &wait_status, WNOHANG | __WALL)) > 0) {
        const int pe = index_of(pid);
        if (pe < 0)
            continue;
        pes_[static_cast<size_t>(pe)].ended = true;
        --alive_;
        if (phase_ == Phase::kRunning)
            judge(pe, wait_status);
    }
}

void Job::judge(int pe, int wait_status) {
    check_page();  // a request by the PE explains its end
    if (phase_ != Phase::kRunning)
        return;
    if (WIFSIGNALED(wait_status) || WEXITSTATUS(wait_status) != 0) {
        blame(pe, how_it_ended(wait_status));
        end(WIFSIGNALED(wait_status) ? kStatusSignal + WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
        return;
    }
    const PeState state = state_of(records_[pe]);
    if (state == PeState::kRunning) {
        blame(pe,
              "called shmem_init and ended with status 0, but did not call shmem_finalize, and neither returned from "
              "main nor called exit outside the library (_exit, exec?)");
        end(kStatusError);
    } else if (state == PeState::kLeaving) {
        blame(pe, "ended with status 0 while it waited for the others in shmem_finalize");
        end(kStatusError);
    } else if (state == PeState::kAbsent) {
        pes_[static_cast<size_t>(pe)].never_joined = true;
        ++never_joined_;
    }
}

// All PEs have gone.
void Job::judge_races() {
    const uint32_t races = page_->races.load(std::memory_order_relaxed);
    if (races == 0)
        return;
    complain("HEDDLE_RACES has reported " + std::to_string(races) + (races == 1 ? " race" : " races"));
    forward_rest();
    if (status_ == 0)
        status_ = bootstrap::kStatusRaces;
}

void Job::check_page() {
    const uint64_t word = page_->exit.load(std::memory_order_acquire);  // pairs with bootstrap::request_exit
    if (word == 0 || phase_ != Phase::kRunning)
        return;
    const Exit exit = Exit::unpack(word);
    const bool valid =
        exit.pe < options_.pes && (exit.request == ExitRequest::kGlobalExit || exit.request == ExitRequest::kFatal);
    if (!valid) {
        complain("a PE has written over the job's shared page; ending the job" + seed_note(options_));
        end(kStatusError);
        return;
    }
    requester_ = exit.pe;
    if (exit.request == ExitRequest::kFatal) {
        end(kStatusError);
    } else {
        if (exit.status != 0)
            blame(exit.pe, "called shmem_global_exit(" + std::to_string(exit.status) + ")");
        end(exit.status & 0xff);
    }
}

// A PE in shmem_init waits for all. Cost: O(PEs), and only after a PE has ended without shmem_init.
void Job::check_absent() {
    if (never_joined_ == 0 || phase_ != Phase::kRunning)
        return;
    for (int waiting = 0; waiting < options_.pes; ++waiting) {
        if (state_of(records_[waiting]) != PeState::kRunning)
            continue;
        const auto absent = std::find_if(pes_.begin(), pes_.end(), [](const Pe& pe) { return pe.never_joined; });
        blame(static_cast<int>(absent - pes_.begin()),
              "exited with status 0 without calling shmem_init, where PE " + std::to_string(waiting) + " waits for it");
        end(kStatusError);
        return;
    }
}

void Job::check_time() {
    if (now_ns_ < timeout_ns_ || phase_ != Phase::kRunning)
        return;
    char text[96];
    snprintf(text, sizeof text, "the job has not ended within %.9g s (--timeout); ending it", options_.timeout_s);
    tell_places(text + seed_note(options_) + ". Its PEs:");
    end(kStatusTimeout);
}

// Once, when all PEs have waited for HEDDLE_HANG_S seconds. Cost: O(PEs), once a second.
void Job::check_hang() {
    if (now_ns_ < next_hang_look_ns_ || phase_ != Phase::kRunning)
        return;
    next_hang_look_ns_ = now_ns_ + kHangLookNs;
    const uint64_t hang_ns = options_.hang_s * 1'000'000'000;
    bootstrap::StatusSource source;
    source.page = page_;
    for (const Pe& pe : pes_) source.processes.push_back({0, pe.ended});
    if (now_ns_ <= hang_ns || !bootstrap::all_wait(source, now_ns_ - hang_ns))
        return;
    next_hang_look_ns_ = UINT64_MAX;
    tell_places("no PE came forward for " + std::to_string(options_.hang_s) +
                " s (HEDDLE_HANG_S); the job goes on. Its PEs:");
}

bootstrap::StatusSource Job::status_source() const {
    bootstrap::StatusSource source;
    source.page = page_;
    source.memory_fd = job_fd_;
    source.now_ns = now_ns_;
    for (size_t pe = 0; pe < pes_.size(); ++pe) source.processes.push_back({process_of(pe), pes_[pe].ended});
    return source;
}

void Job::tell_places(const std::string& heading) {
    complain(heading);
    for (const std::string& line : bootstrap::describe_pes(status_source())) complain(line);
}

void Job::check_output() {
    if (output_.error() == 0 || phase_ != Phase::kRunning)
        return;
    if (output_.error() == EPIPE) {  // the reader has gone: as if SIGPIPE had ended oshrun
        interrupted_ = true;
        end(kStatusSignal + SIGPIPE);
        return;
    }
    complain(std::string("cannot forward the PEs' output: ") + strerror(output_.error()) + "; ending the job");
    end(kStatusError);
}

// Leaves kRunning. already_sent: the PEs have got the signal in another way.
void Job::end(int status, int signal, bool already_sent) {
    status_ = status;
    end_signal_ = signal;
    phase_ = Phase::kTerminating;
    uint64_t nobody = 0;
    page_->exit.compare_exchange_strong(nobody, Exit{ExitRequest::kLauncher}.pack(), std::memory_order_relaxed);
    kill_ns_ = now_ns_ + static_cast<uint64_t>(options_.grace_s * 1e9);
    next_sweep_ns_ = alive_ == 0 ? now_ns_ : now_ns_ + kSweepNs;
    for (const Pe& pe : pes_) {
        if (pe.pid != 0 && !pe.ended && !already_sent)
            kill(pe.pid, signal);
    }
}

void Job::advance_end() {
    if (phase_ == Phase::kRunning) {
        if (alive_ > 0)
            return;
        end(0);
    }
    if (alive_ == 0 && !have_children()) {
        phase_ = Phase::kGone;
        return;
    }
    if (phase_ == Phase::kTerminating && now_ns_ >= kill_ns_) {
        phase_ = Phase::kKilling;
        kill_ns_ = UINT64_MAX;
        give_up_ns_ = now_ns_ + kGiveUpNs;
        next_sweep_ns_ = now_ns_;
    }
    if (alive_ == 0 || now_ns_ >= next_sweep_ns_)
        sweep();
}

// Signals every child. PEs only when killing: end() has sent their first signal.
void Job::sweep() {
    const bool killing = phase_ == Phase::kKilling;
    next_sweep_ns_ = now_ns_ + (killing ? kFastSweepNs : kSweepNs);
    for (const Pe& pe : pes_) {
        if (killing && pe.pid != 0 && !pe.ended)
            kill(pe.pid, SIGKILL);
    }
    int orphans = 0;
    for (const pid_t pid : list_children()) {
        if (index_of(pid) >= 0 || std::count(not_ours_.begin(), not_ours_.end(), pid))
            continue;
        ++orphans;
        if (!killing && std::count(signalled_.begin(), signalled_.end(), pid))
            continue;
        signalled_.push_back(pid);
        kill(pid, killing ? SIGKILL : end_signal_);
    }
    // Otherwise have_children() decides: the kernel's list may miss a child while others end.
    if (alive_ == 0 && orphans == 0 && !not_ours_.empty())
        phase_ = Phase::kGone;
    if (killing && now_ns_ >= give_up_ns_) {
        complain("some processes of the job do not end, even by SIGKILL; leaving them");
        phase_ = Phase::kGone;
    }
}

void Job::forward_rest() {
    const uint64_t begin_ns = os::now_ns();
    while (true) {
        now_ns_ = os::now_ns();
        if (output_.drain_all(now_ns_))
            return;
        pollfd events[3];
        events[0] = {signal_fd_, POLLIN, 0};
        output_.interests(events + 1);
        poll(events, 3, static_cast<int>(kWatchNs / os::kMillisecondNs));
        take_signals();
        if (interrupted_ && os::now_ns() > begin_ns + kLastWordsNs)
            return;
    }
}

void Job::blame(int pe, const std::string& what) {
    output_.drain(pe, now_ns_);  // the PE's own last words come first
    complain(name_of(pe) + " " + what + ending_others(alive_besides(pe)) + seed_note(options_));
    if (const std::string calls = bootstrap::describe_last_calls(status_source(), pe); !calls.empty())
        complain("the last collectives and long waits of PE " + std::to_string(pe) + ": " + calls);
}

void Job::complain(const std::string& text) {
    output_.say("oshrun: " + text);
}

// The PE of a process; -1: none.
int Job::index_of(pid_t pid) const {
    for (size_t pe = 0; pe < pes_.size(); ++pe) {
        if (pes_[pe].pid == pid && !pes_[pe].ended)
            return static_cast<int>(pe);
    }
    return -1;
}

std::string Job::name_of(int pe) const {
    return "PE " + std::to_string(pe) + " (" + options_.program_of(pe).words[0] + ", pid " +
           std::to_string(pes_[static_cast<size_t>(pe)].pid) + ")";
}

int Job::alive_besides(int pe) const {
    return alive_ - (pes_[static_cast<size_t>(pe)].ended ? 0 : 1);
}

}  // namespace heddle::launcher
