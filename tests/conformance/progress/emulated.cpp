// libheddle.so on a machine that has UMWAIT and MWAITX: their instructions are carried out by
// tests/support/monitor_emulation.h. Preloaded, it takes the place of the library that a program was linked with. A PE
// that has watched no line with them when it ends says so by its status, 77: the test is skipped then, for it has shown
// nothing. So it is where all cores are taken by others, and nobody watches.
#include "base/lifecycle.h"
#include "os/monitor_wait.h"
#include "os/topology.h"
#include "support/monitor_emulation.h"

#include <signal.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>

namespace {

using namespace heddle;

__attribute__((constructor)) void begin() {
    for (os::MonitorChoice choice : {os::MonitorChoice::kUmwait, os::MonitorChoice::kMwaitx})
        test::emulate(*os::find_monitor(choice));
    test::cap_ticks.store(test::kKernelsCapTicks, std::memory_order_relaxed);  // no other thread runs yet
}

__attribute__((destructor)) void end() {
    if (base::lifecycle != base::Lifecycle::kFinalized)  // the launcher, say
        return;
    const auto waits = static_cast<unsigned long long>(test::armed_waits_of_process.load(std::memory_order_relaxed));
    fprintf(stderr, "%llu waits watched a line\n", waits);
    if (waits == 0 && os::usable_cores() > 1)  // with one, nobody watches
        _exit(77);
}

}  // namespace

// The library's: its background threads block all signals, but here SIGILL carries out their instructions.
extern "C" int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    sigset_t less;
    sigemptyset(&less);
    if (set)
        less = *set;
    if (how != SIG_UNBLOCK)
        sigdelset(&less, SIGILL);
    return sigprocmask(how, set ? &less : nullptr, old) == 0 ? 0 : errno;
}
