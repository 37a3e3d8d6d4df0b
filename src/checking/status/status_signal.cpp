#include "checking/status/status_signal.h"

#include "base/place.h"
#include "base/settings.h"
#include "checking/status/self_report.h"
#include "os/futex.h"
#include "os/own_thread.h"
#include "os/registers.h"
#include "os/signal_names.h"
#include "progress/wait_policy.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace heddle::checking {

namespace {

bool is_taken = false;  // of the process; init is one at a time

// Of the process. A signal that comes while another one's place is told is told with that place.
base::PlaceText interrupted_at;
std::atomic<uint32_t> is_place_taken{0};
std::atomic<uint32_t> signals{0};  // that have come

void tell(int, siginfo_t*, void* context) {
    const int error = errno;
    // Acquire: pairs with checking::tell_at_signals, which has read the place before.
    if (is_place_taken.exchange(1, std::memory_order_acquire) == 0) {
        interrupted_at[0] = '\0';
        if (!progress::is_waiting()) {
            const base::Place here = {os::registers_of(context).instruction, false};
            base::Module module;
            const bool is_own = base::find_module(here.address, &module) && module.is_executable();
            interrupted_at = base::describe(is_own ? here : base::find_caller_of(here.address));
        }
    }
    signals.fetch_add(1, std::memory_order_release);  // pairs with checking::tell_at_signals
    os::futex_wake_all(&signals);
    errno = error;
}

void* tell_at_signals(void*) {
    for (uint32_t seen = 0;;) {
        const uint32_t now = signals.load(std::memory_order_acquire);  // pairs with checking::tell
        if (now == seen) {
            os::futex_wait(&signals, seen, nullptr);
            continue;
        }
        seen = now;
        tell_own_place(interrupted_at.data());
        is_place_taken.store(0, std::memory_order_release);  // pairs with checking::tell
    }
    return nullptr;
}

}  // namespace

uint32_t status_threads() {
    return is_taken;
}

bool take_status_signal(char* error, size_t error_bytes) {
    const char* const name = base::settings.status_signal;
    if (is_taken || name[0] == '\0')
        return true;
    const int number = os::number_of_signal(name);
    if (number == 0) {
        snprintf(error, error_bytes,
                 "HEDDLE_STATUS_SIGNAL=%s is malformed: right would be a signal such as USR2 or WINCH", name);
        return false;
    }
    pthread_t thread;
    struct sigaction ours = {};
    ours.sa_sigaction = tell;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    if (const int failure = os::start_own_thread(&thread, tell_at_signals, nullptr);
        failure != 0 || sigaction(number, &ours, nullptr) != 0) {
        snprintf(error, error_bytes, "HEDDLE_STATUS_SIGNAL=%s cannot be taken: %s", name,
                 strerror(failure != 0 ? failure : errno));
        return false;
    }
    pthread_detach(thread);
    is_taken = true;
    return true;
}

}  // namespace heddle::checking
