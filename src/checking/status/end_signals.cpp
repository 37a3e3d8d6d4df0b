#include "checking/status/end_signals.h"

#include "base/settings.h"
#include "bootstrap/launched.h"
#include "checking/status/self_report.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/own_thread.h"

#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace heddle::checking {

namespace {

constexpr int kTaken[] = {SIGTERM, SIGINT};
constexpr uint64_t kRepeatNs = 1000 * os::kMillisecondNs;  // a launcher may send one signal twice at once
constexpr uint64_t kStayNs = 5'000 * os::kMillisecondNs;   // of a thread that has taken one

pid_t owner = 0;                        // the process that takes the signals; a fork's child inherits the handlers
std::atomic<uint32_t> ending{0};        // the signal that ends this PE
std::atomic<uint64_t> ending_since{0};  // when it came

// The signal has its usual effect: at once, or where it is blocked, when that ends.
void end_now(int signal) {
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    sigaction(signal, &usual, nullptr);
    raise(signal);
}

// Relaxed, here and below: only the words themselves matter.
void take(int signal, siginfo_t* info, void*) {
    const int error = errno;
    const bool is_own = info->si_code <= 0 && info->si_pid == getpid();  // raise returns when the signal has been taken
    const uint64_t since_ns = ending_since.load(std::memory_order_relaxed);
    const bool is_another = since_ns != 0 && os::now_ns() > since_ns + kRepeatNs;
    uint32_t nothing = 0;
    if (getpid() != owner || is_own || is_another) {
        end_now(signal);
    } else {
        if (ending.compare_exchange_strong(nothing, static_cast<uint32_t>(signal), std::memory_order_relaxed)) {
            ending_since.store(os::now_ns(), std::memory_order_relaxed);
            os::futex_wake_all(&ending);
        }
        // Nothing of the program, or of a sleep that the signal has cut short, comes behind it. The end of the wait is
        // for a thread with a lock that the report needs.
        for (const uint64_t end_ns = os::now_ns() + kStayNs; os::now_ns() < end_ns;) os::sleep_ns(os::kMillisecondNs);
    }
    errno = error;
}

void* tell_at_end(void*) {
    uint32_t signal = 0;
    while ((signal = ending.load(std::memory_order_relaxed)) == 0) os::futex_wait(&ending, 0, nullptr);
    tell_end(static_cast<int>(signal));
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, static_cast<int>(signal));
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    end_now(static_cast<int>(signal));
    _exit(128 + static_cast<int>(signal));  // process 1 of a namespace does not end by signals of its own
}

}  // namespace

uint32_t end_threads() {
    return owner != 0;
}

bool take_end_signals(char* error, size_t error_bytes) {
    if (owner != 0 || !base::settings.crash_report || !bootstrap::has_process_manager())
        return true;
    struct sigaction ours = {}, theirs;
    ours.sa_sigaction = take;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    pthread_t thread;
    if (const int failure = os::start_own_thread(&thread, tell_at_end, nullptr); failure != 0) {
        snprintf(error, error_bytes, "cannot start the thread that tells where the PEs are: %s", strerror(failure));
        return false;
    }
    pthread_detach(thread);
    owner = getpid();
    for (const int signal : kTaken)
        if (sigaction(signal, nullptr, &theirs) == 0 && theirs.sa_handler == SIG_DFL)
            sigaction(signal, &ours, nullptr);
    return true;
}

}  // namespace heddle::checking
